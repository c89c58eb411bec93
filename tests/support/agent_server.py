"""A real LangGraph Agent Server on loopback (`langgraph dev`), and threads of every kind on it.

It serves `tests/support/served/graph.py` from a temporary folder, with its own storage or with a stock saver on a
SQLite file or a Postgres database. Its environment makes it call nobody. One server a configuration is shared by all
tests of one process: the files that use one belong to the xdist group GROUP.

Source: langgraph-cli 0.4.40 (`dev`), langgraph-api 0.16.7, langgraph-runtime-inmem 0.36.7.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.support.postgres import _dies_with_parent

GROUP = "agent-server"
"""The xdist group of every file that uses a server: `pytestmark = pytest.mark.xdist_group(GROUP)`."""

SERVED = Path(__file__).parent / "served"
GRAPHS = ("chat", "fan", "outer", "letter", "failing", "slow", "delta")
NAMES = (
    *("chat", "forked", "fan", "outer", "asking", "answered", "failing", "busy", "delta", "long"),
    *("empty", "bare"),
)
"""Seeded threads: on the last two nothing ran, and `bare` is of no graph."""
N_LONG = 37
"""Checkpoints of the thread `long`: several pages of ten, and no multiple of one."""

_N_JOBS = 12
"""Runs at a time: more than are seeded at once, one of which does not end."""

_OPTIONS = ("--no-browser", "--no-reload", "--n-jobs-per-worker", str(_N_JOBS))
_START_S = 120.0
_POLL_S = 0.05
_LET_GO = "let-go"


@dataclass(frozen=True, slots=True)
class AgentServer:
    """A running server.

    Attributes:
        url: Its address.
        folder: The folder that it runs in, with `graph.py`.
        database: Path or URL of the database that it checkpoints into; '' for its own storage.
    """

    url: str
    folder: Path
    database: str

    @property
    def graph_file(self) -> Path:
        """The file of the served graphs."""
        return self.folder / "graph.py"

    def client(self) -> SyncLangGraphClient:
        """A client of its own, which sends no key."""
        return get_sync_client(url=self.url, api_key=None, timeout=_START_S)

    def let_go(self) -> None:
        """Lets the busy thread finish."""
        (self.folder / _LET_GO).touch()


def thread_id(name: str) -> str:
    """The id of a seeded thread, one of NAMES."""
    return str(uuid5(NAMESPACE_URL, f"thread:{name}"))


@contextmanager
def seeded_agent_server(folder: Path, database: str = "") -> Iterator[AgentServer]:
    """A running server with the threads of `seed`."""
    with running_agent_server(folder, database) as server:
        seed(server)
        try:
            yield server
        finally:
            server.let_go()


@contextmanager
def running_agent_server(folder: Path, database: str = "") -> Iterator[AgentServer]:
    """Starts a server in a folder, yields it when it answers, and stops it at the end.

    Args:
        folder: An empty folder of its own.
        database: A SQLite file or a Postgres URL for the stock saver; '' for the server's own storage.
    """
    _lay_out(folder, bool(database))
    port = _free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "langgraph_cli", "dev", *_OPTIONS, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=_environment(folder, database),
            preexec_fn=_dies_with_parent(),
        )
    try:
        server = AgentServer(f"http://127.0.0.1:{port}", folder, database)
        _wait_until_ready(server, process)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=_START_S)


def seed(server: AgentServer) -> None:
    """Makes threads of every kind on a server, all at once: a run takes a second, most of it waiting."""
    with server.client() as client, ThreadPoolExecutor(len(_SEEDS)) as pool:
        for done in [pool.submit(make, client) for make in _SEEDS]:
            done.result()


def _chat(client: SyncLangGraphClient) -> None:
    _thread(client, "chat", "chat")
    _run(client, "chat", "chat", _question("where is my order?", "h1"))


def _forked(client: SyncLangGraphClient) -> None:
    """Two turns of a conversation, the first of which was gone back to and corrected."""
    thread = _thread(client, "forked", "chat")
    _run(client, "forked", "chat", _question("where is my order?", "h1"))
    called = next(state for state in client.threads.get_history(thread, limit=100) if state["next"] == ["tools"])
    calls = called["values"]["messages"][-1]["tool_calls"]
    lost = '{"order_id": "A1", "status": "lost"}'
    results = [
        {"type": "tool", "content": text, "name": call["name"], "tool_call_id": call["id"], "id": f"edited-{place}"}
        for place, (call, text) in enumerate(zip(calls, (lost, "30 days"), strict=True))
    ]
    client.threads.update_state(
        thread, {"messages": results}, as_node="tools", checkpoint_id=called["checkpoint"]["checkpoint_id"]
    )
    _run(client, "forked", "chat", None)


def _fan(client: SyncLangGraphClient) -> None:
    _thread(client, "fan", "fan")
    _run(client, "fan", "fan", {"parts": ["a", "ask", "bolt"]})


def _outer(client: SyncLangGraphClient) -> None:
    _thread(client, "outer", "outer")
    _run(client, "outer", "outer", {"text": "hello"})


def _asking(client: SyncLangGraphClient) -> None:
    _thread(client, "asking", "letter")
    _run(client, "asking", "letter", {"text": "hello"})


def _answered(client: SyncLangGraphClient) -> None:
    _thread(client, "answered", "outer")
    _run(client, "answered", "outer", {"text": "hello"})
    _run(client, "answered", "outer", None, command={"resume": True})


def _failing(client: SyncLangGraphClient) -> None:
    _thread(client, "failing", "failing")
    _run(client, "failing", "failing", {"text": "hello"}, raise_error=False)


def _busy(client: SyncLangGraphClient) -> None:
    """A thread whose second node runs until `let_go`."""
    thread = _thread(client, "busy", "slow")
    client.runs.create(thread, "slow", input={"text": _LET_GO}, durability="sync")
    deadline = time.monotonic() + _START_S
    while client.threads.get_state(thread)["next"] != ["hold"]:
        assert time.monotonic() < deadline
        time.sleep(_POLL_S)


def _delta(client: SyncLangGraphClient) -> None:
    _thread(client, "delta", "delta")
    _run(client, "delta", "delta", _question("count", "h1"))


def _long(client: SyncLangGraphClient) -> None:
    values = [{"messages": [{"type": "human", "content": f"note {n}", "id": f"n{n}"}]} for n in range(N_LONG)]
    steps = [
        {"updates": [{"values": one, "as_node": "__start__" if n == 0 else "agent"}]} for n, one in enumerate(values)
    ]
    _thread(client, "long", "chat", supersteps=steps)


def _without_runs(client: SyncLangGraphClient) -> None:
    _thread(client, "empty", "chat")
    client.threads.create(thread_id=thread_id("bare"))


_SEEDS = (_chat, _forked, _fan, _outer, _asking, _answered, _failing, _busy, _delta, _long, _without_runs)


def _thread(client: SyncLangGraphClient, name: str, graph: str, **more: Any) -> str:
    made = client.threads.create(thread_id=thread_id(name), graph_id=graph, metadata={"user_id": f"u-{name}"}, **more)
    return made["thread_id"]


def _run(client: SyncLangGraphClient, name: str, graph: str, value: Any, **more: Any) -> Any:
    return client.runs.wait(thread_id(name), graph, input=value, durability="sync", **more)


def _question(text: str, id: str) -> dict[str, Any]:
    return {"messages": [{"type": "human", "content": text, "id": id}]}


def _lay_out(folder: Path, has_saver: bool) -> None:
    config: dict[str, Any] = {
        "dependencies": ["."],
        "graphs": {name: f"./graph.py:{name}" for name in GRAPHS},
    }
    if has_saver:
        config["checkpointer"] = {"path": "./cp.py:make"}
    (folder / "langgraph.json").write_text(json.dumps(config), "utf-8")
    for file in (SERVED / "graph.py", SERVED / "cp.py"):
        shutil.copy(file, folder)


def _environment(folder: Path, database: str) -> Mapping[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGSMITH_TRACING": "false",
        "DATABASE": database,
    }


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _wait_until_ready(server: AgentServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            if httpx.get(f"{server.url}/ok", timeout=_START_S).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the Agent Server did not start:\n{(server.folder / 'log').read_text('utf-8')}")
        time.sleep(_POLL_S)
