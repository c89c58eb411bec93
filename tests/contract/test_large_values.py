"""Large values are examined, searched, measured and copied in parts: no read of a store gives one whole."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from agentctl.codec.large import HELD_BYTES, abridged, check, digest_of, nothing
from agentctl.codec.values import unpack
from agentctl.errors import DecodeError
from agentctl.records.rows import Large, Stored
from agentctl.stores.base import CopyPlan, RowPick
from agentctl.stores.copying import postgres_rows
from agentctl.stores.copying.execute import copy
from agentctl.stores.large import LARGE_BYTES, Chunks, values_of
from agentctl.stores.open import open_reader
from agentctl.stores.postgres.writer import PostgresTransaction
from agentctl.stores.sqlite.writer import SqliteWriter
from agentctl.testing import run_cli
from agentctl.upkeep.doctor.shapes import large_shapes, shapes_of
from agentctl.upkeep.doctor.unordered import unordered_digest
from tests.contract.test_large_states import N_BYTES, write_large
from tests.support.postgres import new_database

CALL = {"name": "look", "args": {"q": "x"}, "id": "c1"}


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("values") / "large.sqlite")
    write_large(path)
    return path


@pytest.fixture
def longest_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of what each read of a value in parts gave."""
    given: list[int] = []
    read = Chunks.__getitem__

    def counted(self: Chunks, part: slice, /) -> bytes:
        found = read(self, part)
        given.append(len(found))
        return found

    monkeypatch.setattr(Chunks, "__getitem__", counted)
    return given


@pytest.mark.parametrize(
    "words", [("doctor", "large"), ("size", "large", "--by", "field"), ("threads", "--grep", "zz")]
)
def test_a_large_value_is_looked_at_in_parts(words: tuple[str, ...], large_file: str, longest_read: list[int]) -> None:
    result = run_cli(*words, "--store", large_file)

    assert result.code == 0, result.err
    assert sum(longest_read) > N_BYTES
    assert max(longest_read) <= LARGE_BYTES


def test_a_copy_between_files_moves_a_large_value_in_parts(
    large_file: str, tmp_path: Path, longest_read: list[int]
) -> None:
    target = str(tmp_path / "copy.sqlite")

    result = run_cli("copy", "large", "--only", "all", "--to", target, "--store", large_file)

    assert result.code == 0, result.err
    assert max(longest_read) <= LARGE_BYTES < N_BYTES < sum(longest_read)
    query = "SELECT checkpoint_id, type, checkpoint, typeof(metadata) FROM checkpoints ORDER BY 1"
    with closing(sqlite3.connect(large_file)) as one, closing(sqlite3.connect(target)) as other:
        assert one.execute(query).fetchall() == other.execute(query).fetchall()


def test_copies_between_databases_and_into_a_file_move_a_large_value_in_parts(
    large_file: str, tmp_path: Path, postgres_url: str, longest_read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_rows, "_CHUNK_BYTES", LARGE_BYTES)
    target = str(tmp_path / "copy.sqlite")
    with new_database(postgres_url) as one, new_database(postgres_url) as other:
        for source, to in ((large_file, one), (one, other), (other, target)):
            longest_read.clear()
            result = run_cli("copy", "large", "--only", "all", "--store", source, "--to", to, "--as", "large")

            assert result.code == 0, result.err
            assert sum(longest_read) > N_BYTES
            assert max(longest_read) <= LARGE_BYTES or to == one  # text that is inline in Postgres is held on its way
    with closing(open_reader(large_file)) as original, closing(open_reader(target)) as copied:
        ids = [row.id for row in original.rows("large")]
        for expected, found in zip(original.stored("large", "", ids), copied.stored("large", "", ids), strict=True):
            assert dict(expected.values) == dict(found.values)


def test_a_role_that_may_make_no_temporary_tables_copies_large_values_too(
    large_file: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresTransaction, "_may_make_temporary", lambda transaction: False)
    with new_database(postgres_url) as one, new_database(postgres_url) as other:
        for source, to in ((large_file, one), (one, other)):
            result = run_cli("copy", "large", "--only", "all", "--store", source, "--to", to, "--as", "large", "--json")

            assert result.code == 0, result.err
            assert result.json["verified"]


