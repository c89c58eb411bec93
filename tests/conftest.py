"""Fixtures for every test: an empty home and environment, and a real Postgres that starts when one asks for it."""

from __future__ import annotations

import gc
import itertools
import os
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.agent_server import AgentServer
    from tests.support.damage import Rows
    from tests.support.postgres import EmptyDatabases

_FOLDERS = ("CONFIG", "DATA", "STATE", "CACHE")
_KEPT = frozenset({"AGENTCTL_PG_BIN"})
_PREFIXES = ("AGENTCTL_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "PG", "XDG_")
_N_NEW_OBJECTS = 5_000
_N_CHARACTERS = 24
_SHORT = "tests/unit/"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the tests of a file in one process where several run, so that what a module sets up is set up once.

    The files that take least come last, so that all processes end at about the same time. First, because pytest-xdist
    reads the groups in the same hook.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=lambda item: item.nodeid.startswith(_SHORT))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spares the garbage collector the tests themselves and all that they import: a million objects that stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_N_NEW_OBJECTS, 20, 20)
        gc.enable()


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a folder whose name begins as given.

    The factory's own numbers cost a look at every folder before: 20 ms a test where there are thousands.
    """
    above, numbers = tmp_path_factory.mktemp("t"), itertools.count()

    def make(name: str) -> Path:
        folder = above / f"{name}_{next(numbers)}"
        folder.mkdir(mode=0o700)
        return folder

    return make


@pytest.fixture
def tmp_path(new_folder: Callable[[str], Path], request: pytest.FixtureRequest) -> Path:
    """An empty folder of the test's own, named after it."""
    return new_folder(re.sub(r"\W", "_", request.node.name)[:_N_CHARACTERS])


@pytest.fixture(autouse=True)
def isolation(new_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives each test its own home and an environment in which nothing of the machine's shows."""
    for name in [name for name in os.environ if name.startswith(_PREFIXES) and name not in _KEPT]:
        monkeypatch.delenv(name)
    home = new_folder("home")
    monkeypatch.setenv("HOME", str(home))
    for folder in _FOLDERS:
        monkeypatch.setenv(f"XDG_{folder}_HOME", str(home / folder.lower()))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    monkeypatch.setenv("AGENTCTL_ISOLATION", "off")  # a process of its own costs a second; tests of it set it on


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a running Postgres server, one a test process, as its superuser."""
    from tests.support.postgres import running_postgres

    with running_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def empty_databases(postgres_url: str) -> EmptyDatabases:
    """Lends empty databases of the server, of which each is used by many tests, one at a time."""
    from tests.support.postgres import EmptyDatabases

    return EmptyDatabases(postgres_url)


@pytest.fixture
def fresh_postgres_url(empty_databases: EmptyDatabases) -> Iterator[str]:
    """The URL of an empty database, the test's own until it ends."""
    with empty_databases.lend() as url:
        yield url


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    """A SQLite store of the module's own, whose rows can be damaged."""
    from tests.support.damage import sqlite_rows

    with sqlite_rows(tmp_path_factory.mktemp("sqlite")) as rows:
        yield rows


@pytest.fixture(scope="module")
def postgres(postgres_url: str) -> Iterator[Rows]:
    """A Postgres store of the module's own, whose rows can be damaged."""
    from tests.support.damage import postgres_rows
    from tests.support.postgres import new_database

    with new_database(postgres_url) as url, postgres_rows(url) as rows:
        yield rows


@pytest.fixture(params=["sqlite", "postgres"])
def rows(request: pytest.FixtureRequest) -> Rows:
    """The store of the module on each kind in turn."""
    found: Rows = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentServer]:
    """A real Agent Server with its own storage and threads of every kind; see `tests/support/agent_server.py`."""
    from tests.support.agent_server import seeded_agent_server

    with seeded_agent_server(tmp_path_factory.mktemp("own-server")) as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentServer]:
    """The same, checkpointing into a SQLite file by the stock saver."""
    from tests.support.agent_server import seeded_agent_server

    folder = tmp_path_factory.mktemp("sqlite-server")
    with seeded_agent_server(folder, str(folder / "threads.sqlite")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[AgentServer]:
    """The same, checkpointing into a Postgres database by the stock saver."""
    from tests.support.agent_server import seeded_agent_server
    from tests.support.postgres import new_database

    folder = tmp_path_factory.mktemp("postgres-server")
    with new_database(postgres_url) as url, seeded_agent_server(folder, url) as server:
        yield server
