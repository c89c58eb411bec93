"""Diffs of stored branches, and of copies in another store."""

from dataclasses import replace
from pathlib import Path

from agentctl.experiments.comparing.diff import diff_tips, read_tip
from agentctl.stores.copying.execute import copy
from agentctl.stores.copying.selection import for_copy
from agentctl.stores.open import open_reader, open_writer
from agentctl.stores.reading.lineage import head_id, read_tree
from tests.catalog import CATALOG, sqlite_thread


def test_a_copy_in_another_store_equals_its_source_and_shares_its_head(tmp_path: Path, fresh_postgres_url: str) -> None:
    case = (
        CATALOG["create_agent parallel calls"]
        if "create_agent parallel calls" in CATALOG
        else next(iter(CATALOG.values()))
    )
    reader = open_reader(str(sqlite_thread(tmp_path, case)))
    writer = open_writer(fresh_postgres_url)
    try:
        head = head_id(reader, case.thread)
        copy(reader, writer, [for_copy(reader, case.thread, "", head, "all", "copied")])
        found = diff_tips(read_tip(reader, case.thread, head), read_tip(writer, "copied", head))
        assert found.equal
        assert found.common == head
    finally:
        reader.close()
        writer.close()


def test_two_branches_differ_from_their_fork_on(tmp_path: Path) -> None:
    for case in CATALOG.values():
        folder = tmp_path / case.name.replace("/", "_").replace(" ", "_")
        folder.mkdir()
        reader = open_reader(str(sqlite_thread(folder, case)))
        try:
            if not reader.namespaces(case.thread):
                continue
            tree = read_tree(reader, case.thread)
            if len(tree.tips) < 2:
                continue
            left, right = (read_tip(reader, case.thread, tip) for tip in tree.tips[:2])
            found = diff_tips(left, right)
            back = diff_tips(right, left)
            assert found.common == back.common
            assert found.common is None or found.common in set(tree.chain(tree.tips[0])) & set(tree.chain(tree.tips[1]))
            assert diff_tips(left, replace(left)).equal
            assert found.equal == back.equal
        finally:
            reader.close()
