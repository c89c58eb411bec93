"""Plans, copies, runs, forks and verdicts for people, pipes and programs."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import dumps
from agentctl.codec.secrets import hide_secrets_in
from agentctl.records.copies import CopyReport, Place, command
from agentctl.records.masking import MaskReport
from agentctl.records.runs import (
    Answered,
    DiagnoseReport,
    ForkReport,
    Plan,
    ReplayReport,
    RunGroup,
    RunReport,
    SideEffects,
    ToolCallReport,
    Verdict,
)
from agentctl.render import diff as diff_rendering
from agentctl.render import views
from agentctl.render.clean import clean, cut
from agentctl.render.masking import mask_words
from agentctl.render.words import count, names, percent_interval, size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

Pasteable = Callable[[str], str]
"""Makes the commands in a text work when pasted, wherever the stores are."""

LABEL = 9
DEBUG = "debug"
ASKS = "asks"
N_VIEW_LINES, N_STATE_LINES = 16, 10
MAX_VALUE_CHARS = 200
"""How much of a configured value a plan shows: a server keeps there what a thread was made with."""
VERDICT_WORDS = {
    "tool_data": "tool data",
    "not_the_cause": "not the cause",
    "model_or_prompt": "model or prompt",
    "graph_code": "graph code",
    "not_reproduced": "not reproduced",
}
_STATUS_STYLE = {"done": "", "interrupted": "yellow", "blocked": "red", "error": "red"}


def _row(label: str, text: str, style: str = "", *, width: int | None = None) -> Text:
    """Returns a labelled line; with a width, prose that is longer goes on under itself."""
    from rich.text import Text

    lines = [clean(text)]
    if width is not None:
        lines = textwrap.wrap(lines[0], max(width - LABEL, 24), break_on_hyphens=False) or [""]
    row = Text().append(f"{label:<{LABEL}}", "dim").append(lines[0], style)
    for line in lines[1:]:
        row.append("\n" + " " * LABEL).append(line, style)
    return row


def plan_lines(plan: Plan, verb: str) -> list[str]:
    """Returns the plan as plain lines, for stderr, before anything runs."""
    lines = [f"{verb} of {plan.source.target}: from here on these run: {names(plan.nodes)}"]
    by_source: dict[str, list[str]] = {}
    for tool in plan.tools:
        by_source.setdefault(tool.served_by, []).append(tool.name)
    lines += [f"  tools from {source}: {', '.join(tools)}" for source, tools in by_source.items()]
    lines += [f"  may stop at: {asked} (--resume JSON answers it)" for asked in plan.interrupts]
    if plan.configurable:
        shown = hide_secrets_in(plan.configurable)
        values = (f"{key}={cut(dumps(value), MAX_VALUE_CHARS)}" for key, value in shown.items())
        lines.append("  configurable: " + ", ".join(values))
    masked = ", prompts masked" if plan.masked else ", prompts not masked"
    lines += [f"  graph: {plan.graph}; model: {plan.model}{masked}", f"  isolation: {plan.isolation}"]
    return lines + [f"  warning: {warning}" for warning in plan.warnings]


def copy_line(reports: Sequence[CopyReport]) -> str:
    """Returns `3b130ce9 -> debug (sqlite): 1 checkpoint, 0 writes, 3 KB, verified`, for the first of equal copies."""
    first = reports[0]
    source = (first.source.id or first.source.thread)[-8:] if first.source.id else first.source.thread
    times = f" x{len(reports)}" if len(reports) > 1 else ""
    state = (
        "verified" if all(report.verified for report in reports) else "not written" if first.dry_run else "NOT VERIFIED"
    )
    counts = f"{count(first.n_checkpoints, 'checkpoint')}, {count(first.n_writes, 'write')}, {size(first.n_bytes)}"
    masked = ", masked" if first.masked else ""
    return f"{source} -> {first.target.profile or first.target.store}{times}: {counts}{masked}, {state}"


def copy_human(report: CopyReport, width: int, pasteable: Pasteable) -> Iterable[RenderableType]:
    """Yields what was copied and where it can be looked at."""
    yield _row("copied", copy_line([report]))
    yield from _masked_rows(report.masking, width)
    yield _row("thread", shlex.quote(report.target.target))
    for warning in report.warnings:
        yield _row("warning", warning, "yellow")
    if not report.dry_run:
        yield _row("next", _look_at(report.target, pasteable))


def _masked_rows(report: MaskReport | None, width: int) -> Iterable[RenderableType]:
    if report is not None:
        yield _row("masked", mask_words(report), width=width)


def _look_at(place: Place, pasteable: Pasteable) -> str:
    """Returns the command that lists a thread; a store without a profile is named by its address."""
    words = ("--store", place.store) if place.store and not place.profile else ()
    return pasteable(command("history", *words, replace(place, id=None).target))


def effects_words(effects: SideEffects) -> str:
    """Returns `10 recorded, 0 stubbed, 0 blocked, 0 escaped`, with live reads where there were any."""
    live = f"{effects.live} live, " if effects.live else ""
    kept = f"{effects.recorded} recorded, {effects.stubbed} stubbed, {live}"
    return f"{kept}{effects.blocked} blocked, {effects.escaped} escaped"


def group_words(group: RunGroup, checked: bool) -> str:
    """Returns `5 of 5 fail  [57 %, 100 %]`, or how the runs ended where no check was given."""
    undecided = f"  ({group.n_undecided} undecided)" if group.n_undecided and checked else ""
    if checked and group.n:
        return f"{group.n_failed} of {group.n} fail  {percent_interval(group.interval)}{undecided}"
    ends = Counter(run.status.replace("_", " ") for run in group.runs)
    told = ", ".join(f"{n} {status}" for status, n in ends.most_common()) or "no run"
    return f"undecided: {told}" if checked else told


def run_lines(group: RunGroup, width: int) -> Iterable[RenderableType]:
    """Yields distinct outcomes with their counts: reply, error, what blocked, what was asked, and the flag to go on."""
    alike: dict[tuple[str, ...], list[RunReport]] = {}
    for run in group.runs:
        alike.setdefault((*outcome(run), _way_on(run), _memory_words(run)), []).append(run)
    for (label, text, style, way_on, memory), runs in sorted(alike.items(), key=lambda each: -len(each[1])):
        times = f"{len(runs)}x " if len(group.runs) > 1 else ""
        asked = [line for question in runs[0].interrupts for line in _question_lines(question.get("value"))]
        if runs[0].status == "blocked" and runs[0].error:
            yield _row(label, times + text, style, width=width)
        else:
            for i, line in enumerate(asked if label == ASKS and asked else [text]):
                yield _row("" if i else label, cut(line if i else times + line, max(width - LABEL, 24)), style)
        if way_on:
            yield _row("", way_on)
        if memory:
            yield _row("memory", cut(memory, max(width - LABEL, 24)))


def _memory_words(run: RunReport) -> str:
    """Returns what a run wrote to its copy of the memory store: `puts orders/A1; deletes users/u-1/name`."""
    written = [("deletes" if write.new is None else "puts", write) for write in run.memory]
    return "; ".join(f"{verb} {'/'.join((*write.namespace, write.key))}" for verb, write in written)


def _question_lines(value: object) -> list[str]:
    """Returns a question's fields, a line each; the empty ones say nothing.

    Every field has its line, since the reason why an answer was not taken is often the last one.
    """
    if not isinstance(value, Mapping):
        return [dumps(value)]
    return [f"{key}: {dumps(item)}" for key, item in value.items() if item not in (None, "", [], {})] or ["{}"]


def outcome(run: RunReport) -> tuple[str, str, str]:
    """Returns (label, text, style) of how one run ended."""
    style = _STATUS_STYLE.get(run.status, "yellow")
    if run.status == "done":
        return "reply", run.reply or "(no reply)", style
    if run.status == "blocked":
        call = next((call for call in reversed(run.tool_calls) if call.served_by == "blocked"), None)
        what = f"{call.name}({', '.join(f'{k}={dumps(v)}' for k, v in call.args.items())})" if call else run.error or ""
        return "blocked", what, style
    if run.waits_before:
        return "stopped", f"before {names(run.waits_before)}, at a breakpoint", style
    if run.status == "interrupted":
        return ASKS, "; ".join(dumps(asked.get("value")) for asked in run.interrupts), style
    return run.status.replace("_", " "), run.error or "", style


def _way_on(run: RunReport) -> str:
    """Returns what lets a run end that waits or was blocked, '' for any other."""
    if run.status == "blocked" and run.blocked_hint:
        return f"answer it with {run.blocked_hint}"
    if run.waits_before:
        return "go past it with --resume null"
    return "answer it with --resume JSON" if run.status == "interrupted" else ""


def replay_human(report: ReplayReport, width: int, pasteable: Pasteable, *, checked: bool) -> Iterable[RenderableType]:
    """Yields copy, tally, outcomes, where the runs are."""
    if report.copies:
        yield _row("copied", copy_line(report.copies))
    yield from _masked_rows(report.masking, width)
    yield _row("replay", f"{group_words(report.group, checked)}   tools: {effects_words(report.side_effects)}")
    yield from run_lines(report.group, width)
    place = report.copies[0].target if report.copies else Place("", "", None, DEBUG)
    yield from _tail(report.group, place, report.case, report.warnings, pasteable)


def answered_words(answered: Sequence[Answered]) -> str:
    """Returns `lookup_order (c1): status "delivered" -> "lost"; get_policy (c2) kept`."""
    parts = []
    for entry in answered:
        who = f"{entry.name} ({entry.id})" if entry.id else entry.name
        if entry.how != "substituted":
            parts.append(f"{who} {'kept' if entry.how == 'kept' else 'as recorded'}")
        elif entry.fields:
            changes = ", ".join(f"{path} {dumps(old)} -> {dumps(new)}".lstrip() for path, old, new in entry.fields)
            parts.append(f"{who}: {changes}")
        else:
            parts.append(f"{who} answered")
    return "; ".join(parts)


def fork_human(report: ForkReport, width: int, pasteable: Pasteable, *, checked: bool) -> Iterable[RenderableType]:
    """Yields copy, what was changed, what runs next, tally and outcomes."""
    if report.copies:
        yield _row("copied", copy_line(report.copies))
    yield from _masked_rows(report.masking, width)
    if report.answered:
        yield _row("answers", answered_words(report.answered))
    yield _row("fork", f"{shlex.quote(report.target.target)}  as {report.as_node or '-'} -> {names(report.next)}")
    if report.group.runs:
        yield _row("runs", f"{group_words(report.group, checked)}   tools: {effects_words(report.side_effects)}")
        yield from run_lines(report.group, width)
    compare = pasteable(command("diff", replace(report.source, id=None).target, replace(report.target, id=None).target))
    yield from _tail(report.group, report.target, report.case, report.warnings, pasteable, compare)


def _tail(
    group: RunGroup, place: Place, case: str, warnings: Sequence[str], pasteable: Pasteable, compare: str = ""
) -> Iterable[RenderableType]:
    for warning in warnings:
        yield _row("warning", warning, "yellow")
    if group.runs:
        places = [replace(place, thread=run.thread) for run in (group.runs[0], group.runs[-1])]
        threads = [replace(each, id=None).target for each in places]
        yield _row("threads", " ... ".join(shlex.quote(thread) for thread in dict.fromkeys(threads)))
        place = places[0]
    if group.runs or compare:
        yield _row("next", _look_at(place, pasteable))
    if compare:
        yield _row("", compare)
    if case:
        yield _row("case", case)


def diagnose_human(report: DiagnoseReport, width: int) -> Iterable[RenderableType]:
    """Yields copy, replays, fork, diff, verdict and the next command."""
    checked = report.check is not None
    if report.replays.copies:
        yield _row("copied", copy_line(report.replays.copies))
    yield from _masked_rows(report.masking, width)
    tools = effects_words(report.side_effects)
    yield _row("replay", f"{group_words(report.replays.group, checked)}   tools: {tools}")
    if not checked or not report.replays.group.n:
        yield from run_lines(report.replays.group, width)
    if report.fork:
        changed = answered_words(report.fork.answered)
        yield _row("fork", f"{group_words(report.fork.group, checked)}     {changed}", width=width)
        if not checked or not report.fork.group.n:
            yield from run_lines(report.fork.group, width)
    if report.diff and not report.diff.equal:
        yield from _diff_lines(report, width)
    yield verdict_row(report.verdict, width)
    for i, reason in enumerate(report.faithfulness):
        yield _row("note" if i == 0 else "", reason, "dim", width=width)
    for warning in report.warnings:
        yield _row("warning", warning, "yellow")
    if report.case:
        yield _row("case", report.case)
    for i, line in enumerate(report.commands):
        yield _row("next" if i == 0 else "", line)


def verdict_row(verdict: Verdict, width: int) -> Text:
    """Returns the verdict with its sentence, coloured by meaning."""
    words = VERDICT_WORDS.get(verdict.name, verdict.name)
    sentence = verdict.sentence
    text = sentence if sentence.startswith(words) else f"{words}. {sentence}"
    return _row("verdict", text, "yellow bold" if verdict.name == "inconclusive" else "bold", width=width)


def _diff_lines(report: DiagnoseReport, width: int) -> Iterable[RenderableType]:
    from rich.text import Text

    assert report.diff is not None
    room = width - LABEL
    label = views.label_width(report.diff.view, diff_rendering.LABEL)
    lines = _few(views.change_lines(report.diff.view, room, label), N_VIEW_LINES, label)
    if report.diff.reply and not diff_rendering.reply_is_told(report.diff):
        lines += diff_rendering.change_lines("reply", [report.diff.reply], room, label, with_path=False)
    served = {(call.name, call.id): call.served_by for call in _fork_calls(report)}
    for line, entry in zip(
        diff_rendering.call_lines(report.diff.tool_calls, room - 12, label), report.diff.tool_calls, strict=False
    ):
        call = entry.right
        how = served.get((call.name, call.id or "")) if call else None
        lines.append(line.append(f"   {how}", "dim") if how else line)
    lines += _few(diff_rendering.state_lines(report.diff, room, label), N_STATE_LINES, label)
    for i, line in enumerate(lines):
        yield Text().append("diff     " if i == 0 else " " * LABEL, "dim").append_text(line)


def _few(lines: Iterable[Text], n: int, label: int) -> list[Text]:
    """Returns the first lines, and how many there are besides."""
    from rich.text import Text

    every = list(lines)
    more = len(every) - n
    return [*every[:n], Text(f"{'':<{label}}{count(more, 'more line')}: agentctl diff", "dim")] if more > 1 else every


def _fork_calls(report: DiagnoseReport) -> Iterable[ToolCallReport]:
    return [call for run in (report.fork.group.runs if report.fork else ()) for call in run.tool_calls]


def run_plain(group: RunGroup, profile: str = DEBUG) -> Iterable[Sequence[str | int | None]]:
    """Yields target, status, failed, reply, error, n_tool_calls, nodes of each run."""
    for run in group.runs:
        failed = "" if run.failed is None else str(run.failed).lower()
        target = Place("", run.thread, None, profile).target
        yield target, run.status, failed, run.reply, run.error, len(run.tool_calls), ",".join(run.nodes)


def diagnose_plain(report: DiagnoseReport) -> Iterable[Sequence[str | int | None]]:
    """Yields one row a run, its kind first, then the verdict and the commands."""
    profile = report.replays.copies[0].target.profile if report.replays.copies else DEBUG
    for row in run_plain(report.replays.group, profile):
        yield "replay", *row
    for row in run_plain(report.fork.group, profile) if report.fork else ():
        yield "fork", *row
    yield "verdict", report.verdict.name, report.verdict.sentence
    for line in report.commands:
        yield "next", line
