"""A scratch copy of a point, where a fork is made and checked before anything is written to the debug store.

It is a SQLite file in a temporary folder: whatever a form turns out to be wrong about, nothing half-made is left.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agentctl.errors import AgentctlError, Blocked, GraphFailed, Refused
from agentctl.experiments.runs.running import in_event_loop, their_traceback, untraced
from agentctl.experiments.runs.savers import open_saver
from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.calls import CallBlocked
from agentctl.sandbox.gate import running
from agentctl.sandbox.graph_copies import copied
from agentctl.stores.base import CopyPlan, Reader, Writer
from agentctl.stores.copying.execute import copy
from agentctl.stores.open import open_writer

if TYPE_CHECKING:
    from langgraph.pregel import Pregel
    from langgraph.types import StateSnapshot

T = TypeVar("T")

THREAD = "scratch"


@dataclass(frozen=True, slots=True)
class Scratch:
    """One thread, `THREAD`, in a store of its own, and the graph that runs there."""

    url: str
    writer: Writer
    graph: Pregel[Any, Any, Any, Any]

    def do(self, work: Callable[[Pregel[Any, Any, Any, Any]], Awaitable[T]]) -> T:
        """Does async work with the graph on this store.

        No node runs, but routing functions and reducers do, and they are the application's: a tool that they call is
        stopped.

        Raises:
            Blocked: A tool was called.
            Refused: LangGraph refused the update.
            GraphFailed: The application's code raised.
        """
        from langgraph.errors import InvalidUpdateError

        async def with_saver() -> T:
            async with open_saver(self.url) as saver:
                return await work(copied(self.graph, checkpointer=saver))

        async def guarded() -> T:
            with running(Desk(Policy(mode="sandbox"))), untraced():
                return await with_saver()

        try:
            return in_event_loop(guarded())
        except CallBlocked as error:
            raise Blocked(f"a routing function of the graph calls a tool: {error}", hint=error.hint) from error
        except InvalidUpdateError as error:
            raise Refused(f"LangGraph refuses the update: {error}") from error
        except AgentctlError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise GraphFailed(f"the graph raised {said}", traceback=their_traceback(error)) from error

    def state(self, ns: str = "", id: str | None = None) -> StateSnapshot:
        """Returns the graph's state: at a checkpoint, or now, with what finished tasks wrote applied."""

        async def read(graph: Pregel[Any, Any, Any, Any]) -> StateSnapshot:
            return await graph.aget_state(config(ns, id))

        return self.do(read)

    def update(
        self,
        updates: Sequence[Any],
        ns: str = "",
        id: str | None = None,
        *,
        by: Pregel[Any, Any, Any, Any] | None = None,
    ) -> str:
        """Applies one super-step of LangGraph `StateUpdate`s and returns the id of the checkpoint that it made.

        Args:
            updates: The updates.
            ns: Namespace.
            id: The checkpoint; None for the newest.
            by: The graph of the namespace, with routes of its own; None for the one that the root graph declares.
        """

        async def apply(graph: Pregel[Any, Any, Any, Any]) -> str:
            if by is None:
                made = await graph.abulk_update_state(config(ns, id), [updates])
            else:
                own = copied(by, checkpointer=graph.checkpointer)
                made = await own.abulk_update_state(inner_config(ns, id, graph.checkpointer), [updates])
            return str(made["configurable"]["checkpoint_id"])

        return self.do(apply)

    def settle(self) -> StateSnapshot:
        """Ends a step whose tasks are all finished and returns the state before the next one; no node runs."""

        async def step(graph: Pregel[Any, Any, Any, Any]) -> StateSnapshot:
            await graph.ainvoke(None, config(), interrupt_before="*", durability="sync")
            return await graph.aget_state(config())

        return self.do(step)


def config(ns: str = "", id: str | None = None) -> Any:
    """Returns the LangGraph config of the scratch thread, of a namespace or of one checkpoint of it."""
    configurable: dict[str, object] = {"thread_id": THREAD, "checkpoint_ns": ns}
    return {"configurable": {**configurable, **({"checkpoint_id": id} if id else {})}}


def inner_config(ns: str, id: str | None, checkpointer: Any) -> Any:
    """Returns the config by which the graph of a namespace itself is updated, as the root graph calls it.

    Source: `bulk_update_state`, which hands its checkpointer on to the subgraph (langgraph 1.2.24, pregel/main.py).
    """
    if not ns:
        return config(ns, id)
    from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER

    return {"configurable": {**config(ns, id)["configurable"], CONFIG_KEY_CHECKPOINTER: checkpointer}}


@contextmanager
def scratch_copy(reader: Reader, plan: CopyPlan, graph: Pregel[Any, Any, Any, Any]) -> Iterator[Scratch]:
    """Makes a scratch copy of a plan's rows; it is gone when the block ends.

    Args:
        reader: Where the rows are.
        plan: Which rows; its target name is not used.
        graph: The graph to look at them with.
    """
    from agentctl.sandbox.injection import sandboxed

    with tempfile.TemporaryDirectory(prefix="agentctl-") as folder, sandboxed(graph):
        url = str(Path(folder) / "scratch.sqlite")
        writer = open_writer(url)
        try:
            writer.setup()
            copy(reader, writer, [replace(plan, as_thread=THREAD)])
            yield Scratch(url, writer, graph)
        finally:
            writer.close()
