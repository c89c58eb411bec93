"""`path.py:attr` as a store: every way an application makes its saver, and what goes wrong on the way."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from agentctl.errors import StoreError
from agentctl.stores.open import open_reader
from tests.catalog import CATALOG, sqlite_thread

THREAD = CATALOG["half done"].thread
HEADER = """
from contextlib import asynccontextmanager, contextmanager
import sqlite3
import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
"""
WAYS = {
    "a function that returns a context manager": "def made(): return SqliteSaver.from_conn_string(PATH)",
    "a generator context manager": """
@contextmanager
def made():
    with SqliteSaver.from_conn_string(PATH) as saver:
        yield saver
""",
    "a function that returns an async context manager": "def made(): return AsyncSqliteSaver.from_conn_string(PATH)",
    "an async generator context manager": """
@asynccontextmanager
async def made():
    async with AsyncSqliteSaver.from_conn_string(PATH) as saver:
        yield saver
""",
    "a class that has async methods only": """
class Saver(BaseCheckpointSaver):
    def __init__(self, inner):
        super().__init__(serde=inner.serde)
        self.inner = inner
    async def aget_tuple(self, config):
        return await self.inner.aget_tuple(config)
    async def alist(self, config, **options):
        async for found in self.inner.alist(config, **options):
            yield found

@asynccontextmanager
async def made():
    async with AsyncSqliteSaver.from_conn_string(PATH) as saver:
        yield Saver(saver)
""",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sqlite_thread(tmp_path_factory.mktemp("database"), CATALOG["half done"])


def _file(folder: Path, code: str, database: object = "") -> str:
    file = folder / "stores.py"
    file.write_text(f"{HEADER}\nPATH = {str(database)!r}\n{code}\n")
    return f"{file}:made"


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_making_a_saver_gives_the_same_store(tmp_path: Path, database: Path, way: str) -> None:
    before = set(threading.enumerate())
    with (
        closing(open_reader(str(database))) as direct,
        closing(open_reader(_file(tmp_path, WAYS[way], database))) as reader,
    ):
        assert reader.heads() == direct.heads()
        ids = [row.id for row in direct.rows(THREAD)]
        assert [row.id for row in reader.rows(THREAD)] == ids
        for left, right in zip(reader.stored(THREAD, "", ids), direct.stored(THREAD, "", ids), strict=True):
            assert left.channel_versions == right.channel_versions
            assert left.values.keys() == right.values.keys()
        through_saver = {(w.checkpoint_id, w.task_id, w.idx, w.channel): w.value for w in reader.writes(THREAD, "")}
        assert through_saver == {
            (w.checkpoint_id, w.task_id, w.idx, w.channel): w.value for w in direct.writes(THREAD, "")
        }
    # Of a pool of AnyIO's, which a server of another test may have in this process, it cannot be told whose they are.
    new = [thread for thread in set(threading.enumerate()) - before if not thread.name.startswith("AnyIO worker")]
    for thread in new:
        thread.join(timeout=10)
    assert [thread.name for thread in new if thread.is_alive()] == []


@pytest.mark.parametrize(
    "code",
    ["made = InMemorySaver()", "def made(): return InMemorySaver()", "async def made(): return InMemorySaver()"],
)
def test_savers_and_functions_that_return_one_are_taken(tmp_path: Path, code: str) -> None:
    with closing(open_reader(_file(tmp_path, code))) as reader:
        assert list(reader.heads()) == []
        assert list(reader.memory()) == []
        assert reader.info.kind == "saver"


def test_the_projects_folder_is_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path / "nothing")
    (tmp_path / "langgraph.json").write_text("{}")
    (tmp_path / "app_settings_of_this_test.py").write_text("from langgraph.checkpoint.memory import InMemorySaver")
    (tmp_path / "deep").mkdir()
    url = _file(tmp_path / "deep", "from app_settings_of_this_test import InMemorySaver as made")
    with closing(open_reader(url)) as reader:
        assert list(reader.heads()) == []


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        ("def other(): return InMemorySaver()", "has no made", "other"),
        ("def made(): return 7", "of type int", "returns the saver"),
        ("def made(): raise ValueError('no DATABASE_URL')", "ValueError: no DATABASE_URL", "environment variables"),
        ("import no_such_package_anywhere", "ModuleNotFoundError", "install no_such_package_anywhere"),
        ("raise KeyError('DATABASE_URL')", "KeyError", "environment variables"),
    ],
)
def test_what_goes_wrong_while_a_saver_is_made_is_an_error_with_a_hint(
    tmp_path: Path, code: str, message: str, hint: str
) -> None:
    before = set(threading.enumerate())
    with pytest.raises(StoreError, match=message) as caught:
        open_reader(_file(tmp_path, code))
    assert caught.value.exit_code == 4
    assert hint in (caught.value.hint or "")
    # Of a pool of AnyIO's, which a server of another test may have in this process, it cannot be told whose they are.
    new = [thread for thread in set(threading.enumerate()) - before if not thread.name.startswith("AnyIO worker")]
    for thread in new:
        thread.join(timeout=10)
    assert [thread.name for thread in new if thread.is_alive()] == []


def test_a_missing_python_file_is_an_error_and_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        open_reader(f"{tmp_path}/stores.py:made")
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_saver_that_fails_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    code = """
class made(InMemorySaver):
    def list(self, config, **options):
        raise ConnectionError("the cache is down")
"""
    with closing(open_reader(_file(tmp_path, code))) as reader, pytest.raises(StoreError, match="the cache is down"):
        reader.heads()
