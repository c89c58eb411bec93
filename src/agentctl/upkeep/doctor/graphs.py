"""A loaded graph beside stored heads: what the rows name and it lacks, and what it would run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentctl.errors import AgentctlError
from agentctl.experiments.fitting import node_is_gone, routes_are_gone
from agentctl.experiments.runs.graph_parts import inner_graph
from agentctl.records.threads import UNKNOWN
from agentctl.revisions.namespaces import node_path
from agentctl.stores.base import Reader
from agentctl.stores.reading.layout import START
from agentctl.upkeep.doctor.records import Finding, Findings, Head

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

    Graph = Pregel[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Declared:
    """What a graph, or a subgraph that it declares, has: nodes, and channels of state and of routes."""

    nodes: frozenset[str]
    channels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a resume would run by the graph: nodes with multiplicity, or why it cannot tell."""

    next: tuple[str, ...]
    problem: str | None = None


def node_gone(head: Head, graph: Declared) -> Findings:
    """Nodes that a head waits for and the graph does not have: LangGraph runs nothing and says nothing."""
    for task in head.step.tasks:
        if not task.finished and task.name not in (UNKNOWN, START) and task.name not in graph.nodes:
            cause = node_is_gone(task.name, graph.nodes)
            alike = next(iter(get_close_matches(task.name, graph.nodes, n=1)), None)
            words = ("fork", head.site.at(head.id), "--goto", alike) if alike else ("history", head.site.target)
            helps = head.site.command(*words)
            yield Finding("node_gone", head.id, cause, helps, task.name)


def channel_gone(head: Head, graph: Declared) -> Findings:
    """State that the graph has no channel for: it is dropped when the thread is loaded."""
    for channel in head.channels:
        if channel not in graph.channels:
            cause = f"channel {channel} is stored, and the graph has none of that name"
            yield Finding("channel_gone", head.id, cause, head.site.show(head.id, "--channel", channel), channel)


def trigger_gone(head: Head, graph: Declared) -> Findings:
    """Nodes that exist and are due by routing channels none of which the graph has, such as a join with new sides."""
    for node, channels in head.routes.items():
        if node in graph.nodes and not graph.channels.intersection(channels):
            cause = routes_are_gone(node, channels)
            helps = head.site.command("fork", head.site.at(head.id), "--goto", node)
            yield Finding("trigger_gone", head.id, cause, helps, node)


def resume(head: Head, resumed: Resumed) -> Findings:
    """What a resume would run; nodes that wait by the rows and exist, where that is nothing."""
    waiting = [task.name for task in head.step.tasks if not task.finished]
    helps = head.site.command("fork", head.site.at(head.id), "--no-run")
    if resumed.problem is not None:
        yield Finding("resume_lost", head.id, f"the graph cannot go on from it: {resumed.problem}", helps)
    elif resumed.next:
        yield Finding("resume_plan", head.id, f"a resume would run {_counted(resumed.next)}", head.site.show(head.id))
    elif waiting:
        cause = f"{_counted(waiting)} waits by the rows, and the graph would run nothing, without an error"
        yield Finding("resume_lost", head.id, cause, head.site.show(head.id))


_RULES: Final = (node_gone, channel_gone, trigger_gone)


@dataclass(slots=True)
class GraphRules:
    """The rules above for one graph, as a rule on heads.

    Attributes:
        graph: The compiled graph.
        reader: The store, of which the head is copied into a scratch store to ask the graph.
    """

    graph: Graph
    reader: Reader
    _declared: dict[str, Declared | None] = field(default_factory=dict)

    def __call__(self, head: Head) -> Findings:
        """Yields what is wrong with a head; of a subgraph that the graph does not declare nothing is known."""
        if not head.is_live:
            return
        declared = self._of(node_path(head.site.ns))
        if declared is None:
            return
        found = [finding for rule in _RULES for finding in rule(head, declared)]
        yield from found
        if head.site.ns == "" and head.step.tasks and not any(f.code in ("node_gone", "trigger_gone") for f in found):
            yield from resume(head, dry_run(self.reader, head, self.graph))

    def _of(self, path: str) -> Declared | None:
        if path not in self._declared:
            found = inner_graph(self.graph, path)
            self._declared[path] = (
                None if found is None else Declared(frozenset(found.nodes) - {START}, frozenset(found.channels))
            )
        return self._declared[path]


def dry_run(reader: Reader, head: Head, graph: Graph) -> Resumed:
    """Returns what the graph would run from a head, asked on a scratch copy of it; no node runs."""
    from agentctl.experiments.forking.scratch import THREAD, scratch_copy
    from agentctl.stores.copying.selection import for_resume

    row = head.step.row
    try:
        plan = for_resume(reader, row.thread, row.ns, row.id, THREAD)
        with scratch_copy(reader, plan, graph) as scratch:
            return Resumed(tuple(scratch.state().next))
    except AgentctlError as error:
        return Resumed((), error.message)


@contextmanager
def graph_loaded(graph: str, *, sandbox: str | None, env: Mapping[str, str], cwd: Path) -> Iterator[Graph]:
    """Gives the graph that a spec names, built on its sandbox tools where it takes tools.

    Raises:
        UsageError: the spec names no graph.
        NotFound: no such file or attribute.
        GraphFailed: importing or building it raised.
    """
    from agentctl.sandbox.environment import environment, import_path
    from agentctl.sandbox.loading import load_graph
    from agentctl.sandbox.registries import load_registry
    from agentctl.sandbox.specs import parse_spec

    with ExitStack() as stack:
        stack.enter_context(environment(env))
        stack.enter_context(import_path(parse_spec(graph, cwd=cwd).paths))
        registry = load_registry(sandbox, cwd=cwd) if sandbox else None
        yield stack.enter_context(load_graph(graph, registry=registry, env=env, cwd=cwd)).graph


def _counted(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"{name} ({n})" if n > 1 else name for name, n in Counter(names).items())
