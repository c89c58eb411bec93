"""How sandbox and production tools compare, for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agentctl.records.parity import Finding, ToolParity, WorkflowParity
from agentctl.render.grid import Cell, Column, grid
from agentctl.render.machine import document
from agentctl.render.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS = (
    Column("workflow", style="cyan"),
    Column("tool"),
    Column("production", style="dim"),
    Column("sandbox", style="dim"),
    Column("parity", shrink_to=16),
)


def human(found: Sequence[WorkflowParity], width: int) -> Iterable[RenderableType]:
    """Yields one line a tool, each finding with what to do about it, and how many there are."""
    yield from grid(_COLUMNS, list(_rows(found)), width)
    for workflow, tool, finding in _findings(found):
        yield ""
        yield f"{' '.join(part for part in (workflow, tool) if part)}: {finding.message}\nfix: {finding.fix}"
    yield ""
    n_tools, n_findings = sum(len(each.tools) for each in found), sum(each.n_findings for each in found)
    yield f"{count(n_tools, 'tool')} in {count(len(found), 'workflow')}, {count(n_findings, 'finding')}"


def _rows(found: Sequence[WorkflowParity]) -> Iterator[tuple[Cell | str, ...]]:
    for workflow in found:
        for finding in workflow.findings:
            yield workflow.workflow, "", "", "", Cell(_words(finding), "red")
        for tool in workflow.tools:
            parity = Cell(", ".join(map(_words, tool.findings)), "red") if tool.findings else Cell("same", "green")
            yield workflow.workflow, tool.name, tool.production or "-", _in_sandbox(tool), parity


def _words(finding: Finding) -> str:
    return finding.code.replace("_", " ")


def _in_sandbox(tool: ToolParity) -> str:
    """Returns its effect and who answers it: a stub, or a recording alone; a `state` tool runs."""
    if tool.sandbox is None:
        return "-"
    if tool.sandbox == "state":
        return tool.sandbox
    return f"{tool.sandbox}, {'stub' if tool.answers else 'recorded only'}"


def _findings(found: Iterable[WorkflowParity]) -> Iterator[tuple[str, str, Finding]]:
    for workflow in found:
        for finding in workflow.findings:
            yield workflow.workflow, "", finding
        for tool in workflow.tools:
            for finding in tool.findings:
                yield workflow.workflow, tool.name, finding


def plain(found: Sequence[WorkflowParity]) -> Iterable[Sequence[str | None]]:
    """Yields workflow, tool, effects in production and sandbox, answers, code, message, fix; a row a finding."""
    for workflow in found:
        for finding in workflow.findings:
            yield workflow.workflow, None, None, None, None, finding.code, finding.message, finding.fix
        for tool in workflow.tools:
            own = (workflow.workflow, tool.name, tool.production, tool.sandbox, str(tool.answers).lower())
            for each in tool.findings:
                yield *own, each.code, each.message, each.fix
            if not tool.findings:
                yield *own, None, None, None


def as_document(found: Sequence[WorkflowParity], file: str) -> dict[str, object]:
    """Returns the JSON document `agentctl.sandbox.check/1`."""
    items = [
        {
            "workflow": workflow.workflow,
            "tools": [
                {
                    "name": tool.name,
                    "production": tool.production,
                    "sandbox": tool.sandbox,
                    "answers": tool.answers,
                    "findings": [_finding(each) for each in tool.findings],
                }
                for tool in workflow.tools
            ],
            "findings": [_finding(each) for each in workflow.findings],
            "n_findings": workflow.n_findings,
        }
        for workflow in found
    ]
    return document(
        "sandbox.check",
        {
            "store": file,
            "items": items,
            "n_total": len(items),
            "truncated": False,
            "n_findings": sum(each.n_findings for each in found),
        },
    )


def _finding(finding: Finding) -> dict[str, object]:
    return {"code": finding.code, "message": finding.message, "fix": finding.fix}
