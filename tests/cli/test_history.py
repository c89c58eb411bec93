"""`agentctl history`."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.catalog import CATALOG, run_case
from tests.support.cli import AGENT, ASKING, EDITED, FAILED, Cli


def test_a_tree_at_80_columns(cli: Cli) -> None:
    assert cli.named(cli("history", EDITED, terminal=True).out, EDITED) == (
        "support-18  prod (sqlite)  9 checkpoints, 2 branches  head id-00008: done\n"
        "note: the head descends from an update (id-00005); the customer saw id-00004\n"
        "     id        step  when  wrote        next       what happened\n"
        '●    id-00008     6    3h  model        -          reply "Your refund is on i...\n'
        "●    id-00007     5    3h  tools        model      issue_refund -> refunded 1...\n"
        "●    id-00006     4    3h  model        tools      calls issue_refund(A1, 120.0)\n"
        '●    id-00005     3    3h  update as ?  model      lookup_order -> status "lost"\n'
        '│ ○  id-00004     3    3h  model        -          reply "No refund is due: y...\n'
        '●─╯  id-00003     2    3h  tools x2     model      lookup_order -> status "de...\n'
        "●    id-00002     1    3h  model        tools x2   calls lookup_order(A1), ge...\n"
        '●    id-00001     0    3h  __start__    model      "where is my order?"\n'
        '●    id-00000    -1    3h  input        __start__  "where is my order?"\n'
    )


def test_a_wide_terminal_cuts_nothing(cli: Cli) -> None:
    out = cli("history", EDITED, terminal=True, width=200).out
    assert "..." not in out
    assert 'lookup_order -> status "delivered", get_policy -> days 30' in out


def test_no_line_is_wider_than_the_terminal(cli: Cli) -> None:
    for width in (80, 100, 120):
        assert (
            max(len(line) for line in cli("history", EDITED, terminal=True, width=width).out.splitlines()[2:]) <= width
        )


def test_a_failed_step_and_a_question_are_shown(cli: Cli) -> None:
    assert "ValueError('the bureau did not answer')" in cli("history", FAILED, terminal=True, width=200).out
    assert "head " in cli("history", ASKING, terminal=True).out
    assert cli("history", ASKING, "--json").json["items"][0]["interrupts"][0]["node"].endswith("after_model")


def test_a_pipe_gets_every_row_whole(cli: Cli) -> None:
    rows = cli("history", AGENT).rows
    assert [row[3] for row in rows] == ["3", "2", "1", "0", "-1"]
    assert [row[6] for row in rows] == ["model", "tools,tools", "model", "__start__", ""]
    assert rows[0][1] == rows[1][0]
    assert rows[0][9] == 'reply "No refund is due: your order was delivered."'


def test_the_document_has_what_the_table_has(cli: Cli) -> None:
    document = cli("history", AGENT, "--json").json
    assert document["schema"] == "agentctl.history/1"
    assert (document["n_total"], document["truncated"], document["status"]) == (5, False, "done")
    newest = document["items"][0]
    assert newest["is_head"] and newest["id"] == document["head"]
    assert (newest["wrote"], newest["next"], newest["branch"]) == (["model"], [], 0)


@pytest.mark.parametrize(
    ("revision", "steps"),
    [
        ("", [6, 5, 4, 3, 3, 2, 1, 0, -1]),
        ("@step:1", [1, 0, -1]),
        ("@root..step:1", [1, 0]),
        ("@step:2..head", [6, 5, 4, 3]),
        ("@{seen}...head", [6, 5, 4, 3, 3]),
    ],
)
def test_a_revision_or_a_range_lists_a_part_of_the_thread(cli: Cli, revision: str, steps: list[int]) -> None:
    seen = cli.ids(EDITED)[4]
    listed = cli("history", EDITED + revision.format(seen=seen), "--json").json
    assert [item["step"] for item in listed["items"]] == steps
    assert (listed["n_total"], listed["truncated"]) == (len(steps), False)


def test_a_branch_lists_its_lineage(cli: Cli) -> None:
    seen = cli.ids(EDITED)[4]
    listed = cli("history", EDITED, "--branch", seen[-8:], "--json").json["items"]
    assert [item["step"] for item in listed] == [3, 2, 1, 0, -1]


def test_a_page_on_a_terminal_says_that_it_is_cut(cli: Cli) -> None:
    out = cli("history", EDITED, "--limit", "2", terminal=True).out
    assert out.splitlines()[-1] == "2 of 9 checkpoints shown; all: --limit 0"
    assert len(cli("history", EDITED, "--limit", "2").rows) == 2
    assert len(cli("history", EDITED, "--limit", "0", terminal=True).out.splitlines()) == 12
    assert cli("history", EDITED, "--limit", "2", "--json").json["truncated"] is True


def test_a_short_id_of_a_page_names_one_checkpoint_of_the_whole_thread(cli: Cli, tmp_path: Path) -> None:
    """The last eight digits of two ids are made alike; only one of them is on the page."""
    import sqlite3

    path = tmp_path / "alike.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run_case(CATALOG["loop"], saver, "t")
    ids = [item["id"] for item in cli("history", "t", "--store", path, "--json").json["items"]]
    twin = ids[-1][:-8] + ids[0][-8:]
    with sqlite3.connect(path) as database:
        database.execute("UPDATE checkpoints SET checkpoint_id = ? WHERE checkpoint_id = ?", (twin, ids[-1]))
        database.execute(
            "UPDATE checkpoints SET parent_checkpoint_id = ? WHERE parent_checkpoint_id = ?", (twin, ids[-1])
        )
        database.execute("UPDATE writes SET checkpoint_id = ? WHERE checkpoint_id = ?", (twin, ids[-1]))
    database.close()
    out = cli("history", "t", "--store", path, "--limit", "1", terminal=True).out
    shown = out.splitlines()[1 + 1].split()[1]
    assert len(shown) > 8
    assert cli("resolve", f"t@{shown}", "--store", path).rows[0][0] == ids[0]


def test_every_namespace_is_listed_with_all(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "nested.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run_case(CATALOG["subgraph interrupted"], saver, "t")
    items = cli("history", "t", "--store", path, "--all", "--json").json["items"]
    inner = {item["ns"] for item in items} - {""}
    assert inner
    ns = inner.pop()
    only = cli("history", "t", "--store", path, "--ns", ns, "--json").json["items"]
    assert {item["ns"] for item in only} == {ns}
    narrow = cli("history", "t", "--store", path, "--all", terminal=True).out
    assert max(map(len, narrow.splitlines()[1:])) <= 80
    shown = cli("history", "t", "--store", path, "--all", terminal=True, width=160).out
    (short,) = {word for word in shown.split() if ":" in word and ns.startswith(word)}
    assert cli("history", "t", "--store", path, "--ns", short, "--json").json["items"] == only, "what is shown is taken"


@pytest.mark.parametrize(
    ("args", "code", "message", "hint"),
    [
        (["nobody"], 3, "there is no thread nobody", "agentctl threads"),
        (["staging::nobody"], 4, "no such file", "staging.sqlite"),
        ([f"{EDITED}@stp:1"], 2, "stp", ""),
        (
            [f"{EDITED}@ffffffff"],
            3,
            "no checkpoint of support-18 is or ends in ffffffff",
            f"agentctl history prod::{EDITED}",
        ),
        ([EDITED, "--ns", "inner"], 3, "inner", ""),
        ([EDITED, "--limit", "-1"], 2, "--limit", "agentctl history --help"),
        ([EDITED, "--branch", "ffffffff"], 3, "ffffffff", ""),
        ([f"{EDITED}@root", "--all"], 2, "--all lists every namespace", ""),
    ],
)
def test_what_cannot_be_listed_is_said(cli: Cli, args: list[str], code: int, message: str, hint: str) -> None:
    failed = cli("history", *args)
    assert (failed.code, failed.out) == (code, "")
    assert failed.err.startswith("error: ")
    assert message in failed.err
    assert hint in failed.err


def test_a_syntax_error_is_underlined(cli: Cli) -> None:
    failed = cli("history", f"{EDITED}@step:x")
    assert failed.code == 2
    lines = failed.err.splitlines()
    assert lines[1] == f"  {EDITED}@step:x"
    assert lines[2].strip("^ ") == ""


def test_a_run_id_given_as_a_thread_names_its_thread(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = CATALOG["linear"].build(saver)
        graph.invoke(
            {"log": []},
            {"configurable": {"thread_id": "a thread"}, "metadata": {"run_id": "r-1"}},
            durability="sync",
        )
    failed = cli("history", "r-1", "--store", path)
    assert failed.code == 3
    assert "r-1 is a run, not a thread: it ran on thread a thread" in failed.err
    assert failed.err.splitlines()[-1] == f"hint: agentctl history --store {path} 'a thread'"
