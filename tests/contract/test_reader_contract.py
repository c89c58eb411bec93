"""One suite over every kind of store: what a reader says of real threads is what the stock saver says of them."""

from __future__ import annotations

import math
import random
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.codec.values import decode
from agentctl.records.rows import Stored, WriteRow
from agentctl.records.threads import ThreadQuery
from agentctl.stores.base import Reader
from agentctl.stores.delegation import ReadsThrough
from agentctl.stores.heads import ReadsHeads
from agentctl.stores.keyed import Keyed
from agentctl.stores.moments import Stillable
from agentctl.stores.open import open_reader
from agentctl.stores.reading.due import is_routing
from agentctl.stores.reading.threads import list_threads
from tests.catalog import CATALOG, Saver, run_case
from tests.support.damage import Rows
from tests.support.postgres import new_database

KINDS = ("sqlite", "postgres", "saver")
BLOBS = {"sqlite": "value", "postgres": "blob"}
SETS = ("builtins.set", "builtins.frozenset")
UNKNOWN_ID = "1f000000-0000-6000-8000-000000000000"


@dataclass
class Bench:
    """A store of one kind, a stock saver on the same rows, and the cases that were run there so far."""

    reader: Reader
    saver: Saver
    ran: set[str] = field(default_factory=set)

    def tuples(self, name: str) -> list[CheckpointTuple]:
        """Runs a case where it has not been yet, and returns all its checkpoints as the stock saver lists them."""
        if name not in self.ran:
            run_case(CATALOG[name], self.saver)
            self.ran.add(name)
        return list(self.saver.list({"configurable": {"thread_id": CATALOG[name].thread}}))

    def stock_value(self, value: object) -> object:
        return decode(Stored(*self.saver.serde.dumps_typed(value)))


@pytest.fixture(scope="module")
def open_bench(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Bench]]:
    benches: dict[str, Bench] = {}
    with ExitStack() as stack:

        def bench(kind: str) -> Bench:
            if kind not in benches:
                folder = tmp_path_factory.mktemp(kind)
                if kind == "postgres":
                    url = stack.enter_context(new_database(request.getfixturevalue("postgres_url")))
                    saver: Saver = stack.enter_context(PostgresSaver.from_conn_string(url))
                else:
                    url = str(folder / "threads.sqlite")
                    saver = stack.enter_context(SqliteSaver.from_conn_string(url))
                saver.setup()  # type: ignore[attr-defined]
                reader = open_reader(_saver_file(folder, url) if kind == "saver" else url, profile="prod")
                stack.callback(reader.close)
                benches[kind] = Bench(reader, saver)
            return benches[kind]

        yield bench


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, open_bench: Callable[[str], Bench]) -> Bench:
    return open_bench(request.param)


def _saver_file(folder: Path, database: str) -> str:
    file = folder / "stores.py"
    file.write_text(
        "from langgraph.checkpoint.sqlite import SqliteSaver\n\n"
        f"def production():\n    return SqliteSaver.from_conn_string({database!r})\n"
    )
    return f"{file}:production"


def _where(found: CheckpointTuple) -> tuple[str, str]:
    configurable: dict[str, Any] = found.config["configurable"]
    return configurable["checkpoint_ns"], configurable["checkpoint_id"]


def _parent(found: CheckpointTuple) -> str | None:
    return found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None


def _same(left: object, right: object) -> bool:
    """Compares inert values; NaN is itself, a set has no order."""
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, dict) and isinstance(right, dict):
        if left.get("$type") in SETS and left.get("$type") == right.get("$type"):
            return sorted(map(repr, left["$value"])) == sorted(map(repr, right["$value"]))
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and left == right


def _value(write: WriteRow) -> Stored:
    assert write.value is not None
    assert write.n_bytes == len(write.value.data)
    return write.value


def _task_and_channel(write: tuple[str, str, Stored]) -> tuple[str, str]:
    return write[:2]


