"""Reports H: browsing histories and lists of threads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from agentctl.stores.open import open_reader
from agentctl.stores.reading.view import read_checkpoint
from agentctl.testing import CliResult, run_cli
from tests.catalog import config_of
from tests.support.damage import DAMAGED, Rows, postgres_rows, sqlite_rows
from tests.support.damaging import rename
from tests.support.postgres import new_database

LONG = 7
"""Rounds of the long thread."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    """A store of either kind with a line, a forked thread and a long one."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            made = stack.enter_context(sqlite_rows(tmp_path_factory.mktemp("history")))
        else:
            url = stack.enter_context(new_database(request.getfixturevalue("postgres_url")))
            made = stack.enter_context(postgres_rows(url))
        made.run("linear", "line")
        made.run("update fork", "forked")
        _fill(made, "long")
        yield made


def _fill(rows: Rows, thread: str) -> None:
    """A thread of many rounds, with metadata to filter by."""
    graph = StateGraph(MessagesState).add_node("agent", lambda state: {"messages": [("ai", "yes")]})
    app = graph.add_edge(START, "agent").compile(checkpointer=rows.saver)
    config: Any = config_of(thread) | {"metadata": {"vip": True, "user_id": "u-1"}}
    for _ in range(LONG):
        app.invoke({"messages": [HumanMessage("hi")]}, config, durability="sync")
    rows.metadata(thread, rows.ids(thread)[-1], lambda metadata: metadata.update(tags=["a", "b"], tier=None))


def ask(rows: Rows, *words: str) -> CliResult:
    return run_cli(*words, "--store", rows.url, "--json", environ={})


def ids(rows: Rows, *words: str) -> list[str]:
    found = ask(rows, "history", *words)
    assert found.code == 0, found.out
    return [item["id"] for item in found.json["items"]]


def test_h1_a_thread_is_listed_whole_and_begins_with_its_input(rows: Rows) -> None:
    whole = ask(rows, "history", "line").json["items"]

    assert [item["step"] for item in whole] == [3, 2, 1, 0, -1]
    assert (whole[-1]["source"], whole[-1]["next"]) == ("input", ["__start__"])
    middle = whole[2]["id"]
    assert ids(rows, f"line@{middle}") == [item["id"] for item in whole[2:]]


def test_h2_a_checkpoint_with_an_id_of_a_slow_clock_is_told_from_the_head(rows: Rows) -> None:
    rename(rows, "slow", -1, "1eeeeeee-0000-6000-8000-000000000000")

    listed = ask(rows, "history", "slow").json
    told = run_cli("history", "slow", "--store", rows.url, environ={}, terminal=True, width=120)

    assert [item["step"] for item in listed["items"]] == [2, 1, 0, -1, 3]
    assert [item["is_head"] for item in listed["items"]] == [True, False, False, False, False]
    assert listed["items"][-1]["parent"] == listed["items"][0]["id"]
    assert f"00000000 came after its parent {listed['items'][0]['id'][-8:]}: clocks differed" in told.out + told.err
    assert "head_superseded" in {item["code"] for item in ask(rows, "doctor", "slow").json["items"]}


@pytest.mark.parametrize(
    "words",
    [
        ("history", "nope"),
        ("show", "nope"),
        ("show", "line@deadbeef"),
        ("resolve", "line@step:77"),
        ("doctor", "nope"),
        ("size", "nope"),
        ("diff", "line", "nope"),
        ("copy", "nope"),
        ("export", "nope", "--dataset", "d"),
    ],
    ids=" ".join,
)
def test_h3_what_is_not_there_is_exit_3_and_makes_nothing(rows: Rows, words: tuple[str, ...], tmp_path: Path) -> None:
    debug = tmp_path / "debug.sqlite"

    found = run_cli(*words, "--store", rows.url, "--debug-store", debug, "--json", environ={}, cwd=tmp_path)

    assert (found.code, found.json["error"]["kind"]) == (3, "not_found")
    assert found.json["error"]["hint"]
    assert rows.sql("SELECT count(*) FROM checkpoints WHERE thread_id = 'nope'") == [(0,)]
    assert list(tmp_path.iterdir()) == []


