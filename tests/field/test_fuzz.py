"""Anything at all as rows, revisions and trees of forks: no traceback, no hang, nothing imported that a row names."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.testing import run_cli
from tests.support.damage import Rows
from tests.support.fuzzed import FORGED, LOOKING, THREAD, assert_told, damaged_thread

FEW = settings(
    max_examples=6,
    phases=[Phase.generate],
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
pytestmark = pytest.mark.usefixtures("imports")

names = st.sampled_from([FORGED, "os", "builtins", "langchain_core.messages.ai", ""])
extensions = st.builds(
    lambda code, parts: msgpack.ExtType(code, msgpack.packb(parts, strict_types=False)),
    st.integers(0, 8),
    st.one_of(
        st.tuples(names, st.sampled_from(["system", "call", "AIMessage", ""]), st.just([]), st.just("call")),
        st.lists(st.one_of(names, st.integers(-5, 5), st.none()), max_size=4),
    ),
)
trees = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=6), extensions),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers(-3, 3)), inner, max_size=3),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["ai", "tool", "human"]), "content": inner, "tool_calls": inner}
        ),
    ),
    max_leaves=8,
)
packed = st.one_of(st.binary(max_size=24), trees.map(lambda tree: bytes(msgpack.packb(tree, unicode_errors="replace"))))
types = st.sampled_from(["msgpack", "json", "null", "bytes", "pickle", "msgpack+aes", "empty", "", "other"])


@FEW
@given(state=packed, state_type=types, value=packed, value_type=types, metadata=st.one_of(packed, trees.map(repr)))
def test_random_bytes_as_rows_of_sqlite_are_told_by_every_command(
    sqlite: Rows, state: bytes, state_type: str, value: bytes, value_type: str, metadata: bytes | str
) -> None:
    with damaged_thread(sqlite):
        newest, oldest = sqlite.ids(THREAD)[-1], sqlite.ids(THREAD)[0]
        where = "WHERE thread_id = 't' AND checkpoint_id = ?"
        sqlite.sql(f"UPDATE checkpoints SET type = ?, checkpoint = ? {where}", state_type, state, newest)
        sqlite.sql(f"UPDATE checkpoints SET metadata = ? {where}", metadata, oldest)
        sqlite.sql("UPDATE {writes} SET type = ?, {value} = ? WHERE thread_id = 't'", value_type, value)
        for words in LOOKING:
            assert_told(sqlite.url, *words)


documents = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 2**60), st.text(st.characters(codec="ascii"), max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["v", "id", "lc", "kwargs", "x"]), inner)
    ),
    max_leaves=6,
)
KEYS = ("v", "ts", "channel_values", "channel_versions", "versions_seen", "updated_channels")


@FEW
@given(part=st.sampled_from(KEYS), document=documents, metadata=documents, blob=packed, blob_type=types)
def test_random_documents_and_bytes_as_rows_of_postgres_are_told_by_every_command(
    postgres: Rows, part: str, document: Any, metadata: Any, blob: bytes, blob_type: str
) -> None:
    def text(value: Any) -> str:
        return json.dumps(value).replace("\\u0000", "")

    with damaged_thread(postgres):
        newest, oldest = postgres.ids(THREAD)[-1], postgres.ids(THREAD)[0]
        where = "WHERE thread_id = 't' AND checkpoint_id = ?"
        changed = "jsonb_set(checkpoint, ARRAY[?::text], ?::jsonb)"
        postgres.sql(f"UPDATE checkpoints SET checkpoint = {changed} {where}", part, text(document), newest)
        postgres.sql(f"UPDATE checkpoints SET metadata = ?::jsonb {where}", text(metadata), oldest)
        postgres.sql("UPDATE checkpoint_blobs SET type = ?, blob = ? WHERE thread_id = 't'", blob_type, blob)
        postgres.sql("UPDATE {writes} SET type = ?, {value} = ? WHERE thread_id = 't'", blob_type, blob)
        for words in LOOKING:
            assert_told(postgres.url, *words)


PARTS = (
    "head", "root", "step:", "before:", "after:", "call:", "interrupt", "error", "at:", "collect", "decide", "1f1",
    "3", "-1", ":", "~", "~2", "..", "...", "@", "::", "[", "*", "'", '"', "é", " ", "\x00", "\x1b[2J",
    "2026-01-01", "9" * 30,
)  # fmt: skip
revisions = st.one_of(st.text(max_size=12), st.lists(st.sampled_from(PARTS), max_size=6).map("".join))


@settings(FEW, max_examples=60)
@given(revision=revisions)
def test_random_revisions_are_resolved_or_refused(sqlite: Rows, revision: str) -> None:
    if not sqlite.ids("revisions"):
        sqlite.run("linear", "revisions")
    for words in (["resolve", f"revisions@{revision}"], ["resolve", "--literal", "--", revision]):
        assert_told(sqlite.url, *words)


@dataclass(frozen=True, slots=True)
class Node:
    """One checkpoint of a random tree: its parent's place in the list, its clock's error, where it came from."""

    parent: int | None
    skew_s: int
    source: str
    step: int


nodes = st.builds(
    Node,
    st.one_of(st.none(), st.integers(-2, 14)),
    st.integers(-20, 20),
    st.sampled_from(["input", "loop", "update", "fork", "", "other"]),
    st.integers(-2, 6),
)
forests = st.lists(nodes, min_size=1, max_size=14)
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def forest_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forest") / "forest.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
    return path


@settings(FEW, max_examples=15)
@given(forest=forests)
def test_random_trees_of_forks_show_each_row_once_and_end(forest_file: Path, forest: list[Node]) -> None:
    ids = [_id(n, node) for n, node in enumerate(forest)]
    _plant(forest_file, forest, ids)
    url = str(forest_file)

    drawn = run_cli("history", THREAD, "--store", url, "--limit", "0", terminal=True, width=200, environ={})
    listed = run_cli("history", THREAD, "--store", url, "--json", environ={})
    assert (drawn.code, listed.code) == (0, 0), drawn.err + listed.err
    assert sorted(item["id"] for item in listed.json["items"]) == sorted(ids)
    _assert_gutter(drawn.out, ids)
    for words in (
        ("diff", f"{THREAD}@{ids[0]}", f"{THREAD}@{ids[-1]}"),
        ("resolve", f"{THREAD}@{ids[0]}~2"),
        ("resolve", f"{THREAD}@root"),
        ("resolve", f"{THREAD}@{ids[0]}...{ids[-1]}"),
        ("doctor", THREAD),
        ("show", f"{THREAD}@{ids[0]}", "--messages"),
        ("copy", f"{THREAD}@{ids[-1]}", "--to", str(forest_file.with_name("copy.sqlite")), "--dry-run"),
    ):
        assert_told(url, *words)


def _id(n: int, node: Node) -> str:
    """An id of version 6 whose clock was wrong by so much; the place makes it unique."""
    ticks = (
        int((_EPOCH + timedelta(seconds=n + node.skew_s) - datetime(1582, 10, 15, tzinfo=UTC)).total_seconds()) * 10**7
    )
    return f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}-6{ticks & 0xFFF:03x}-8000-{n:012x}"


def _plant(path: Path, forest: list[Node], ids: list[str]) -> None:
    """Replaces the thread by a tree: parents in any order, missing ones, and rows that are their own ancestors."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM checkpoints")
        for id, node in zip(ids, forest, strict=True):
            known = node.parent is not None and 0 <= node.parent < len(ids)
            parent = ids[node.parent] if known and node.parent is not None else None
            if node.parent is not None and not known:
                parent = "1f000000-0000-6000-8000-000000000bad"
            state = {"v": 4, "id": id, "ts": _EPOCH.isoformat(), "channel_values": {"log": [id[-2:]]},
                     "channel_versions": {"log": "1"}, "versions_seen": {}, "updated_channels": None}  # fmt: skip
            metadata = {"source": node.source, "step": node.step, "parents": {}}
            row = (THREAD, "", id, parent, "msgpack", msgpack.packb(state), json.dumps(metadata).encode())
            connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _assert_gutter(out: str, ids: list[str]) -> None:
    """Asserts that each row has one mark, and that no line of a branch begins or ends between rows."""
    marked = [line for line in out.splitlines() if "●" in line or "○" in line]
    assert len(marked) == len(ids)
    assert all(line.count("●") + line.count("○") >= 1 for line in marked)


@pytest.mark.parametrize("part", KEYS)
@pytest.mark.parametrize("document", [[{"x": 1}], "text", 3, None], ids=str)
def test_a_part_of_a_state_that_is_of_another_form_is_told_by_every_command(
    postgres: Rows, part: str, document: Any
) -> None:
    with damaged_thread(postgres):
        changed = "jsonb_set(checkpoint, ARRAY[?::text], ?::jsonb)"
        postgres.sql(f"UPDATE checkpoints SET checkpoint = {changed} WHERE thread_id = 't'", part, json.dumps(document))
        for words in (("threads",), ("show", THREAD), ("doctor", THREAD), ("history", THREAD)):
            assert_told(postgres.url, *words)
