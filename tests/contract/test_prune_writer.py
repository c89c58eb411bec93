"""Pruning beside an application that writes all the while: its runs succeed, and its thread is whole."""

from __future__ import annotations

import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from tests.catalog import config_of, go
from tests.support.pruning import clone, faults, prune, request
from tests.support.stores import saver_at

_FORK = multiprocessing.get_context("fork")
N_OLD, LIVE = 2, "live"
_LONGEST_RUN_S = 60.0


def chat(saver: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]})
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


class Application:
    """Another process that has one turn after another on one thread, until it is told to stop."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ran, self._stop = _FORK.Semaphore(0), _FORK.Event()
        self._ended, self._told = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(target=self._talk)

    def __enter__(self) -> Application:
        self._process.start()
        self.wait(2)
        return self

    def wait(self, n_runs: int = 1) -> None:
        """Waits until it has ended some more runs."""
        while self._ran.acquire(block=False):
            pass
        for _ in range(n_runs):
            assert self._ran.acquire(timeout=_LONGEST_RUN_S), "the application does not get on"

    def end(self) -> int:
        """Ends it; returns how many runs it had, none of which may have failed."""
        self._stop.set()
        assert self._ended.poll(_LONGEST_RUN_S)
        n_runs, problem = self._ended.recv()
        assert problem == ""
        return int(n_runs)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._process.join()

    def _talk(self) -> None:
        n_runs, problem = 0, ""
        try:
            with saver_at(self._url) as saver:
                saver.is_setup = True  # or it would turn a file with a rollback journal into one with a WAL
                graph = chat(saver)
                while not self._stop.is_set():
                    go(graph, LIVE, {"messages": [("user", f"question {n_runs}")]})
                    n_runs += 1
                    self._ran.release()
        except BaseException as error:
            problem = f"{type(error).__name__}: {error}"
        self._told.send((n_runs, problem))


@pytest.fixture(params=["wal", "rollback", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store with old threads of a few turns each."""
    found = (
        request.getfixturevalue("fresh_postgres_url") if request.param == "postgres" else str(tmp_path / "app.sqlite")
    )
    with saver_at(found) as saver:
        saver.setup()
        for turn in range(3):
            go(chat(saver), "old-0", {"messages": [("user", f"question {turn}")]})
    for n in range(1, N_OLD):
        clone(found, "old-0", f"old-{n}")
    if request.param == "rollback":
        with closing(sqlite3.connect(found)) as connection:
            assert connection.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    return str(found)


def test_an_application_goes_on_writing_while_threads_are_pruned(url: str) -> None:
    with Application(url) as application:
        thinned = prune(url, request(batch_rows=12), pause=application.wait)
        live = prune(url, request(thread=LIVE, batch_rows=12))
        for _ in range(5):
            live += prune(url, request(thread=LIVE, orphans=True))
        deleted = prune(
            url, request(delete=True, statuses=frozenset({"done"}), kept={LIVE: frozenset()}, batch_rows=12)
        )
        application.wait()
        n_runs = application.end()

    old = {f"old-{n}" for n in range(N_OLD)}
    assert {one.thread for one in thinned if one.outcome == "done"} >= old
    assert all(one.outcome in ("done", "overtaken") and not one.faults for one in (*live, *thinned))
    assert {one.thread for one in deleted if one.outcome == "done"} == old
    with saver_at(url) as saver:
        messages = chat(saver).get_state(config_of(LIVE)).values["messages"]
    asked = [message.text for message in messages if message.type == "human"]
    assert asked == [f"question {n}" for n in range(n_runs)]
    assert len(messages) == 2 * n_runs
    assert faults(url, LIVE) == set()