@pytest.mark.parametrize("name", CATALOG)
def test_rows_are_those_that_the_stock_saver_lists_newest_first(bench: Bench, name: str) -> None:
    expected = {_where(found): (_parent(found), found.metadata) for found in bench.tuples(name)}
    thread = CATALOG[name].thread
    found = {}
    for ns in bench.reader.namespaces(thread):
        rows = bench.reader.rows(thread, ns)
        assert [row.id for row in rows] == sorted((row.id for row in rows), reverse=True)
        assert {(row.thread, row.ns) for row in rows} == {(thread, ns)}
        found |= {(ns, row.id): (row.parent, row.metadata) for row in rows}
    assert found == expected
    assert list(bench.reader.namespaces(thread)) == sorted({ns for ns, _ in expected})


@pytest.mark.parametrize("name", CATALOG)
def test_stored_values_decode_to_what_the_stock_saver_loads(bench: Bench, name: str) -> None:
    for found in bench.tuples(name):
        ns, id_ = _where(found)
        (stored,) = bench.reader.stored(CATALOG[name].thread, ns, [id_])
        assert stored.damage is None
        assert (stored.row.id, stored.row.parent, stored.row.metadata) == (id_, _parent(found), found.metadata)
        checkpoint = found.checkpoint
        assert stored.format == checkpoint["v"]
        assert stored.ts == checkpoint["ts"]
        assert stored.channel_versions == checkpoint["channel_versions"]
        assert stored.versions_seen == checkpoint["versions_seen"]
        assert list(stored.updated_channels or ()) == (checkpoint.get("updated_channels") or [])
        assert stored.missing_blobs == ()
        assert stored.values.keys() == checkpoint["channel_values"].keys()
        for channel, value in checkpoint["channel_values"].items():
            assert _same(decode(stored.values[channel]), bench.stock_value(value)), channel


@pytest.mark.parametrize("name", CATALOG)
def test_writes_are_those_of_the_stock_saver_in_its_order(bench: Bench, name: str) -> None:
    for found in bench.tuples(name):
        ns, id_ = _where(found)
        writes = bench.reader.writes(CATALOG[name].thread, ns, [id_])
        assert all((write.ns, write.checkpoint_id) == (ns, id_) for write in writes)
        got = [(write.task_id, write.channel, _value(write)) for write in writes]
        expected = [
            (task, channel, Stored(*bench.saver.serde.dumps_typed(value)))
            for task, channel, value in found.pending_writes or []
        ]
        if bench.reader.info.kind == "saver":  # what it returns has no task paths to sort by
            got, expected = sorted(got, key=_task_and_channel), sorted(expected, key=_task_and_channel)
        assert list(map(_task_and_channel, got)) == list(map(_task_and_channel, expected))
        for (_, channel, left), (_, _, right) in zip(got, expected, strict=True):
            assert _same(decode(left), decode(right)), channel


def test_heads_count_root_checkpoints_and_come_newest_first(bench: Bench) -> None:
    for name in ("linear", "subgraph nested", "update fork"):
        bench.tuples(name)
    heads = {head.thread: head for head in bench.reader.heads()}
    assert list(heads) == [head.thread for head in sorted(heads.values(), key=lambda head: head.head.id, reverse=True)]
    for name in ("linear", "subgraph nested", "update fork"):
        rows = bench.reader.rows(CATALOG[name].thread)
        head = heads[CATALOG[name].thread]
        assert (head.n_checkpoints, head.head, head.first_id) == (len(rows), rows[0], rows[-1].id)


def test_heads_and_rows_without_metadata_are_otherwise_the_same(bench: Bench) -> None:
    bench.tuples("linear")
    thread = CATALOG["linear"].thread
    bare = bench.reader.rows(thread, metadata=False)
    assert [(row.id, row.parent) for row in bare] == [(row.id, row.parent) for row in bench.reader.rows(thread)]
    assert all(row.metadata == {} for row in bare)
    found = {head.thread: head.head.id for head in bench.reader.heads(metadata=False)}
    assert found == {head.thread: head.head.id for head in bench.reader.heads()}


class OneByOne(ReadsThrough):
    """A reader without what its store reads of many threads at once."""

    def __init__(self, reader: Reader) -> None:
        self.info = reader.info
        self._reader = reader

    def _reading(self) -> Reader:
        return self._reader

    def close(self) -> None:
        self._reader.close()


