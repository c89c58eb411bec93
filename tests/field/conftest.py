"""What field tests share: a store of the kind that a test asks for, and applications on it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.application import Application, application
from tests.support.fuzzed import FORGED, Imports

GRAPHS = Path(__file__).parent / "graphs"


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store: a SQLite file, or a Postgres database for tests marked `on_both_stores`."""
    if getattr(request, "param", "sqlite") == "postgres":
        return str(request.getfixturevalue("fresh_postgres_url"))
    (tmp_path / "prod").mkdir()
    return str(tmp_path / "prod" / "prod.sqlite")


@pytest.fixture
def app(store: str, tmp_path: Path) -> Callable[[str], Application]:
    """Gives the application of a graph in `graphs/`, named as `file.py:attr`, on the store."""
    return lambda graph: application(tmp_path, store, str(GRAPHS / graph))


@pytest.fixture
def imports() -> Iterator[Imports]:
    """Sees every module that is looked for; a name that only rows know must not be among them."""
    recorder = Imports([])
    sys.meta_path.insert(0, recorder)  # type: ignore[arg-type]
    yield recorder
    sys.meta_path.remove(recorder)  # type: ignore[arg-type]
    assert [name for name in recorder.seen if name.startswith(FORGED)] == []
