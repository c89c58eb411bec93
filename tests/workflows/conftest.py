"""Fixtures of the workflow tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.backoffice import SupportWorld, support_world
from tests.support.killed import Killed
from tests.support.loan import LoanWorld, loan_world
from tests.support.research import ResearchWorld, norhaven, research_world
from tests.support.stores import stores_at
from tests.support.travel import Agency, agency_world

_World = TypeVar("_World")
Leave = Callable[[AbstractContextManager[Any]], None]


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A checkpoint store of the test's own, which several connections can use at once."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    return str(request.getfixturevalue("fresh_postgres_url"))


@pytest.fixture
def stores(store_url: str) -> Iterator[tuple[Any, Any]]:
    """A stock saver and memory store on it, set up."""
    with stores_at(store_url) as opened:
        yield opened


@pytest.fixture(scope="session")
def killed() -> Iterator[Killed]:
    """Runs a `dying_*` module in a process of its own, which must kill itself."""
    processes = Killed()
    yield processes
    processes.close()


@pytest.fixture(scope="session")
def leave() -> Iterator[Leave]:
    """Closes worlds while the next test runs: their servers take a while to end, in which nothing happens."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        left: list[Future[Any]] = []
        yield lambda world: left.append(pool.submit(world.__exit__, None, None, None))
        for each in left:
            each.result()


@pytest.fixture
def world(tmp_path: Path, leave: Leave) -> Iterator[SupportWorld]:
    """A back office of the test's own, and the support workflow over it."""
    yield from _left_behind(support_world(tmp_path), leave)


@pytest.fixture
def bank(tmp_path: Path, leave: Leave) -> Iterator[LoanWorld]:
    """A back office of the test's own, and the loan workflow over it."""
    yield from _left_behind(loan_world(tmp_path), leave)


@pytest.fixture
def agency(tmp_path: Path, leave: Leave) -> Iterator[Agency]:
    """A back office of the test's own, and the travel workflow over it."""
    yield from _left_behind(agency_world(tmp_path), leave)


@pytest.fixture
def desk(tmp_path: Path, leave: Leave) -> Iterator[ResearchWorld]:
    """A back office of the test's own, a web of the usual pages, and the research workflow over them."""
    for world in _left_behind(research_world(tmp_path / "desk"), leave):
        world.web.hold(*norhaven())
        yield world


def _left_behind(world: AbstractContextManager[_World], leave: Leave) -> Iterator[_World]:
    yield world.__enter__()
    leave(world)