def test_threads_read_a_page_at_once_are_those_that_are_read_one_by_one(bench: Bench) -> None:
    for name in CATALOG:
        bench.tuples(name)
    query = ThreadQuery(limit=None)

    assert list_threads(bench.reader, query).items == list_threads(OneByOne(bench.reader), query).items


def test_a_page_of_heads_is_what_each_of_them_says(bench: Bench) -> None:
    for name in CATALOG:
        bench.tuples(name)
    if not isinstance(bench.reader, ReadsHeads):
        assert bench.reader.info.kind == "saver"
        return
    heads = [(head.thread, head.head.id) for head in bench.reader.heads()]

    found = bench.reader.head_states(heads, is_routing)

    assert found.keys() == {thread for thread, _ in heads}
    for thread, head in heads:
        (alone,) = bench.reader.stored(thread, "", [head])
        at_once = found[thread].stored
        assert (at_once.row, at_once.format, at_once.channel_versions) == (
            alone.row,
            alone.format,
            alone.channel_versions,
        )
        assert at_once.versions_seen == alone.versions_seen
        assert at_once.values == {name: value for name, value in alone.values.items() if is_routing(name)}
        assert found[thread].has_writes == bool(bench.reader.writes(thread, "", [head]))


def test_a_large_head_is_read_by_itself(rows: Rows) -> None:
    text = "".join(random.Random(1).choices(string.ascii_letters, k=300_000))
    config: Any = {"configurable": {"thread_id": "large", "checkpoint_ns": ""}}
    rows.saver.put(config, {**empty_checkpoint(), "channel_values": {"text": text}}, {}, {"text": "1"})

    with closing(open_reader(rows.url)) as reader:
        (head,) = reader.heads()
        assert isinstance(reader, ReadsHeads)
        assert reader.head_states([("large", head.head.id)], is_routing) == {}
        assert [item.status for item in list_threads(reader, ThreadQuery()).items] == ["done"]


def test_a_thread_without_checkpoints_has_no_head(bench: Bench) -> None:
    assert bench.tuples("empty") == []
    assert CATALOG["empty"].thread not in {head.thread for head in bench.reader.heads()}


def test_an_unknown_thread_or_checkpoint_is_empty_everywhere(bench: Bench) -> None:
    bench.tuples("linear")
    reader, thread = bench.reader, CATALOG["linear"].thread
    for unknown, ns, ids in (("nobody", "", [UNKNOWN_ID]), (thread, "elsewhere:1", [UNKNOWN_ID]), (thread, "", [])):
        assert list(reader.rows(unknown, ns, ids=ids)) == []
        assert list(reader.stored(unknown, ns, ids)) == []
        assert list(reader.writes(unknown, ns, ids)) == []
    assert list(reader.namespaces("nobody")) == []
    assert list(reader.rows("nobody")) == []
    assert list(reader.writes("nobody", "")) == []
    assert list(reader.find_run("nobody")) == []
    assert list(reader.memory()) == []


def test_stored_checkpoints_come_in_the_order_asked_and_once(bench: Bench) -> None:
    bench.tuples("loop")
    thread = CATALOG["loop"].thread
    ids = [row.id for row in bench.reader.rows(thread)]
    asked = [ids[2], ids[0], UNKNOWN_ID, ids[1], ids[0]]
    assert [found.row.id for found in bench.reader.stored(thread, "", asked)] == [ids[2], ids[0], ids[1]]


def test_chosen_channels_alone_are_read(bench: Bench) -> None:
    bench.tuples("loop")
    thread = CATALOG["loop"].thread
    head = bench.reader.rows(thread)[0].id
    (everything,) = bench.reader.stored(thread, "", [head])
    (one,) = bench.reader.stored(thread, "", [head], channels=["n", "no such channel"])
    (none,) = bench.reader.stored(thread, "", [head], channels=())
    assert one.values == {"n": everything.values["n"]}
    assert none.values == {}
    assert none.channel_versions == one.channel_versions == everything.channel_versions