def test_copies_of_the_same_large_rows_are_each_marked_as_they_are_inserted(
    large_file: str, tmp_path: Path, longest_read: list[int]
) -> None:
    with closing(open_reader(large_file)) as reader, closing(SqliteWriter(tmp_path / "copies.sqlite")) as writer:
        picks = tuple(RowPick("", row.id) for row in reader.rows("large"))
        plans = [CopyPlan("large", name, picks, provenance={f"agentctl_{name}": "yes"}) for name in ("one", "two")]
        copy(reader, writer, plans)
        newest, *older = reader.rows("large")

        assert max(longest_read) <= LARGE_BYTES < N_BYTES < sum(longest_read)
        for name in ("one", "two"):
            marked, *others = writer.rows(name)
            assert marked.metadata == {**newest.metadata, f"agentctl_{name}": "yes"}
            assert [row.metadata for row in others] == [row.metadata for row in older]
            assert dict(next(iter(writer.stored(name, "", [newest.id]))).values) == dict(
                next(iter(reader.stored("large", "", [newest.id]))).values
            )


def test_metadata_that_cannot_be_read_stays_as_it_is_in_a_copy(large_file: str, tmp_path: Path) -> None:
    damaged, target = str(tmp_path / "damaged.sqlite"), str(tmp_path / "copy.sqlite")
    shutil.copyfile(large_file, damaged)
    with closing(sqlite3.connect(damaged)) as connection, connection:
        connection.execute("UPDATE checkpoints SET metadata = CAST('{no JSON' AS BLOB)")

    result = run_cli("copy", "large", "--only", "all", "--to", target, "--store", damaged)

    assert result.code == 0, result.err
    with closing(sqlite3.connect(target)) as connection:
        assert set(connection.execute("SELECT metadata FROM checkpoints")) == {(b"{no JSON",)}


def test_a_value_in_parts_is_the_value_read_whole(large_file: str, fresh_postgres_url: str) -> None:
    write_large(fresh_postgres_url)
    for url in (large_file, fresh_postgres_url):
        with closing(open_reader(url)) as reader:
            ids = [row.id for row in reader.rows("large")]
            wholes = list(reader.stored("large", "", ids))
            n_large = 0
            for whole, lean in zip(wholes, reader.stored("large", "", ids, value_bytes=LARGE_BYTES), strict=True):
                found = values_of(reader, lean)

                assert {name: (value.type, value.data[:]) for name, value in found.items()} == {
                    name: tuple(value) for name, value in whole.values.items()
                }
                n_large += sum(isinstance(value, Large) for value in found.values())
            assert n_large == 2


def messages() -> Iterator[list[Any]]:
    yield [HumanMessage("x" * HELD_BYTES * 2, id="m1"), AIMessage("", id="m2", tool_calls=[CALL])]
    yield [HumanMessage("y" * 5000, id=f"m{i}") for i in range(500)]


VALUES: tuple[Callable[[], Any], ...] = (
    lambda: "t" * (HELD_BYTES + 5),
    lambda: {f"k{i}": {"a": i, "b": "z" * 9000} for i in range(300)},
    lambda: {"s": {f"{i}" * 2000 for i in range(900)}, "big": "q" * HELD_BYTES * 2},
    lambda: next(messages()),
    lambda: list(messages())[1],
)


@pytest.mark.parametrize("make", VALUES)
def test_what_is_told_of_a_large_value_is_told_of_it_whole(make: Callable[[], Any]) -> None:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    stored = Stored(*JsonPlusSerializer().dumps_typed(make()))
    large = Large(stored.type, Chunks(len(stored.data), lambda start, n: stored.data[start : start + n]))

    check(large)
    assert digest_of(large.data) == digest_of(stored.data)
    assert unordered_digest(large) == unordered_digest(stored)
    assert large_shapes(large.data) == shapes_of(unpack(stored))
    assert abridged(large, "".join) == unpack(stored)
    assert abridged(large, nothing) is not None


def test_damage_inside_a_large_value_is_found() -> None:
    data = ormsgpack.packb(["a" * (HELD_BYTES + 5), "b"])
    for bad in (data[:-3], data[:100] + b"\xff" + data[101:]):
        with pytest.raises(DecodeError):
            check(Large("msgpack", Chunks(len(bad), lambda start, n, bad=bad: bad[start : start + n])))  # type: ignore[misc]


def test_a_value_that_is_costly_to_reach_is_read_in_few_parts() -> None:
    data = bytes(range(256)) * 64
    asked: list[int] = []

    def read(start: int, n_bytes: int) -> bytes:
        asked.append(n_bytes)
        return data[start : start + n_bytes]

    value = Chunks(len(data), read, chunk_bytes=len(data) // 2)

    assert b"".join(value[at : at + 100] for at in range(0, len(data), 100)) == data
    assert len(asked) == 3  # a part that two reads lie across is begun anew
