"""Sizes on both kinds of database, against rows fetched one by one and states loaded by the stock savers."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote

import psycopg
import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from psycopg import sql

from agentctl.errors import Refused
from agentctl.records.sizes import Level, SizeReport
from agentctl.revisions.namespaces import node_path
from agentctl.stores.base import Reader
from agentctl.stores.fingerprint import fingerprint
from agentctl.stores.open import open_reader
from agentctl.stores.sqlite import sizes as sqlite_sizes
from agentctl.upkeep.size import measure
from tests.catalog import CATALOG, Saver, config_of, run_case
from tests.support.postgres import database_name, new_database

CASES = ("agent", "subgraph nested", "half done", "delta", "values", "functional twice", "fan out", "agent corrected")
DELTA = {"delta"}
AGENT = CATALOG["agent"].thread
FILE, TURN = 20_000, 300


class Growing(TypedDict, total=False):
    files: dict[str, str]
    messages: list[AnyMessage]


def run_growing(saver: Saver, thread: str, n_turns: int) -> None:
    """A channel that never changes after the first step, and messages of which each step adds one."""
    graph = StateGraph(Growing)
    graph.add_node("talk", lambda state: {"messages": [*state["messages"], _says(len(state["messages"]))]})
    graph.add_edge(START, "talk")
    app = graph.compile(checkpointer=saver)
    config: Any = config_of(thread)
    app.invoke({"files": {"law.txt": "x" * FILE}, "messages": [_says(0)]}, config, durability="sync")
    for _ in range(n_turns - 1):
        app.invoke({}, config, durability="sync")


def _says(number: int) -> AnyMessage:
    kind = AIMessage if number % 2 else HumanMessage
    return kind("y" * TURN, id=f"m-{number}")


@dataclass(frozen=True)
class Measured:
    """One database, the stock saver on it, and every row fetched."""

    kind: str
    url: str
    reader: Reader
    saver: Saver
    rows: Mapping[str, list[dict[str, Any]]]

    def report(self, by: Level, thread: str | None = None, top: int | None = None) -> SizeReport:
        return measure(self.reader, thread=thread, by=by, top=top)


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    path = tmp_path_factory.mktemp("sqlite") / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver, SqliteStore.from_conn_string(str(path)) as memory:
        saver.setup()
        memory.setup()
        _fill(saver, memory)
        with closing(sqlite3.connect(path)) as connection:
            rows = {name: _sqlite_rows(connection, name) for name in ("checkpoints", "writes", "store")}
        with closing(open_reader(str(path), profile="prod")) as reader:
            yield Measured("sqlite", str(path), reader, saver, rows)


@pytest.fixture(scope="module")
def postgres(postgres_url: str) -> Iterator[Measured]:
    with (
        new_database(postgres_url) as url,
        PostgresSaver.from_conn_string(url) as saver,
        PostgresStore.from_conn_string(url) as memory,
    ):
        saver.setup()
        memory.setup()
        _fill(saver, memory)
        with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
            rows = {name: connection.execute(query).fetchall() for name, query in _ROWS.items()}
        with closing(open_reader(url, profile="prod")) as reader:
            yield Measured("postgres", url, reader, saver, rows)


_ROWS = {
    "checkpoints": "SELECT *, pg_column_size(checkpoint) AS n, pg_column_size(metadata) AS m FROM checkpoints",
    "checkpoint_blobs": "SELECT *, octet_length(blob) AS n FROM checkpoint_blobs",
    "checkpoint_writes": "SELECT *, octet_length(blob) AS n FROM checkpoint_writes",
    "store": "SELECT *, pg_column_size(value) AS n FROM store",
}


@pytest.fixture(params=["sqlite", "postgres"])
def measured(request: pytest.FixtureRequest) -> Measured:
    found: Measured = request.getfixturevalue(request.param)
    return found


def _fill(saver: Saver, memory: Any) -> None:
    for name in CASES:
        run_case(CATALOG[name], saver)
    run_growing(saver, "growing", 12)
    memory.put(("users", "u-1"), "language", {"value": "fr"})


def _sqlite_rows(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    found = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _state_rows(measured: Measured) -> list[dict[str, Any]]:
    """Each checkpoint or blob row with `n`, the bytes of its state."""
    rows = measured.rows
    if measured.kind == "postgres":
        return [*rows["checkpoints"], *rows["checkpoint_blobs"]]
    return [row | {"n": len(row["checkpoint"]), "m": len(row["metadata"])} for row in rows["checkpoints"]]


def _writes(measured: Measured) -> list[dict[str, Any]]:
    if measured.kind == "postgres":
        return measured.rows["checkpoint_writes"]
    return [row | {"n": len(row["value"])} for row in measured.rows["writes"]]


def _tuples(measured: Measured, thread: str | None = None) -> list[Any]:
    return list(measured.saver.list(None if thread is None else {"configurable": {"thread_id": thread}}))


def test_threads_take_what_their_rows_take(measured: Measured) -> None:
    expected: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in _state_rows(measured):
        expected[row["thread_id"]]["state"] += row["n"] or 0
        expected[row["thread_id"]]["metadata"] += row.get("m", 0)
        expected[row["thread_id"]]["checkpoints"] += "m" in row
    for row in _writes(measured):
        expected[row["thread_id"]]["writes"] += 1
        expected[row["thread_id"]]["write"] += row["n"]

    report = measured.report("thread")

    assert report.n_threads == report.n_total == len(CASES) + 1
    assert [item.stored_bytes for item in report.items] == sorted(
        (sum(found[name] for name in ("state", "metadata", "write")) for found in expected.values()), reverse=True
    )
    assert {
        item.thread: (item.state_bytes, item.metadata_bytes, item.write_bytes, item.n_checkpoints, item.n_writes)
        for item in report.items
    } == {
        thread: tuple(found[name] for name in ("state", "metadata", "write", "checkpoints", "writes"))
        for thread, found in expected.items()
    }
    assert report.total.stored_bytes == sum(item.stored_bytes for item in report.items)
    assert report.total.payload_bytes == sum(item.payload_bytes or 0 for item in report.items)


def test_the_payload_of_a_thread_is_the_newest_state_of_each_namespace(measured: Measured) -> None:
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for row in measured.rows["checkpoints"]:
        key = (row["thread_id"], row["checkpoint_ns"])
        if key not in newest or newest[key]["checkpoint_id"] < row["checkpoint_id"]:
            newest[key] = row
    expected: Counter[str] = Counter()
    for (thread, ns), row in newest.items():
        if measured.kind == "sqlite":
            expected[thread] += len(row["checkpoint"])
            continue
        versions = row["checkpoint"]["channel_versions"]
        expected[thread] += row["n"] + sum(
            blob["n"] or 0
            for blob in measured.rows["checkpoint_blobs"]
            if (blob["thread_id"], blob["checkpoint_ns"]) == (thread, ns)
            and versions.get(blob["channel"]) == blob["version"]
        )

    assert {item.thread: item.payload_bytes for item in measured.report("thread").items} == dict(expected)


def test_namespaces_are_counted_by_their_path_of_nodes(measured: Measured) -> None:
    thread = CATALOG["subgraph nested"].thread
    visits = {row["checkpoint_ns"] for row in measured.rows["checkpoints"] if row["thread_id"] == thread}
    n_bytes: Counter[str] = Counter()
    for row in (*_state_rows(measured), *_writes(measured)):
        if row["thread_id"] == thread:
            n_bytes[node_path(row["checkpoint_ns"])] += (row["n"] or 0) + row.get("m", 0)

    items = measured.report("namespace", thread).items

    assert len(items) > 1
    assert {item.ns: item.stored_bytes for item in items} == dict(n_bytes)
    assert {item.ns: item.n_namespaces for item in items} == dict(Counter(node_path(ns) for ns in visits))


def test_channels_hold_as_many_values_as_the_stock_saver_loads(measured: Measured) -> None:
    expected: Counter[tuple[str, str]] = Counter()
    versions: defaultdict[tuple[str, str], set[object]] = defaultdict(set)
    for found in _tuples(measured):
        where = found.config["configurable"]
        for channel in found.checkpoint["channel_values"]:
            key = (node_path(where["checkpoint_ns"]), channel)
            expected[key] += 1
            version = found.checkpoint["channel_versions"].get(channel)
            versions[key].add((where["thread_id"], where["checkpoint_ns"], version))

    items = {(item.ns, item.channel): item for item in measured.report("channel").items if item.n_values}

    assert {key: item.n_values for key, item in items.items()} == dict(expected)
    assert {key: item.n_distinct for key, item in items.items()} == {key: len(found) for key, found in versions.items()}


def test_channels_and_what_belongs_to_none_add_up_to_the_total(measured: Measured) -> None:
    for thread in (None, *(CATALOG[name].thread for name in CASES)):
        report = measured.report("channel", thread)

        assert sum(item.stored_bytes for item in report.items) == report.total.stored_bytes
        assert {item.name for item in report.items if item.channel is None} == {"bookkeeping", "metadata"}


def test_a_channel_takes_what_its_values_take_one_by_one(measured: Measured) -> None:
    expected: Counter[tuple[str, str]] = Counter()
    if measured.kind == "postgres":
        for row in measured.rows["checkpoint_blobs"]:
            expected[node_path(row["checkpoint_ns"]), row["channel"]] += row["n"] or 0
    else:
        for found in _tuples(measured):
            for channel, value in found.checkpoint["channel_values"].items():
                key = (node_path(found.config["configurable"]["checkpoint_ns"]), channel)
                expected[key] += len(measured.saver.serde.dumps_typed([value])[1]) - 1

    items = {(item.ns or "", item.channel or ""): item for item in measured.report("channel").items}

    compared = {key for key, n_bytes in expected.items() if n_bytes and key[1] not in ("text", "small", "ratio")}
    assert ("", "messages") in compared
    assert {key: items[key].state_bytes for key in compared} == {key: expected[key] for key in compared}


def test_pending_writes_are_counted_by_channel(measured: Measured) -> None:
    expected: Counter[str] = Counter()
    for row in _writes(measured):
        expected[row["channel"]] += row["n"]

    found: Counter[str] = Counter()
    for item in measured.report("channel").items:
        if item.channel is not None and item.n_writes:
            found[item.channel] += item.write_bytes

    assert +found == +expected


def test_an_unchanged_value_is_stored_at_every_checkpoint_by_sqlite_and_once_by_postgres(measured: Measured) -> None:
    (item,) = (item for item in measured.report("channel", "growing").items if item.channel == "files")

    assert (item.n_values, item.n_distinct) == (35, 1)
    assert item.unchanged == pytest.approx(34 / 35)
    assert item.payload_bytes == pytest.approx(FILE, rel=0.01)
    assert item.state_bytes == (item.payload_bytes or 0) * (35 if measured.kind == "sqlite" else 1)


def test_messages_are_counted_with_every_copy_of_them(measured: Measured) -> None:
    items = {item.name: item for item in measured.report("message", "growing").items}

    assert items.keys() == {f"m-{n}" for n in range(13)}
    assert {item.detail for item in items.values()} == {"human", "ai"}
    copies: Counter[str] = Counter()
    for found in _message_lists(measured, "growing"):
        copies.update(str(message.id) for message in found)
    assert {name: item.n_values for name, item in items.items()} == dict(copies)
    assert all(item.stored_bytes == (item.payload_bytes or 0) * (item.n_values or 0) for item in items.values())
    assert all(TURN < (item.payload_bytes or 0) < TURN + 250 for item in items.values())


def _message_lists(measured: Measured, thread: str) -> list[list[AnyMessage]]:
    """The lists of messages as often as they are stored: in each checkpoint, or once a version."""
    if measured.kind == "sqlite":
        found = [each.checkpoint["channel_values"] for each in _tuples(measured, thread)]
        return [values["messages"] for values in found if "messages" in values]
    rows = measured.rows["checkpoint_blobs"]
    return [
        measured.saver.serde.loads_typed((row["type"], row["blob"]))
        for row in rows
        if (row["thread_id"], row["channel"]) == (thread, "messages") and row["type"] != "empty"
    ]


def test_the_fields_of_a_channel_add_up_to_its_messages(measured: Measured) -> None:
    messages = measured.report("message", AGENT).items
    fields = [item for item in measured.report("field", AGENT).items if item.channel == "messages"]

    assert {"messages[].content", "messages[].tool_calls", "messages[].id", "messages[]"} <= {f.name for f in fields}
    assert sum(item.stored_bytes for item in fields) == sum(item.stored_bytes for item in messages)
    assert sum(item.payload_bytes or 0 for item in fields) == sum(item.payload_bytes or 0 for item in messages)
    (content,) = (item for item in fields if item.name == "messages[].content")
    assert content.n_distinct == len(messages)
    assert content.n_values == sum(item.n_values or 0 for item in messages)


def test_a_map_is_counted_by_its_keys_and_a_plain_value_as_itself(measured: Measured) -> None:
    names = {item.name for item in measured.report("field", CATALOG["values"].thread).items}

    assert {"table.nested", "table.empty", "text", "small", "items[]", "raw"} <= names


def test_the_largest_rows_come_first_whatever_their_table(measured: Measured) -> None:
    every = sorted(
        ((row["n"] or 0) + row.get("m", 0) for row in (*_state_rows(measured), *_writes(measured))), reverse=True
    )

    report = measured.report("row", top=5)

    assert [item.stored_bytes for item in report.items] == every[:5]
    assert (report.n_total, report.truncated) == (len(every), True)
    assert {item.thread for item in report.items} == {"growing"}
    assert [item.stored_bytes for item in measured.report("row").items] == every


def test_the_database_is_counted_by_table(measured: Measured) -> None:
    database = measured.report("thread").database
    assert database is not None
    tables = {table.name: table for table in database.tables}

    assert {name: len(rows) for name, rows in measured.rows.items()} == {
        name: table.n_rows for name, table in tables.items()
    }
    assert tables["store"].value_bytes == sum(row.get("n") or len(row["value"]) for row in measured.rows["store"])
    values = sum(table.value_bytes or 0 for table in tables.values())
    assert values < database.used_bytes <= database.disk_bytes
    assert (database.index_bytes or 0) > 0
    assert database.index_bytes == sum(table.index_bytes or 0 for table in tables.values())


def test_the_disk_is_what_the_server_and_the_file_say(sqlite: Measured, postgres: Measured) -> None:
    on_sqlite, on_postgres = sqlite.report("thread").database, postgres.report("thread").database
    assert on_sqlite is not None
    assert on_postgres is not None

    path = Path(sqlite.url)
    wal = path.with_name(path.name + "-wal")
    assert on_sqlite.wal_bytes == (wal.stat().st_size if wal.exists() else 0)
    with closing(sqlite3.connect(path)) as connection:
        ((pages, page_bytes, free),) = connection.execute(
            "SELECT page_count, page_size, freelist_count"
            " FROM pragma_page_count, pragma_page_size, pragma_freelist_count"
        )
        index_pages = connection.execute(
            "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'sqlite_autoindex%'"
        ).fetchone()
    assert on_sqlite.disk_bytes == pages * page_bytes + (on_sqlite.wal_bytes or 0)
    assert on_sqlite.free_bytes == free * page_bytes
    assert (on_sqlite.index_bytes or 0) <= index_pages[0] + 8 * page_bytes
    with psycopg.connect(postgres.url) as server:
        query = "SELECT sum(pg_total_relation_size(t::regclass)) FROM unnest(%s::text[]) AS t"
        (whole,) = server.execute(query, (list(postgres.rows),)).fetchall()[0]
    assert on_postgres.disk_bytes == whole


def test_a_saver_is_refused(tmp_path: Path, sqlite: Measured) -> None:
    file = tmp_path / "stores.py"
    file.write_text(
        "from langgraph.checkpoint.sqlite import SqliteSaver\n\n"
        f"def production():\n    return SqliteSaver.from_conn_string({sqlite.url!r})\n"
    )
    with closing(open_reader(f"{file}:production")) as reader, pytest.raises(Refused, match="is a saver"):
        measure(reader)


def test_measuring_writes_nothing(tmp_path: Path, sqlite: Measured, postgres: Measured) -> None:
    at_rest = tmp_path / "threads.sqlite"
    with closing(sqlite3.connect(sqlite.url)) as source, closing(sqlite3.connect(at_rest)) as target:
        source.backup(target)
    levels: tuple[Level, ...] = ("thread", "channel", "message", "row")
    for url in (str(at_rest), postgres.url):
        before = fingerprint(url)
        with closing(open_reader(url)) as reader:
            for level in levels:
                assert measure(reader, by=level).items
        assert fingerprint(url) == before
    assert [path.name for path in tmp_path.iterdir()] == [at_rest.name]


def test_pages_of_rows_are_put_together_again(sqlite: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {level: sqlite.report(level) for level in ("thread", "namespace", "channel", "row")}

    monkeypatch.setattr(sqlite_sizes, "_ROWS_PER_PAGE", 3)

    for level, report in whole.items():
        assert sqlite.report(level) == report, level
        assert sqlite.report(level, AGENT).total.n_checkpoints == len(_tuples(sqlite, AGENT))


def test_threads_and_rows_are_measured_without_reading_a_state(tmp_path: Path, sqlite: Measured) -> None:
    path = tmp_path / "threads.sqlite"
    with closing(sqlite3.connect(sqlite.url)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
        overflow = target.execute(
            "SELECT pageno FROM dbstat WHERE pagetype = 'overflow' AND name IN ('checkpoints', 'writes')"
        ).fetchall()
        ((page_bytes,),) = target.execute("PRAGMA page_size")
    assert overflow
    expected = {level: sqlite.report(level).items for level in ("thread", "namespace", "row")}
    with path.open("r+b") as file:
        for (page,) in overflow:
            file.seek((page - 1) * page_bytes)
            file.write(b"\xff" * page_bytes)

    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.DatabaseError):
        connection.execute("SELECT sum(hex(checkpoint) = '') FROM checkpoints").fetchall()
    with closing(open_reader(str(path))) as reader:
        for level, items in expected.items():
            assert measure(reader, by=level, top=None).items == items


def test_encrypted_rows_have_sizes_without_the_key(
    tmp_path: Path, fresh_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    path = tmp_path / "sealed.sqlite"
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        saver = SqliteSaver(connection, serde=serde)
        run_growing(saver, "growing", 3)
        n_bytes = connection.execute("SELECT sum(length(checkpoint)) FROM checkpoints").fetchone()[0]
    with closing(psycopg.connect(fresh_postgres_url, autocommit=True, row_factory=psycopg.rows.dict_row)) as server:
        sealed = PostgresSaver(server, serde=serde)  # type: ignore[arg-type]
        sealed.setup()
        run_growing(sealed, "growing", 3)
        query = "SELECT sum(octet_length(blob)) AS n FROM checkpoint_blobs WHERE channel IN ('files', 'messages')"
        (blobs,) = server.execute(query).fetchall()

    with closing(open_reader(str(path))) as reader:
        assert measure(reader).total.state_bytes == n_bytes
        channels = measure(reader, by="channel")
        sealed_items = [item for item in channels.items if item.name == "unread"]
        assert [item.state_bytes for item in sealed_items] == [n_bytes]
        assert any("LANGGRAPH_AES_KEY is not set" in note for note in channels.notes)
        assert measure(reader, by="message").items == ()
        monkeypatch.setenv("LANGGRAPH_AES_KEY", "0123456789abcdef")
        assert {item.name for item in measure(reader, by="message").items} == {f"m-{n}" for n in range(4)}
        monkeypatch.delenv("LANGGRAPH_AES_KEY")
    with closing(open_reader(fresh_postgres_url)) as reader:
        by_channel = measure(reader, by="channel", top=None)
        assert sum(item.state_bytes for item in by_channel.items if item.channel in ("files", "messages")) == blobs["n"]
        assert by_channel.notes == ()
        messages = measure(reader, by="message")
        assert messages.items == ()
        assert any("LANGGRAPH_AES_KEY is not set" in note for note in messages.notes)


def test_text_that_javascript_stored_is_counted_in_bytes(tmp_path: Path, sqlite: Measured) -> None:
    path = tmp_path / "text.sqlite"
    with closing(sqlite3.connect(sqlite.url)) as source, closing(sqlite3.connect(path)) as connection:
        source.backup(connection)
        state = '{"v": 4, "channel_values": {"text": "naïve ☕"}, "channel_versions": {"text": 1}}'
        connection.execute("DELETE FROM checkpoints")
        connection.execute("DELETE FROM writes")
        connection.execute(
            "INSERT INTO checkpoints VALUES ('js', '', '1', NULL, 'json', ?, '{\"a\": \"é\"}')", (state,)
        )
        connection.execute(
            "INSERT INTO writes (thread_id, checkpoint_id, task_id, idx, channel, type, value)"
            " VALUES ('js', '1', 't', 0, 'text', 'json', '\"☕\"')"
        )
        connection.commit()

    with closing(open_reader(str(path))) as reader:
        (item,) = measure(reader).items
        fields = {item.name: item.state_bytes for item in measure(reader, by="field").items}

    assert (item.state_bytes, item.metadata_bytes, item.write_bytes) == (len(state.encode()), len('{"a": "é"}') + 1, 5)
    assert fields == {"text": len('"naïve ☕"'.encode())}


def test_rows_that_lost_their_checkpoints_are_counted(tmp_path: Path, sqlite: Measured) -> None:
    path = tmp_path / "half.sqlite"
    with closing(sqlite3.connect(sqlite.url)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
        target.execute("DELETE FROM checkpoints WHERE thread_id = ?", (AGENT,))
        target.commit()
    with closing(open_reader(str(path))) as reader:
        left = {item.thread: item for item in measure(reader, top=None).items}[AGENT]

    assert (left.n_checkpoints, left.state_bytes, left.payload_bytes, left.amplification) == (0, 0, 0, None)
    assert left.n_writes == len([row for row in sqlite.rows["writes"] if row["thread_id"] == AGENT])


def test_freed_pages_are_told_from_used_ones(tmp_path: Path, sqlite: Measured) -> None:
    path = tmp_path / "freed.sqlite"
    with closing(sqlite3.connect(sqlite.url)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
        target.execute("DELETE FROM checkpoints WHERE thread_id = 'growing'")
        target.commit()
    with closing(open_reader(str(path))) as reader:
        database = measure(reader).database

    assert database is not None
    assert (database.free_bytes or 0) > FILE * 20
    assert database.used_bytes < FILE * 35


@pytest.fixture
def looker(postgres: Measured) -> Iterator[str]:
    """The URL of a role that may SELECT from the checkpoint tables and not from the memory store."""
    name = f"sizer_{database_name(postgres.url)}"
    tables = sql.SQL(", ").join(map(sql.Identifier, ("checkpoints", "checkpoint_blobs", "checkpoint_writes")))
    role = sql.Identifier(name)
    with psycopg.connect(postgres.url, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        owner.execute(sql.SQL("GRANT SELECT ON {} TO {}").format(tables, role))
        yield postgres.url.replace("postgres@", f"{quote(name)}@", 1)
        owner.execute(sql.SQL("DROP OWNED BY {}").format(role))
        owner.execute(sql.SQL("DROP ROLE {}").format(role))


def test_a_role_that_may_only_select_measures_all_it_may_read(looker: str, postgres: Measured) -> None:
    with closing(open_reader(looker)) as reader:
        for level in ("thread", "channel", "message", "row"):
            assert measure(reader, by=level, top=None).items == postgres.report(level).items
        database = measure(reader).database
    assert database is not None
    (memory,) = (table for table in database.tables if table.role == "memory")
    assert (memory.n_rows, memory.value_bytes) == (None, None)
    assert (memory.disk_bytes or 0) > 0


def test_a_delta_channel_is_said_to_be_one(measured: Measured) -> None:
    report = measured.report("channel", CATALOG["delta"].thread)

    assert report.notes == (
        "messages is a delta channel: between snapshots its values are rebuilt from writes",
        "notes is a delta channel: between snapshots its values are rebuilt from writes",
    )


def test_progress_is_told_up_to_the_end(measured: Measured) -> None:
    told: list[tuple[int, int]] = []

    measure(measured.reader, by="message", progress=lambda done, total: told.append((done, total)))

    assert told[-1][0] == told[-1][1] == max(total for _, total in told)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