def test_writes_can_be_read_by_channel_and_without_large_values(bench: Bench) -> None:
    bench.tuples("loop")
    thread = CATALOG["loop"].thread
    every = bench.reader.writes(thread, "")
    logs = [write for write in every if write.channel == "log"]
    assert list(bench.reader.writes(thread, "", channels=["log"])) == logs
    assert logs
    limit = min(write.n_bytes for write in logs) - 1
    for write in bench.reader.writes(thread, "", value_bytes=limit, channels=["log"]):
        assert write.value is None
        assert write.n_bytes > limit
    for bare, full in zip(bench.reader.writes(thread, "", value_bytes=0), every, strict=True):
        assert bare.value is None
        assert (bare.checkpoint_id, bare.task_id, bare.idx, bare.n_bytes) == (
            full.checkpoint_id,
            full.task_id,
            full.idx,
            full.n_bytes,
        )


def test_rows_can_be_chosen_by_id(bench: Bench) -> None:
    bench.tuples("loop")
    thread = CATALOG["loop"].thread
    rows = bench.reader.rows(thread)
    assert list(bench.reader.rows(thread, ids=[rows[3].id, rows[1].id, UNKNOWN_ID])) == [rows[1], rows[3]]


def test_keys_are_those_of_all_checkpoints_and_of_writes_that_lost_theirs(
    open_bench: Callable[[str], Bench],
) -> None:
    for kind in ("sqlite", "postgres"):
        bench = open_bench(kind)
        expected = {
            (one.config["configurable"]["checkpoint_ns"], one.config["configurable"]["checkpoint_id"])
            for one in bench.tuples("subgraph interrupted")
        }
        thread, mark = CATALOG["subgraph interrupted"].thread, "?" if kind == "sqlite" else "%s"
        key = (thread, "gone", UNKNOWN_ID, "task", 0, "log", "null")
        query = (
            f"INSERT INTO {'writes' if kind == 'sqlite' else 'checkpoint_writes'}"
            f" (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, {BLOBS[kind]})"
            f" VALUES ({', '.join([mark] * 7)}, {mark})"
        )
        bench.saver.conn.execute(query, (*key, b""))  # type: ignore[attr-defined]
        bench.saver.conn.commit()  # type: ignore[attr-defined]
        assert isinstance(bench.reader, Keyed)
        found = bench.reader.row_keys(thread)
        assert sorted(found) == sorted({*expected, ("gone", UNKNOWN_ID)})
        assert not bench.reader.row_keys("unknown")
        assert isinstance(bench.reader, Stillable)
        with bench.reader.still([thread]) as still:
            assert isinstance(still, Keyed)
            assert set(still.row_keys(thread)) == set(found)


def test_a_run_id_names_its_threads(bench: Bench) -> None:
    graph = CATALOG["linear"].build(bench.saver)
    threads = [f"{bench.reader.info.kind}-run-{n}" for n in (1, 2)]
    for thread in threads:
        config = {"configurable": {"thread_id": thread}, "metadata": {"run_id": "run-7", "note": "run-8"}}
        graph.invoke({"log": []}, config, durability="sync")
    assert list(bench.reader.find_run("run-7")) == threads
    assert list(bench.reader.find_run("run-8")) == []


def test_a_store_says_what_it_is(bench: Bench, request: pytest.FixtureRequest) -> None:
    assert bench.reader.info.kind == request.node.callspec.params["bench"]
    assert str(bench.reader.info) == f"prod ({bench.reader.info.kind})"


def test_closing_twice_is_fine(tmp_path: Path, fresh_postgres_url: str) -> None:
    database = str(tmp_path / "threads.sqlite")
    with SqliteSaver.from_conn_string(database) as saver:
        saver.setup()
    with PostgresSaver.from_conn_string(fresh_postgres_url) as postgres:
        postgres.setup()
    urls: Sequence[str] = (database, fresh_postgres_url, _saver_file(tmp_path, database))
    for url in urls:
        reader = open_reader(url)
        reader.close()
        reader.close()
