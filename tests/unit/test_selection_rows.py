"""Which rows a plan picks, on threads laid out by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from agentctl.errors import DecodeError, NotFound
from agentctl.records.rows import NULL_TASK, CheckpointRow, Stored, StoredCheckpoint, WriteRow
from agentctl.stores.base import CopyPlan, RowPick, StoreInfo
from agentctl.stores.copying.picking import by_rule, condition, takes
from agentctl.stores.copying.selection import for_copy, for_replay, for_resume
from agentctl.stores.delegation import ReadsThrough


@dataclass
class HandMade(ReadsThrough):
    """A thread given as rows: (namespace, id, parent, metadata)."""

    given: Sequence[tuple[str, str, str | None, Mapping[str, object]]]
    stores: Mapping[str, Collection[str]] = field(default_factory=dict)
    unreadable: bool = False
    info: StoreInfo = field(default_factory=lambda: StoreInfo("saver", "by hand"))

    def namespaces(self, thread: str) -> Sequence[str]:
        return sorted({ns for ns, *_ in self.given})

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        found = [
            CheckpointRow(thread, ns, id, parent, meta if metadata else {})
            for at, id, parent, meta in self.given
            if at == ns and (ids is None or id in ids)
        ]
        return sorted(found, key=lambda row: row.id, reverse=True)

    def stored(
        self, thread: str, ns: str, ids: Collection[str], *, channels: Collection[str] | None = None
    ) -> Iterator[StoredCheckpoint]:
        if self.unreadable:
            raise DecodeError("encrypted")
        for id in ids:
            values = {name: Stored("msgpack", b"\x90") for name in self.stores.get(id, ()) if name in (channels or ())}
            yield StoredCheckpoint(self.rows(thread, ns, ids=[id])[0], 4, {}, {}, values)

    def writes(self, thread: str, ns: str, *_: object, **__: object) -> Sequence[WriteRow]:
        return ()


LINE = [("", "1", None, {}), ("", "2", "1", {}), ("", "3", "2", {}), ("", "4", "2", {})]


def picked(plan: CopyPlan) -> list[str]:
    return [f"{pick.ns}/{pick.id}" if pick.ns else pick.id for pick in plan.picks]


def pick_of(plan: CopyPlan, id: str) -> RowPick:
    return next(pick for pick in plan.picks if pick.id == id)


def test_a_lineage_is_the_parent_chain_alone() -> None:
    assert picked(for_copy(HandMade(LINE), "t", "", "3", "lineage", "copy")) == ["1", "2", "3"]


def test_all_takes_every_branch() -> None:
    assert picked(for_copy(HandMade(LINE), "t", "", "3", "all", "copy")) == ["1", "2", "3", "4"]


def test_a_point_takes_one_row_with_all_its_writes() -> None:
    plan = for_copy(HandMade(LINE), "t", "", "3", "point", "copy")
    assert plan.picks == (RowPick("", "3"),)
    assert plan.run_from is None


def test_a_replay_leaves_task_writes_behind_and_is_run_from_the_checkpoint() -> None:
    plan = for_replay(HandMade(LINE), "t", "", "3", "copy")
    assert plan.picks == (RowPick("", "3", writes="null_task"),)
    assert plan.run_from == "3"


def test_a_parent_that_is_not_stored_ends_the_chain() -> None:
    reader = HandMade([("", "2", "gone", {}), ("", "3", "2", {})])
    assert picked(for_copy(reader, "t", "", "3", "lineage", "copy")) == ["2", "3"]


def test_a_loop_of_parents_ends_the_chain() -> None:
    reader = HandMade([("", "2", "3", {}), ("", "3", "2", {})])
    assert picked(for_copy(reader, "t", "", "3", "lineage", "copy")) == ["2", "3"]


def test_an_unknown_checkpoint_is_not_found_with_the_command_that_lists_them() -> None:
    with pytest.raises(NotFound) as missing:
        for_copy(HandMade(LINE), "t", "", "9", "lineage", "copy")
    assert missing.value.hint is not None and "agentctl history t" in missing.value.hint


SUBGRAPH = [
    *LINE[:3],
    ("a:old", "1a", None, {"parents": {"": "1"}}),
    ("a:new", "2a", None, {"parents": {"": "2"}}),
    ("a:new", "2b", "2a", {"parents": {"": "2"}}),
    ("a:new|b:x", "2c", None, {"parents": {"": "2", "a:new": "2b"}}),
    ("a:new|b:y", "2d", None, {"parents": {"": "2", "a:new": "2a"}}),
    ("a:new|1", "2e", None, {"parents": {"": "2"}}),
]


def test_a_lineage_takes_every_namespace_below_it() -> None:
    assert picked(for_copy(HandMade(SUBGRAPH), "t", "", "2", "lineage", "copy")) == [
        "1",
        "2",
        "a:new/2a",
        "a:new/2b",
        "a:new|1/2e",
        "a:new|b:x/2c",
        "a:new|b:y/2d",
        "a:old/1a",
    ]


def test_a_resume_takes_the_newest_row_of_each_namespace_below() -> None:
    assert picked(for_resume(HandMade(SUBGRAPH), "t", "", "2", "copy")) == [
        "2",
        "a:new/2b",
        "a:new|1/2e",
        "a:new|b:x/2c",
    ]


def test_a_replay_takes_no_namespace_of_the_step_it_runs_again() -> None:
    assert picked(for_replay(HandMade(SUBGRAPH), "t", "", "2", "copy")) == ["2"]


def test_a_row_inside_a_namespace_brings_its_enclosing_rows_without_the_owning_task() -> None:
    for select, writes in ((for_resume, "all"), (for_replay, "null_task")):
        plan = select(HandMade(SUBGRAPH), "t", "a:new|b:x", "2c", "copy")
        assert plan.run_from is None
        assert pick_of(plan, "2c").writes == writes
        assert pick_of(plan, "2").except_tasks == frozenset({"new"})
        assert pick_of(plan, "2b").except_tasks == frozenset({"x"})
        assert pick_of(plan, "2").except_null_resume == (writes == "null_task")


def test_a_lineage_inside_a_namespace_stops_at_the_row_named() -> None:
    plan = for_copy(HandMade(SUBGRAPH), "t", "a:new", "2a", "lineage", "copy")
    assert picked(plan) == ["1", "2", "a:new/2a", "a:new|1/2e", "a:new|b:y/2d", "a:old/1a"]
    assert pick_of(plan, "2").except_tasks == frozenset({"new"})


def test_a_row_that_does_not_name_its_root_checkpoint_is_not_found() -> None:
    reader = HandMade([*LINE, ("a:x", "2a", None, {})])
    with pytest.raises(NotFound, match="does not name the root checkpoint"):
        for_resume(reader, "t", "a:x", "2a", "copy")


PERSISTENT = [
    *LINE[:3],
    ("sub", "1s", None, {"parents": {"": "1"}}),
    ("sub", "2s", "1s", {"parents": {"": "2"}}),
    ("sub", "4s", "2s", {"parents": {"": "4"}}),
]


def test_a_subgraph_that_keeps_its_state_stands_where_it_stood_before_a_replay() -> None:
    assert picked(for_replay(HandMade(PERSISTENT), "t", "", "2", "copy")) == ["2", "sub/1s"]
    assert picked(for_replay(HandMade(PERSISTENT), "t", "", "1", "copy")) == ["1"]


def test_a_resume_takes_the_state_a_subgraph_had_kept_on_this_lineage() -> None:
    assert picked(for_resume(HandMade(PERSISTENT), "t", "", "3", "copy")) == ["3", "sub/2s"]


def test_an_update_is_replayed_with_the_state_from_before_its_parent_too() -> None:
    rows = [row if row[1] != "3" else ("", "3", "2", {"source": "update"}) for row in PERSISTENT]
    assert picked(for_replay(HandMade(rows), "t", "", "3", "copy")) == ["3", "sub/1s", "sub/2s"]


DELTA = {"counters_since_delta_snapshot": {"messages": [1, 2], "notes": [1, 2]}}
DELTAS = [("", "1", None, {}), ("", "2", "1", DELTA), ("", "3", "2", DELTA), ("", "4", "3", DELTA)]


def test_a_delta_channel_brings_ancestors_down_to_the_first_that_stores_it() -> None:
    reader = HandMade(DELTAS, stores={"2": ["messages"], "4": ["notes"]})
    plan = for_resume(reader, "t", "", "4", "copy")
    assert plan.picks == (
        RowPick("", "2", channels=frozenset({"messages"})),
        RowPick("", "3", channels=frozenset({"messages"})),
        RowPick("", "4"),
    )


def test_a_delta_channel_that_nobody_stores_brings_the_whole_chain() -> None:
    assert picked(for_resume(HandMade(DELTAS), "t", "", "4", "copy")) == ["1", "2", "3", "4"]


def test_where_values_cannot_be_read_every_ancestor_comes_along() -> None:
    reader = HandMade(DELTAS, stores={"3": ["messages", "notes"]}, unreadable=True)
    assert picked(for_resume(reader, "t", "", "4", "copy")) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("pick", "expected"),
    [
        (RowPick("", "1"), ["task log", "task __resume__", "null goto", "null __resume__"]),
        (RowPick("", "1", writes="null_task"), ["null goto"]),
        (RowPick("", "1", writes="none"), []),
        (RowPick("", "1", except_tasks=frozenset({"task"})), ["null goto", "null __resume__"]),
        (RowPick("", "1", except_null_resume=True), ["task log", "task __resume__", "null goto"]),
        (RowPick("", "1", channels=frozenset({"log"})), ["task log"]),
    ],
)
def test_a_pick_says_which_writes_it_takes(pick: RowPick, expected: list[str]) -> None:
    writes = [("task", "log"), ("task", "__resume__"), (NULL_TASK, "goto"), (NULL_TASK, "__resume__")]
    taken = [
        f"{'null' if task == NULL_TASK else task} {channel}" for task, channel in writes if takes(pick, task, channel)
    ]
    assert taken == expected


@pytest.mark.parametrize("writes", ["all", "null_task"])
@pytest.mark.parametrize("except_tasks", [frozenset(), frozenset({"task"})])
@pytest.mark.parametrize("channels", [None, frozenset({"log", "__resume__"})])
@pytest.mark.parametrize("except_null_resume", [True, False])
def test_the_rule_in_sql_is_the_rule_in_python(
    writes: str, except_tasks: frozenset[str], channels: frozenset[str] | None, except_null_resume: bool
) -> None:
    import sqlite3

    pick = RowPick("", "", writes, except_tasks, channels, except_null_resume)  # type: ignore[arg-type]
    rows = [(task, channel) for task in ("task", "other", NULL_TASK) for channel in ("log", "goto", "__resume__")]
    text, parameters = condition(pick, "?")
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE writes (task_id, channel)")
    connection.executemany("INSERT INTO writes VALUES (?, ?)", rows)
    found = connection.execute(f"SELECT task_id, channel FROM writes WHERE 1 = 1{text}", parameters).fetchall()
    connection.close()
    assert sorted(found) == sorted(row for row in rows if takes(pick, *row))


def test_picks_that_take_no_writes_are_in_no_group() -> None:
    groups = by_rule([RowPick("", "1"), RowPick("a", "2"), RowPick("", "3", writes="none")])
    assert groups == {RowPick("", ""): [RowPick("", "1"), RowPick("a", "2")]}
