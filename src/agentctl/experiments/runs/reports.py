"""From how runs ended to what is reported of them: inert values, the check's answer, the tally."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentctl.codec.messages import messages_in
from agentctl.experiments.judging.statistics import wilson_interval
from agentctl.experiments.runs.observed import Check, Observed
from agentctl.experiments.runs.running import Ended
from agentctl.records.runs import RunGroup, RunReport, SideEffects
from agentctl.sandbox.answers import side_effects
from agentctl.sandbox.inert import inert

MESSAGES = "messages"


def observe(ended: Ended, *, forced_end: bool = False) -> Observed:
    """Returns what a run showed, with inert values."""
    values = {channel: inert(value) for channel, value in ended.values.items()}
    return Observed(
        status=ended.status,
        reply=reply_in(values),
        tool_calls=ended.tool_calls,
        values=values,
        next=ended.next,
        interrupts=tuple(
            {"id": question.id, "node": node, "value": inert(question.value)} for node, question in ended.interrupts
        ),
        forced_end=forced_end,
    )


def report_run(ended: Ended, check: Check | None, *, forced_end: bool = False) -> RunReport:
    """Returns the report of one run, the check settled where it can be."""
    observed = observe(ended, forced_end=forced_end)
    return RunReport(
        thread=ended.job.thread,
        status=ended.status,
        nodes=ended.nodes,
        tool_calls=ended.tool_calls,
        reply=observed.reply,
        failed=check.settle(observed) if check is not None else None,
        error=ended.error,
        usage=ended.usage,
        head=ended.head,
        interrupts=observed.interrupts,
        waits_before=ended.waits_before,
        model_ran=ended.usage.model_calls > ended.usage.recorded,
        blocked_hint=ended.blocked_hint,
        error_traceback=ended.error_traceback,
        memory=tuple(replace(write, old=inert(write.old), new=inert(write.new)) for write in ended.memory),
    )


def tally(runs: Sequence[RunReport]) -> RunGroup:
    """Returns the runs with their counts; a run whose check is not settled leaves `n` and is counted apart."""
    decided = [run for run in runs if run.failed is not None]
    n_failed = sum(run.failed is True for run in decided)
    return RunGroup(
        runs=tuple(runs),
        n=len(decided),
        n_failed=n_failed,
        n_undecided=len(runs) - len(decided),
        interval=wilson_interval(n_failed, len(decided)),
    )


def all_side_effects(runs: Iterable[RunReport]) -> SideEffects:
    """Returns how the tool calls of all runs were served."""
    return side_effects([call for run in runs for call in run.tool_calls])


def message_channel(values: Mapping[str, object]) -> str | None:
    """Returns the channel that holds the conversation: `messages`, or else the only one with messages in it."""
    if isinstance(values.get(MESSAGES), list):
        return MESSAGES
    holding = [name for name, value in values.items() if isinstance(value, list) and messages_in(value)]
    return holding[0] if len(holding) == 1 else None


def reply_in(values: Mapping[str, object]) -> str | None:
    """Returns the text of the last AI message since the user last wrote, or None where there is none with text."""
    channel = message_channel(values)
    for message in reversed(messages_in(values[channel]) if channel else ()):
        if message.role == "human":
            return None
        if message.role == "ai" and message.text.strip():
            return message.text
    return None