def test_h4_h5_h6_threads_are_listed_and_counted_without_reading_a_state(rows: Rows, tmp_path: Path) -> None:
    expected = ask(rows, "threads", "--limit", "0").json["items"]
    if rows.kind == "sqlite":
        ruined = Rows("sqlite", str(tmp_path / "ruined.sqlite"), rows.saver)
        rows.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(rows.url, ruined.url)
        ruined.sql("UPDATE checkpoints SET checkpoint = ?", DAMAGED)
        before = Path(ruined.url).read_bytes()
        found = ask(ruined, "threads", "--limit", "0")
        assert Path(ruined.url).read_bytes() == before
    else:
        rows.sql("ALTER TABLE checkpoint_blobs RENAME TO blobs_away")
        rows.sql("CREATE VIEW checkpoint_blobs AS SELECT *, (1 / (length(channel) * 0))::text AS no FROM blobs_away")
        try:
            found = ask(rows, "threads", "--limit", "0")
        finally:
            rows.sql("DROP VIEW checkpoint_blobs")
            rows.sql("ALTER TABLE blobs_away RENAME TO checkpoint_blobs")

    assert found.code == 0, found.out
    listed = found.json["items"]
    assert {item["thread"] for item in listed} >= {"line", "forked", "long"}
    assert [(item["thread"], item["n_checkpoints"], item["metadata"]) for item in listed] == [
        (item["thread"], item["n_checkpoints"], item["metadata"]) for item in expected
    ]


def test_h7_the_head_is_read_by_the_same_few_rows_however_long_the_thread_is(rows: Rows) -> None:
    def n_read(thread: str) -> int:
        """How many states and values of writes the head's view takes."""
        with closing(open_reader(rows.url)) as reader:
            n = 0

            class Counting:
                def __getattr__(self, name: str) -> Any:
                    return getattr(reader, name)

                def stored(self, *args: Any, **given: Any) -> Iterator[Any]:
                    nonlocal n
                    for state in reader.stored(*args, **given):
                        n += 1
                        yield state

                def writes(self, *args: Any, **given: Any) -> Any:
                    nonlocal n
                    found = reader.writes(*args, **given)
                    n += sum(write.value is not None for write in found)
                    return found

            head = reader.rows(thread)[0].id
            read_checkpoint(Counting(), thread, "", head)  # type: ignore[arg-type]
        return n

    assert len(ids(rows, "long")) > 4 * len(ids(rows, "line"))
    assert n_read("long") == n_read("line")


def test_h8_what_each_step_wrote_is_told_without_writes_in_metadata(rows: Rows) -> None:
    items = ask(rows, "history", "line").json["items"]

    assert "writes" not in ask(rows, "show", "line").json["metadata"]
    assert [item["wrote"] for item in items] == [["answer"], ["decide"], ["collect"], ["__start__"], []]
    assert [item["channels"] for item in items[:4]] == [["log"]] * 4


def test_h9_a_filter_on_a_key_that_no_thread_has_is_warned_of(rows: Rows) -> None:
    found = ask(rows, "threads", "--where", "userid=u-1")
    on_terminal = run_cli("threads", "--where", "userid=u-1", "--store", rows.url, terminal=True, environ={})
    known = ask(rows, "threads", "--where", "user_id=u-2")

    assert (found.code, found.json["items"]) == (0, [])
    assert found.json["warnings"] == ["no thread has metadata userid; did you mean user_id?"]
    assert on_terminal.err == "warning: no thread has metadata userid; did you mean user_id?\n"
    assert (known.json["items"], known.json["warnings"]) == ([], [])


@pytest.mark.parametrize(("thread", "size"), [("forked", 2), ("long", 5)])
def test_h10_pages_hold_every_checkpoint_of_a_branch_once(rows: Rows, thread: str, size: int) -> None:
    whole = ids(rows, f"{thread}@head")
    paged: list[str] = []
    place = f"{thread}@head"
    while ask(rows, "resolve", place).code == 0:
        paged += ids(rows, place, "--limit", str(size))
        place = f"{thread}@{paged[-1]}~1"

    assert paged == whole


@pytest.mark.parametrize(
    ("where", "matches"),
    [
        ("vip=true", True),
        ("vip=1", False),
        ("vip=True", False),
        ("user_id=u-1", True),
        ('tags=["a", "b"]', True),
        ("tags=a", False),
        ("tier=null", True),
        ("absent=null", False),
    ],
)
def test_h11_a_filter_means_the_same_on_every_store(rows: Rows, where: str, matches: bool) -> None:
    found = ask(rows, "threads", "--where", where).json["items"]

    assert [item["thread"] for item in found] == (["long"] if matches else [])
