"""Which namespaces below the root a thread has on a server, which has no list of them.

A task that runs a subgraph names its namespace, whether or not anything ran there. A subagent that a tool runs is named
nowhere; its namespace is that of the tool's task, so tasks that wrote a tool's result, or that wait for an answer, are
tried. What a finished node called in a way that LangGraph cannot see stays unknown.

Source: langgraph 1.2.24, pregel/main.py (`_prepare_state_snapshot`), pregel/_algo.py (`prepare_single_task`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from agentctl.errors import StoreError
from agentctl.records.rows import WriteRow
from agentctl.stores.reading.layout import INTERRUPT, NS_END, task_ns
from agentctl.stores.server.states import State

MAX_TRIED: Final = 100
"""How many tasks are tried in one thread, newest first; each is a request."""

_TOOL_RESULT: Final = b'"tool_call_id"'

StatesOf = Callable[[str], Mapping[str, State]]


def inner_namespaces(states_of: StatesOf, warn: Callable[[str], None]) -> Iterator[str]:
    """Yields the namespaces below the root that have checkpoints.

    Args:
        states_of: Gives the states of a namespace, by id; empty where there are none.
        warn: Told of what could not be tried.

    Raises:
        StoreError: A namespace that a task names cannot be read.
    """
    found: set[str] = set()
    tried: set[str] = set()
    open_namespaces = [""]
    while open_namespaces:
        ns = open_namespaces.pop()
        states = states_of(ns)
        for name in _named(states):
            for candidate in (name, _shared(name)):
                if candidate not in found and states_of(candidate):
                    found.add(candidate)
                    open_namespaces.append(candidate)
                    yield candidate
        for name in _guessed(ns, states):
            if name in found or name in tried:
                continue
            if len(tried) == MAX_TRIED:
                warn(f"subagents that tools ran were looked for in the {MAX_TRIED} newest steps with tools only")
                return
            tried.add(name)
            try:
                has_states = bool(states_of(name))
            except StoreError as error:
                warn(f"subagents that tools ran are not listed: {error.message}")
                return
            if has_states:
                found.add(name)
                open_namespaces.append(name)
                yield name


def _named(states: Mapping[str, State]) -> Iterator[str]:
    yield from dict.fromkeys(task.ns for state in states.values() for task in state.tasks if task.ns)


def _shared(ns: str) -> str:
    """Returns the namespace that all runs of a subgraph with a memory of its own share: without the task's id."""
    return ns.rpartition(NS_END)[0] or ns


def _guessed(ns: str, states: Mapping[str, State]) -> Iterator[str]:
    for _, state in sorted(states.items(), reverse=True):
        telling = {w.task_id for w in state.writes if _tells(w)}
        yield from (task_ns(ns, task.name, task.id) for task in state.tasks if not task.ns and task.id in telling)


def _tells(write: WriteRow) -> bool:
    """Says whether what a task wrote can come of a subgraph inside it: a question, or the result of a tool."""
    return write.channel == INTERRUPT or write.value is None or _TOOL_RESULT in write.value.data
