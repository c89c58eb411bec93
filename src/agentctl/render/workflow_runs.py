"""`run` and `resume` for people, pipes and programs."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import dumps
from agentctl.records.copies import Place, command
from agentctl.records.runs import Plan, RunGroup, RunReport, WorkflowReport, answer_words
from agentctl.render.clean import clean, cut
from agentctl.render.diff import place
from agentctl.render.machine import document
from agentctl.render.run_documents import effects_object, plan_object, run_object
from agentctl.render.runs import effects_words, outcome, run_plain
from agentctl.render.runs import plan_lines as lines_of_plan
from agentctl.render.streams import event_object
from agentctl.render.words import names

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from agentctl.experiments.workflows.departures import Departure

LABEL = 9
PRODUCTION = "production"
_MAX_ANSWER = 200
END = "end"
"""First cell of the row that follows the rows of events."""


def plan_lines(verb: str, departure: Departure, plan: Plan) -> list[str]:
    """Returns what is about to happen as plain lines, for stderr."""
    thread = replace(plan.source, id=None).target
    first = f"{verb} of {thread}{', a new thread' if departure.is_new else ''}: from here on these run: "
    unknown = f"what follows {names(departure.finished)}" if departure.finished else "what the input leads to"
    lines = [first + (names(plan.nodes) if plan.nodes else unknown)]
    lines += [f"  answers {id} with {cut(dumps(answer), _MAX_ANSWER)}" for id, answer in departure.answers.items()]
    lines += [f"  goes on waiting: {_question(asked)}" for asked in departure.left]
    lines += [f"  discards: {_question(asked)}" for asked in departure.discarded]
    if departure.dropped and not departure.discarded:
        lines.append(f"  does not go on: {names(departure.dropped)}, where the thread stopped")
    lines += [f"  warning: {warning}" for warning in departure.warnings]
    return lines + lines_of_plan(replace(plan, interrupts=()), verb)[1:]


def _question(asked: Mapping[str, object]) -> str:
    return f"{asked.get('id')}  {asked.get('node')}  {dumps(asked.get('value'))}"


def human(verb: str, report: WorkflowReport, width: int, pasteable: Callable[[str], str]) -> Iterable[RenderableType]:
    """Yields how it ended, what its tools did, what it asks, and what to type next."""
    thread = shlex.quote(replace(report.target, id=None).target)
    if (run := report.run) is not None:
        tools = "called for real" if report.tools == PRODUCTION else effects_words(report.side_effects)
        status = run.status.replace("_", " ")
        yield _row(verb, f"{thread}  {status}   nodes: {names(run.nodes)}   tools: {tools}", width=width)
        if not run.interrupts:
            label, text, style = outcome(run)
            yield _row(label, cut(text, max(width - LABEL, 24)), style)
        for asked in run.interrupts:
            yield _row("asks", f"{asked.get('id')}  {asked.get('node')}", "yellow")
            yield _row("", dumps(asked.get("value")), "yellow", width=width)
    for warning in report.warnings:
        yield _row("warning", warning, "yellow", width=width)
    if report.case:
        yield _row("case", report.case)
    for i, line in enumerate(report.commands):
        yield _row("next" if i == 0 else "", pasteable(line))


def plain(report: WorkflowReport, *, streamed: bool) -> Iterable[Sequence[str | int | None]]:
    """Yields target, status, failed, reply, error, n_tool_calls, nodes; after rows of events with `end` before them."""
    if report.run is None:
        return
    for row in run_plain(RunGroup((report.run,), 0, 0, 0, (0.0, 1.0)), report.target.profile):
        yield (END, *row) if streamed else row


def as_document(verb: str, report: WorkflowReport) -> dict[str, object]:
    """Returns the JSON document `agentctl.run/1` or `agentctl.resume/1`."""
    run = report.run or _not_run(report)
    return document(
        verb,
        {
            "target": place(report.target),
            "workflow": report.workflow,
            "tools": report.tools,
            "dry_run": report.run is None,
            "plan": plan_object(report.plan),
            "discarded": [dict(asked) for asked in report.discarded],
            "events": [event_object(event) for event in report.events],
            **run_object(run),
            "side_effects": effects_object(report.side_effects),
            "case": report.case,
            "commands": list(report.commands),
            "warnings": list(report.warnings),
        },
    )


def _not_run(report: WorkflowReport) -> RunReport:
    from agentctl.records.runs import Usage

    return RunReport(report.target.thread, "not_run", (), (), None, None, None, Usage(), head=report.target.id)


def next_commands(
    workflow: str, target: Place, run: RunReport | None, kept: Sequence[str], graph: Sequence[str]
) -> tuple[str, ...]:
    """Returns what to type next.

    Args:
        workflow: The workflow as `run` takes it.
        target: The thread.
        run: How it ended; None where it was only planned.
        kept: Options that a next run must repeat.
        graph: Options by which `resume` finds the graph.
    """
    thread = replace(target, id=None).target
    go_on = ("run", workflow, "--thread", thread, *kept)
    if run is None:
        return ()
    if run.interrupts:
        stub = f" {run.blocked_hint}" if run.blocked_hint else ""
        return (
            command("resume", thread, *answer_words(run.interrupts), *graph, *kept) + stub,
            command("show", thread),
            command("fork", thread, "--resume", "JSON", *graph),
        )
    match run.status:
        case "done":
            return command("history", thread), command("show", thread, "--messages")
        case "blocked":
            stub = f" {run.blocked_hint}" if run.blocked_hint else ""
            return command(*go_on) + stub, command("show", thread)
        case "step_limit":
            return command(*go_on, "--max-steps", "N"), command("history", thread)
        case "timeout":
            return command(*go_on, "--timeout", "SECONDS"), command("history", thread)
        case _:
            return command("show", thread), command(*go_on)


def _row(label: str, text: str, style: str = "", *, width: int | None = None) -> Text:
    """Returns a labelled line; with a width, text that is longer goes on under itself."""
    from rich.text import Text

    lines = [clean(text)]
    if width is not None:
        lines = textwrap.wrap(lines[0], max(width - LABEL, 24), break_on_hyphens=False) or [""]
    row = Text().append(f"{label:<{LABEL}}", "dim").append(lines[0], style)
    for line in lines[1:]:
        row.append("\n" + " " * LABEL).append(line, style)
    return row
