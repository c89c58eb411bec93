"""Fixtures of the workflow tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.backoffice import SupportWorld, support_world
from tests.support.killed import Killed
from tests.support.loan import LoanWorld, loan_world
from tests.support.stores import stores_at
from tests.support.travel import Agency, agency_world


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


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SupportWorld]:
    """A back office of the test's own, and the support workflow over it."""
    with support_world(tmp_path) as running:
        yield running


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[LoanWorld]:
    """A back office of the test's own, and the loan workflow over it."""
    with loan_world(tmp_path) as running:
        yield running


@pytest.fixture
def agency(tmp_path: Path) -> Iterator[Agency]:
    """A back office of the test's own, and the travel workflow over it."""
    with agency_world(tmp_path) as running:
        yield running
