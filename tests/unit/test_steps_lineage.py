"""The tree of a thread's checkpoints."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentctl.errors import NotFound
from agentctl.records.rows import CheckpointRow
from agentctl.stores.open import open_reader
from agentctl.stores.reading.lineage import common_ancestor, head_id, read_lineage, read_tree, tips, tree_of
from tests.catalog import CATALOG, sqlite_thread


def row(checkpoint_id: str, parent: str | None = None) -> CheckpointRow:
    return CheckpointRow("t", "", checkpoint_id, parent, {})


FORKED = [row("1"), row("2", "1"), row("3", "2"), row("4", "2"), row("5", "4"), row("6", "2")]


def test_a_tree_knows_head_tips_and_children_in_order() -> None:
    tree = tree_of(FORKED)
    assert tree.ids == ("6", "5", "4", "3", "2", "1")
    assert tree.head == "6"
    assert tree.tips == ("6", "5", "3")
    assert tree.children["2"] == ["3", "4", "6"]
    assert tips(FORKED) == ("6", "5", "3")


def test_branches_count_from_the_head_then_by_newest_tip() -> None:
    assert tree_of(FORKED).branches() == {"6": 0, "2": 0, "1": 0, "5": 1, "4": 1, "3": 2}


def test_a_head_with_children_is_still_the_head() -> None:
    """With another machine's clock behind, a child can have a smaller id than its parent."""
    tree = tree_of([row("1"), row("9", "1"), row("5", "9")])
    assert tree.head == "9"
    assert tree.tips == ("5",)
    assert tree.branches() == {"9": 0, "1": 0, "5": 1}


def test_a_missing_parent_ends_the_chain_and_is_named() -> None:
    tree = tree_of([row("2", "1"), row("3", "2")])
    assert list(tree.chain("3")) == ["3", "2"]
    assert tree.dangling("2") == "1"
    assert tree.dangling("3") is None


def test_a_chain_that_bites_its_tail_ends() -> None:
    tree = tree_of([row("1", "2"), row("2", "1")])
    assert list(tree.chain("2")) == ["2", "1"]
    assert set(tree.branches()) == {"1", "2"}


def test_an_empty_tree_has_no_head() -> None:
    tree = tree_of([])
    assert tree.head is None
    assert tree.tips == ()
    assert tree.branches() == {}


def test_a_lineage_is_read_oldest_first_with_its_metadata(tmp_path: Path) -> None:
    case = CATALOG["update fork"]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader:
        lineage = read_lineage(reader, case.thread)
        assert [r.step for r in lineage.rows] == [-1, 0, 1, 2, 3, 4]
        assert lineage.tip.id == head_id(reader, case.thread)
        assert lineage.dangling is None
        assert all(r.id in lineage for r in lineage.rows)
        assert lineage.index[lineage.tip.id] == 5


def test_branches_meet_at_their_newest_common_checkpoint(tmp_path: Path) -> None:
    case = CATALOG["update fork"]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader:
        left, right = (read_lineage(reader, case.thread, tip=tip) for tip in read_tree(reader, case.thread).tips)
        meeting = common_ancestor(left, right)
        assert meeting is not None
        assert left.rows[left.index[meeting]].step == 1
        assert common_ancestor(left, read_lineage(reader, case.thread, tip=left.tip.id)) == left.tip.id


def test_a_deleted_row_leaves_a_dangling_lineage(tmp_path: Path) -> None:
    case = CATALOG["linear"]
    path = sqlite_thread(tmp_path, case)
    with closing(open_reader(str(path))) as reader:
        gone = read_lineage(reader, case.thread).rows[1].id
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (gone,))
        connection.commit()
    with closing(open_reader(str(path))) as reader:
        lineage = read_lineage(reader, case.thread)
        assert [r.step for r in lineage.rows] == [1, 2, 3]
        assert lineage.dangling == gone


def test_what_does_not_exist_is_not_found(tmp_path: Path) -> None:
    case = CATALOG["subgraph"]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader:
        with pytest.raises(NotFound, match="thread nobody has no checkpoints"):
            head_id(reader, "nobody")
        with pytest.raises(NotFound, match="has no namespace 'default'") as raised:
            read_lineage(reader, case.thread, "default")
        assert [c["ns"] for c in raised.value.candidates] == list(reader.namespaces(case.thread))
        with pytest.raises(NotFound, match="has no checkpoint 123"):
            read_lineage(reader, case.thread, tip="123")
