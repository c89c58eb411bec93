"""What is wrong with the outcome of an example that ran again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from agentctl.codec.jsontext import dumps
from agentctl.datasets.messages import portable
from agentctl.experiments.comparing.values_diff import changes, same
from agentctl.experiments.runs.observed import Check, Observed
from agentctl.experiments.runs.running import Ended
from agentctl.records.datasets import Example, Reference
from agentctl.records.runs import ToolCallReport


def problems_of(example: Example, observed: Observed, ended: Ended, check: Check | None) -> tuple[str, ...]:
    """Returns what is wrong, one sentence each; empty where all is right."""
    escaped = [f"{_call(call)} ran for real" for call in observed.tool_calls if call.served_by == "escaped"]
    if check is not None:
        return (*escaped, *_checked(observed, ended, check))
    if observed.status != "done":
        return (*escaped, _undecided(observed, ended))
    return (*escaped, *_compared(example.reference, observed))


def _checked(observed: Observed, ended: Ended, check: Check) -> Iterator[str]:
    failed = check.settle(observed)
    if failed is None:
        yield _undecided(observed, ended)
    elif failed:
        yield f"what failing means holds: {check.text}; the reply was {observed.reply!r}"


def _undecided(observed: Observed, ended: Ended) -> str:
    """Says why a run did not end, and what would let it end."""
    match observed.status:
        case "blocked":
            call = next(call for call in observed.tool_calls if call.served_by == "blocked")
            return f"undecided: nothing recorded answers {_call(call)}; export with {ended.blocked_hint or '--stub'}"
        case "interrupted":
            asked = "; ".join(f"{question['node']} asks {dumps(question['value'])}" for question in observed.interrupts)
            where = asked or f"it stops before {', '.join(observed.next)}"
            return f"undecided: no recorded answer is left, {where}; export with --resume JSON"
        case "timeout" | "step_limit":
            return f"undecided: {ended.error}; rerun(..., limits=Limits(timeout_s=..., max_steps=...)) allows more"
        case _:
            return f"undecided: the run ended with {observed.status}: {ended.error}\n{ended.error_traceback or ''}"


def _compared(reference: Reference, observed: Observed) -> Iterator[str]:
    if reference.reply is not None and _words(reference.reply) != _words(observed.reply or ""):
        yield f"the reply is {observed.reply!r}, expected {reference.reply!r}"
    left = [(call.name, _json(call.args)) for call in observed.tool_calls]
    for call in reference.tool_calls:
        wanted = (str(call["name"]), _json(call.get("args", {})))
        if wanted in left:
            left.remove(wanted)
        else:
            yield f"the call {wanted[0]}({dumps(wanted[1])}) was not made; calls were {_names(observed)}"
    for channel, value in (reference.state or {}).items():
        yield from _state_problems(channel, _json(value), _json(portable(observed.values.get(channel))))


def _state_problems(channel: str, expected: object, found: object) -> Iterator[str]:
    if same(expected, found):
        return
    for change in changes(expected, found, channel):
        yield f"{change.path} is {dumps(change.right)}, expected {dumps(change.left)}"


def _words(text: str) -> str:
    return " ".join(text.split())


def _json(value: object) -> object:
    """Returns a value as it is after being written to a file and read back."""
    return json.loads(dumps(value))


def _names(observed: Observed) -> str:
    return ", ".join(_call(call) for call in observed.tool_calls) or "none"


def _call(call: ToolCallReport) -> str:
    args: Mapping[str, object] = call.args
    return f"{call.name}({dumps(args)})"
