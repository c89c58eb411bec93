"""Threads that are pruned beside a copy that is not, on a store of either kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from langgraph.types import Interrupt

from agentctl.records.faults import Severity
from agentctl.records.prunes import ThreadPrune
from agentctl.stores.deleting import Deleter, open_deleter
from agentctl.stores.open import open_reader, open_writer
from agentctl.upkeep.doctor.examine import Examination
from agentctl.upkeep.prune.prune import Pruning
from agentctl.upkeep.prune.request import PruneRequest
from tests.catalog import config_of

NOW = datetime(2100, 1, 1, tzinfo=UTC)


def request(**asked: Any) -> PruneRequest:
    """What is asked for, of any age."""
    return PruneRequest(now=NOW, **asked)


def prune(url: str, asked: PruneRequest, *, apply: bool = True, pause: Any = lambda: None) -> list[ThreadPrune]:
    """Prunes a store and returns what it tells of its threads."""
    with closing(open_reader(url)) as reader, closing(open_deleter(url, reader)) as deleter:
        return list(Pruning(reader, deleter, asked, apply, pause).threads())


@contextmanager
def deleter_of(url: str) -> Iterator[Deleter]:
    """A store as one that rows can be taken from."""
    with closing(open_reader(url)) as reader, closing(open_deleter(url, reader)) as deleter:
        yield deleter


def clone(url: str, thread: str, name: str) -> str:
    """Puts every row of a thread into the store again under another name, and returns that."""
    writer: Any = open_writer(url)
    with closing(writer), writer.transaction() as transaction:
        transaction.clone(thread, name)
    return name


def faults(url: str, thread: str, severity: Severity = "fault") -> set[str]:
    """Codes of what doctor finds in a thread."""
    with closing(open_reader(url)) as reader:
        found = Examination(reader, NOW).thread(thread).faults
    return {fault.code for fault in found if fault.severity == severity}


def states(graph: Any, thread: str) -> dict[str, tuple[Any, ...]]:
    """What stock LangGraph loads of each checkpoint of a thread's root graph, by id."""
    return {
        state.config["configurable"]["checkpoint_id"]: (
            plain(state.values),
            sorted(state.next),
            sorted((task.name, repr(task.error), [i.value for i in task.interrupts]) for task in state.tasks),
        )
        for state in graph.get_state_history(config_of(thread))
    }


def plain(value: Any) -> Any:
    """A value with its messages as what they say: ids are new at every load of some."""
    if hasattr(value, "content"):
        return (value.type, str(value.content), repr(getattr(value, "tool_calls", "")))
    if isinstance(value, Interrupt):
        return repr(value.value)  # its id is of the thread that asked
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return repr(value)


def named(request_: PruneRequest, thread: str) -> PruneRequest:
    """The same of one thread, which the command names."""
    return replace(request_, thread=thread)
