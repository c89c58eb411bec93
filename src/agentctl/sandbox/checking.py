"""Loading a workflow's registries and its graph to see whether they agree: nothing is called, nothing reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from agentctl.errors import GraphFailed, Refused
from agentctl.records.parity import Finding, WorkflowParity
from agentctl.sandbox.effects import needs_registry
from agentctl.sandbox.environment import environment, import_path
from agentctl.sandbox.failures import missing_module, missing_variable
from agentctl.sandbox.loading import load_graph
from agentctl.sandbox.offline import ReachedOut, offline
from agentctl.sandbox.parity import compare_registries
from agentctl.sandbox.registries import load_registry
from agentctl.sandbox.registry import RegisteredTool, ToolRegistry
from agentctl.sandbox.specs import parse_spec
from agentctl.sandbox.walk import Found

T = TypeVar("T")

DUMMY: Final = "DUMMY"

_NOT_SEEN: Final = Finding(
    "not_seen",
    "the graph is too large to be looked through: it may call tools that were not met",
    "keep large data out of what the graph's nodes hold",
)


@dataclass(frozen=True, slots=True)
class Checked:
    """A workflow to check: where its graph and its registries are, as agentctl.yaml has them."""

    name: str
    graph: str
    production: str | None
    sandbox: str | None


def check_workflows(workflows: Sequence[Checked], *, env: Mapping[str, str], cwd: Path) -> tuple[WorkflowParity, ...]:
    """Returns how the registries of each workflow compare.

    Args:
        workflows: Which.
        env: Environment variables for their code, over the process's own.
        cwd: Folder that relative paths start at.

    Raises:
        GraphFailed: importing or building raised; environment variables that are missing are named together.
        Refused: their code reached for the outside while it was built.
        UsageError: an attribute is no registry.
        NotFound: no such file or attribute.
    """
    builder = _Builder(dict(env), cwd)
    found = tuple(_check(workflow, builder) for workflow in workflows)
    if builder.missing:
        raise builder.needs()
    return found


def load_found(graph: str, *, env: Mapping[str, str], cwd: Path) -> Found:
    """Returns what a walk over a graph meets; the graph is built offline, and nothing is called.

    Raises:
        GraphFailed: importing or building raised; environment variables that are missing are named together.
        Refused: its code reached for the outside while it was built.
        UsageError: it is no graph, or is built on a registry.
        NotFound: no such file or attribute.
    """
    builder = _Builder(dict(env), cwd)

    def found() -> Found:
        with load_graph(graph, env=builder.env, cwd=cwd) as loaded:
            return loaded.found

    met = builder.built(graph, found)
    if builder.missing:
        raise builder.needs()
    return met


def _check(workflow: Checked, builder: _Builder) -> WorkflowParity:
    if workflow.production is None and workflow.sandbox is not None:
        return _check_own(workflow, workflow.sandbox, builder)
    if workflow.production is None or workflow.sandbox is None:
        specs = (("production", workflow.production), ("sandbox", workflow.sandbox))
        absent = tuple(_no_registry(workflow, kind) for kind, spec in specs if spec is None)
        return WorkflowParity(workflow.name, (), absent)
    with import_path(parse_spec(workflow.graph, cwd=builder.cwd).paths):
        production = builder.registry(workflow.production)
        sandbox = builder.registry(workflow.sandbox)
        called, is_complete = builder.called_by(workflow.graph, sandbox)
    tools = compare_registries(production, sandbox, called)
    return WorkflowParity(workflow.name, tools, () if is_complete else (_NOT_SEEN,))


def _check_own(workflow: Checked, spec: str, builder: _Builder) -> WorkflowParity:
    """Compares a sandbox registry with the tools that a graph brings itself, where production has no registry.

    Nothing but the sandbox says which effects these have. Tools that only the sandbox has may be those that the graph
    builds while it runs.
    """
    with import_path(parse_spec(workflow.graph, cwd=builder.cwd).paths):
        sandbox = builder.registry(spec)
        own = builder.own_tools(workflow.graph, sandbox)
    if own is None:
        return WorkflowParity(workflow.name, (), (_no_registry(workflow, "production"),))
    tools = compare_registries(own.registry, sandbox)
    return WorkflowParity(
        workflow.name,
        tuple(
            replace(tool, production=None, findings=tool.findings if tool.name in own.registry else ())
            for tool in tools
        ),
        () if own.is_complete else (_NOT_SEEN,),
    )


def _no_registry(workflow: Checked, kind: str) -> Finding:
    fix = f"{kind}: path.py:attr, under workflows.{workflow.name}"
    return Finding("no_registry", f"agentctl.yaml names no {kind} registry", fix)


@dataclass(frozen=True, slots=True)
class _OwnTools:
    """Tools that a graph brings itself, each with the effect that the sandbox gives it; whether all were seen."""

    registry: ToolRegistry
    is_complete: bool


@dataclass(slots=True)
class _Builder:
    """Builds what workflows name, offline. A variable that is missing is noted, and a dummy stands in to go on."""

    env: dict[str, str]
    cwd: Path
    missing: list[str] = field(default_factory=list)

    def registry(self, spec: str) -> ToolRegistry:
        return self.built(spec, lambda: load_registry(spec, cwd=self.cwd))

    def called_by(self, graph: str, registry: ToolRegistry) -> tuple[tuple[str, ...], bool]:
        """Returns the tools of a graph that only a registry can explain, and whether all of it was seen."""

        def names() -> tuple[tuple[str, ...], bool]:
            with load_graph(graph, registry=registry, env=self.env, cwd=self.cwd) as loaded:
                tools = [found.tool.name for found in loaded.found.tools if needs_registry(found.tool)]
                return tuple(dict.fromkeys(tools)), loaded.found.complete

        return self.built(graph, names)

    def own_tools(self, graph: str, registry: ToolRegistry) -> _OwnTools | None:
        """Returns the tools of a graph that only a registry can explain; None where it is built on a registry."""

        def own() -> _OwnTools | None:
            with load_graph(graph, registry=registry, env=self.env, cwd=self.cwd) as loaded:
                if loaded.kind == "build_graph":
                    return None
                tools = [tool for tool in loaded.found.tools_by_name().values() if needs_registry(tool)]
                entries = (RegisteredTool(tool, registry.effect(tool.name) or "write") for tool in tools)
                return _OwnTools(ToolRegistry(entries), loaded.found.complete)

        return self.built(graph, own)

    def built(self, spec: str, build: Callable[[], T]) -> T:
        """Returns what building something gives."""
        while True:
            try:
                with environment(self.env), offline():
                    return build()
            except GraphFailed as failed:
                cause = failed.__cause__ or failed
                if isinstance(cause, ReachedOut):
                    raise Refused(
                        f"{spec} {cause} while it was built",
                        hint="reach for the outside when a tool is called, not when the registry is built",
                    ) from failed
                variable = missing_variable(cause)
                if variable is None or variable in self.env:
                    if not self.missing or missing_module(cause):
                        raise
                    raise self.needs() from failed  # a dummy may be what it could not work with
                self.env[variable] = DUMMY
                self.missing.append(variable)

    def needs(self) -> GraphFailed:
        """Returns the error that names what is missing, and the words to add."""
        plural = "s" if len(self.missing) > 1 else ""
        names = f"environment variable{plural} {', '.join(self.missing)}"
        return GraphFailed(
            f"the registries and the graph cannot be built without the {names}",
            hint=f"nothing is called: add {' '.join(f'--env {name}={DUMMY}' for name in self.missing)}",
        )
