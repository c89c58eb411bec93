"""Whether a workflow's sandbox tools stand for its production tools: tool by tool, with what differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentctl.records.runs import Effect

FindingCode = Literal[
    "no_registry", "missing", "unknown", "schema", "effect", "description", "no_stub", "unregistered", "not_seen"
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not the same. `message` says what, `fix` what to do about it."""

    code: FindingCode
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class ToolParity:
    """One tool of either registry, or one that only the graph has.

    Attributes:
        name: What the model calls it by.
        production: Its effect in production, None where that registry lacks it.
        sandbox: Its effect in the sandbox, None where that registry lacks it.
        answers: Whether the sandbox answers a call by itself, without a recording.
        findings: What is wrong with it; empty where it is the same in both.
    """

    name: str
    production: Effect | None
    sandbox: Effect | None
    answers: bool
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkflowParity:
    """A workflow's tools, and what is wrong with it beyond a tool."""

    workflow: str
    tools: tuple[ToolParity, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def n_findings(self) -> int:
        """Everything that is wrong."""
        return len(self.findings) + sum(len(tool.findings) for tool in self.tools)
