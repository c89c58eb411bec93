"""The report of sizes: what adds up, what is kept, what is projected. Stores are counted in the contract tests."""

from __future__ import annotations

import pytest

from agentctl.records.sizes import Assumptions, DatabaseSize, SizeItem, SizeReport, TableSize
from agentctl.render.size import bar, human
from agentctl.upkeep.largest import Largest
from agentctl.upkeep.projection import project


def item(name: str, n_bytes: int) -> SizeItem:
    return SizeItem(name=name, state_bytes=n_bytes)


def test_the_largest_are_kept_in_order_and_all_are_counted() -> None:
    largest = Largest(3)
    largest.update(item(f"i-{n}", n) for n in (5, 1, 9, 9, 7, 0))

    assert [(each.name, each.state_bytes) for each in largest.items()] == [("i-9", 9), ("i-9", 9), ("i-7", 7)]
    assert largest.n_seen == 6


def test_among_equals_the_first_stay() -> None:
    largest = Largest(2)
    largest.update(item(name, 4) for name in "abc")

    assert [each.name for each in largest.items()] == ["a", "b"]


def test_without_a_limit_everything_is_kept() -> None:
    largest = Largest(None)
    largest.update(item(str(n), n) for n in range(50))

    assert [each.state_bytes for each in largest.items()] == list(range(49, -1, -1))


def test_stored_is_state_metadata_and_writes_and_amplification_is_stored_by_payload() -> None:
    one = SizeItem(state_bytes=60, metadata_bytes=10, write_bytes=30, payload_bytes=20, n_values=8, n_distinct=2)

    assert (one.stored_bytes, one.amplification, one.unchanged) == (100, 5.0, 0.75)
    assert (item("x", 1).amplification, item("x", 1).unchanged) == (None, None)
    assert SizeItem(state_bytes=1, payload_bytes=0, n_values=0, n_distinct=0).unchanged is None


def test_a_projection_multiplies_what_it_says() -> None:
    tables = (TableSize("checkpoints", "checkpoints", 3, 500), TableSize("store", "memory", 1, 100))
    database = DatabaseSize(tables, disk_bytes=2000, free_bytes=700, wal_bytes=100)

    projection = project(Assumptions(10, 30), [100, 200, 600], database)

    assert (projection.bytes_per_thread, projection.median_bytes, projection.largest_bytes) == (300, 200, 600)
    assert (projection.n_threads_kept, projection.value_bytes) == (300, 90_000)
    assert (projection.disk_ratio, projection.disk_bytes) == (2.0, 180_000)


@pytest.mark.parametrize("database", [None, DatabaseSize((TableSize("checkpoints", "checkpoints", 0, 0),), 4096)])
def test_a_projection_of_nothing_is_nothing(database: DatabaseSize | None) -> None:
    projection = project(Assumptions(10, 30), [], database)

    assert (projection.bytes_per_thread, projection.value_bytes, projection.disk_bytes) == (0, 0, None)


def test_indexes_are_unknown_where_one_table_does_not_tell() -> None:
    known, unknown = TableSize("a", "writes", index_bytes=5), TableSize("b", "writes")

    assert DatabaseSize((known, known), 100).index_bytes == 10
    assert DatabaseSize((known, unknown), 100).index_bytes is None


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(0, 10, ""), (10, 10, "████"), (5, 10, "██"), (9, 10, "███▋"), (1, 1_000_000, "▏"), (0, 0, "")],
)
def test_a_bar_is_as_long_as_its_part(part: int, whole: int, expected: str) -> None:
    assert bar(part, whole, 4) == expected


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (120, ["thread", "checkpoints", "writes", "newest", "stored", "times", "share"]),
        (80, ["thread", "checkpoints", "newest", "stored", "times"]),
        (40, ["thread", "checkpoints", "newest", "stored", "times"]),
    ],
)
def test_columns_are_left_out_before_a_thread_id_is_cut(width: int, titles: list[str]) -> None:
    thread = "1f1ece33-5130-6cbe-800a-00e77abd2078"
    one = SizeItem(thread=thread, n_checkpoints=9, state_bytes=7_000_000, write_bytes=3_000_000, payload_bytes=70_000)
    report = SizeReport("prod", None, "thread", one, 1, (one,), 1)

    lines = [str(line) for line in human(report, lambda found: f"prod::{found}", str, width)]

    (at,) = (place for place, line in enumerate(lines) if line.startswith("thread "))
    assert lines[at].split() == titles
    assert lines[at + 1].startswith(thread)
    assert lines[at + 1].endswith("██")
    assert len(lines[at + 1]) <= max(width, 80)
