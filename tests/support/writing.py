"""A real application that writes one thread, turn after turn: in this process a super-step at a time, or in its own.

The process is forked, so that LangGraph is not loaded again. It keeps a line a turn in a file: how many milliseconds
each of its puts took, and what failed.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from operator import add
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Send
from typing_extensions import TypedDict

from tests.support.stores import saver_at

THREAD = "live"
_CONFIG: Any = {"configurable": {"thread_id": THREAD}}
N_STEPS = 8
"""How many parts `steps` writes a turn in."""
_TURNS_A_PAUSE = 4
"""How many turns long it rests after a turn: commands are run beside it, not against it for the processor."""
_TIMEOUT_S = 60.0


class State(MessagesState):
    """The conversation of a turn, and what a subgraph found of it."""

    n_results: Annotated[int, add]
    verdict: str


class Checked(TypedDict, total=False):
    """What the subgraph works on."""

    seen: int
    verdict: str


def build_graph() -> Any:
    """An agent that calls two tools at once in parallel tasks and has their results checked by a subgraph."""
    checking = StateGraph(Checked)
    checking.add_node("weigh", lambda state: {"verdict": "weighed", "seen": 1})
    checking.add_node("sign", lambda state: {"verdict": state["verdict"] + ", signed"})
    checking.add_edge(START, "weigh")
    checking.add_edge("weigh", "sign")

    def agent(state: State) -> dict[str, Any]:
        last = state["messages"][-1]
        if last.type == "tool":
            return {"messages": [AIMessage("done")]}
        calls = [{"name": "look", "args": {"n": n}, "id": f"{last.id}-{n}"} for n in range(2)]
        return {"messages": [AIMessage("", tool_calls=calls)]}

    def route(state: State) -> list[Send] | str:
        calls = getattr(state["messages"][-1], "tool_calls", ())
        return [Send("look", call) for call in calls] or "check"

    def look(state: Any) -> dict[str, Any]:
        answer = ToolMessage(f"saw {state['args']['n']}", tool_call_id=state["id"], name="look")
        return {"messages": [answer], "n_results": 1}

    graph = StateGraph(State)
    graph.add_node("agent", agent)
    graph.add_node("look", look)
    graph.add_node("check", checking.compile())
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", route, ["look", "check"])
    graph.add_edge("look", "agent")
    return graph.compile()


def late_puts(saver: Any) -> Any:
    """Returns the saver, which now stores a checkpoint only after the writes that belong to it."""
    put, get_tuple = saver.put, saver.get_tuple
    held: list[tuple[Any, ...]] = []

    def flush() -> None:
        while held:
            put(*held.pop())

    def late_put(config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        flush()
        held.append((config, deepcopy(checkpoint), metadata, new_versions))
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    def settled(config: Any) -> Any:
        flush()
        return get_tuple(config)

    saver.put, saver.get_tuple = late_put, settled
    return saver


def _turn() -> dict[str, Any]:
    """A question that begins the conversation anew, so that a turn takes as long as the one before."""
    return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), ("user", "and now?")]}


def steps(saver: Any) -> Generator[None]:
    """Writes turns on a thread without end, one super-step of the graph or its subgraph each time it is asked.

    It is to be closed before the saver is.
    """
    graph = build_graph()
    graph.checkpointer = saver
    while True:
        for _ in graph.stream(_turn(), _CONFIG, durability="sync", subgraphs=True):
            yield


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that writes. Its store is in WAL or in rollback mode, or in Postgres."""

    url: str
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """What it has said so far, one line a turn; a line that is being written is left out."""
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines(keepends=True) if line[-1] == "\n"]

    def failures(self) -> list[str]:
        """What it could not write, and why."""
        return [line["failed"] for line in self.lines() if line["failed"]]

    def goes_on(self, n_turns: int = 2) -> None:
        """Returns once it has ended so many more turns than it had; it is stuck where that takes long."""
        deadline, wanted = time.monotonic() + _TIMEOUT_S, len(self.lines()) + n_turns
        while len(self.lines()) < wanted:
            assert time.monotonic() < deadline, f"no turn was ended any more: {self.failures()}"
            time.sleep(0.005)


@contextmanager
def writing(url: str, folder: Path) -> Iterator[Writer]:
    """Gives a process that writes the thread all the while; the store is set up."""
    writer = Writer(url, folder / "writer.jsonl")
    writer.log.touch()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(tell)
        _become(url, writer.log, told)
    os.close(told)
    try:
        writer.goes_on()
        yield writer
    finally:
        os.close(tell)
        _, status = os.waitpid(child, 0)
    assert status == 0


def _become(url: str, log: Path, told: int) -> None:
    """Runs in the child, which never returns to the test that it was forked in."""
    code = 1
    try:
        _write(url, log, told)
        code = 0
    finally:
        os._exit(code)


def _timed(saver: Any, note: Callable[[float], None]) -> None:
    """Makes a saver tell how long each put took."""
    for name in ("put", "put_writes"):

        def timed(*args: Any, _put: Any = getattr(saver, name), **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return _put(*args, **kwargs)
            finally:
                note(time.perf_counter() - begun)

        setattr(saver, name, timed)


def _write(url: str, log: Path, told: int) -> None:
    took_s: list[float] = []
    with saver_at(url) as saver, log.open("a", encoding="utf-8") as lines:
        saver.is_setup = True  # or the saver of SQLite puts a file in rollback mode into WAL mode
        _timed(saver, took_s.append)
        graph = build_graph()
        graph.checkpointer = saver
        pause_s = 0.0
        while not select.select([told], [], [], pause_s)[0]:
            failed, begun = "", time.monotonic()
            try:
                graph.invoke(_turn(), _CONFIG, durability="sync")
            except Exception as error:
                failed = f"{type(error).__name__}: {error}"
            lines.write(json.dumps({"puts_ms": [round(one * 1000, 3) for one in took_s], "failed": failed}) + "\n")
            lines.flush()
            took_s.clear()
            pause_s = _TURNS_A_PAUSE * (time.monotonic() - begun)
