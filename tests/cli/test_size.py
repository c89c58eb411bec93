"""`agentctl size`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import AGENT, ASKING, EDITED, FAILED, Cli


def test_the_threads_of_a_store_come_with_its_tables_and_what_they_take(cli: Cli) -> None:
    lines = cli("size", terminal=True).out.splitlines()

    assert lines[0] == "prod (sqlite)  4 threads, 20 checkpoints, 38 pending writes"
    assert [line.partition("  ")[0] for line in lines[1:4]] == ["stored", "payload", "on disk"]
    assert "; stored is " in lines[2]
    assert lines[5].split() == ["table", "rows", "values", "indexes"]
    assert [line.split()[0] for line in lines[6:8]] == ["checkpoints", "writes"]
    assert lines[9].split() == ["thread", "checkpoints", "writes", "newest", "stored", "times", "share"]
    assert lines[10].startswith(EDITED)
    assert {line[:10] for line in lines[10:14]} == {EDITED, AGENT, ASKING, FAILED}
    assert all(len(line) <= 80 for line in lines[:-1])


def test_the_longest_bar_is_that_of_the_largest(cli: Cli) -> None:
    lines = cli("size", terminal=True, width=200).out.splitlines()
    bars = [line.rstrip().rpartition(" ")[2] for line in lines if line.rstrip().endswith(tuple("▏▎▍▌▋▊▉█"))]

    assert len(bars) == 4
    assert bars[0] == "█" * 40
    assert [len(bar) for bar in bars] == sorted((len(bar) for bar in bars), reverse=True)


def test_the_next_command_looks_into_the_largest_thread(cli: Cli) -> None:
    *_, last = cli("size", terminal=True).out.splitlines()

    assert last == f"next: agentctl size prod::{EDITED} --by channel"
    assert cli(*last.removeprefix("next: agentctl ").split()).code == 0


def test_a_pipe_gets_whole_numbers_and_says_what_it_left_out(cli: Cli) -> None:
    found = cli("size", "--top", "2")

    assert [row[:2] for row in found.rows] == [["thread", EDITED], ["thread", AGENT]]
    assert all(
        int(row[14]) == sum(int(part) for part in row[11:14]) and int(row[15]) < int(row[14]) for row in found.rows
    )
    assert found.err == "2 of 4 threads shown; all: --top 0\n"


def test_the_document_adds_up(cli: Cli) -> None:
    document = cli("size", "--json", "--top", "0").json

    assert document["schema"] == "agentctl.size/1"
    assert (document["thread"], document["by"], document["n_threads"]) == (None, "thread", 4)
    assert document["total"]["stored_bytes"] == sum(item["stored_bytes"] for item in document["items"])
    for item in document["items"]:
        assert item["amplification"] == pytest.approx(item["stored_bytes"] / item["payload_bytes"])
    assert (document["n_total"], document["truncated"], document["projection"]) == (4, False, None)
    assert document["database"]["disk_bytes"] % 4096 == 0


@pytest.mark.parametrize(
    ("by", "first"),
    [
        ("namespace", ["namespace", "", "", ""]),
        ("channel", ["channel", "", "", "messages"]),
        ("field", ["field", "", "", "messages", "messages[]"]),
        ("message", ["message", AGENT, "", "messages"]),
        ("row", ["row", AGENT, "", ""]),
    ],
)
def test_a_thread_is_measured_by_level(cli: Cli, by: str, first: list[str]) -> None:
    rows = cli("size", AGENT, "--by", by).rows

    assert rows[0][: len(first)] == first


def test_a_thread_is_measured_by_namespace_unless_said_and_without_the_database(cli: Cli) -> None:
    document = cli("size", AGENT, "--json").json

    assert (document["by"], document["thread"], document["database"]) == ("namespace", AGENT, None)
    assert document["total"] == {**document["items"][0], "thread": AGENT, "ns": None}


def test_messages_are_named_and_their_text_is_not_printed(cli: Cli) -> None:
    found = cli("size", "--by", "message", terminal=True, width=200).out

    assert "tool lookup_order" in found
    assert "human" in found
    assert "where is my order" not in found


def test_a_projection_shows_its_formulas_with_the_numbers_in_them(cli: Cli) -> None:
    flags = ("--threads-per-day", "1000", "--retention", "30")
    out = cli("size", *flags, terminal=True).out
    projection = cli("size", *flags, "--json").json["projection"]

    assert "projection, if threads stay as large as these 4 are" in out
    assert "kept       30,000 threads = 1,000 a day x 30 days" in out
    assert (projection["threads_per_day"], projection["retention_days"]) == (1000, 30)
    assert projection["n_threads_kept"] == 30_000
    total = cli("size", "--json").json["total"]["stored_bytes"]
    assert projection["value_bytes"] == round(30_000 * total / 4)
    assert cli("size", "--threads-per-day", "1000", "--retention", "30d", "--json").json["projection"] == projection
    assert projection["disk_bytes"] == pytest.approx(projection["value_bytes"] * projection["disk_ratio"], rel=1e-6)
    assert ["projection", "n_threads_kept", "30000.0"] in cli("size", *flags).rows


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--by", "user"], 2, "no level user"),
        (["--threads-per-day", "10"], 2, "a projection takes --threads-per-day and --retention"),
        (["support-18@head"], 2, "sizes are of whole threads, not of support-18@head"),
        (["support-99"], 3, "there is no thread support-99"),
        (["staging::"], 4, "no such file"),
    ],
)
def test_what_cannot_be_measured_is_an_error(cli: Cli, args: list[str], code: int, message: str) -> None:
    found = cli("size", *args)

    assert found.code == code
    assert message in found.err
    assert "hint: " in found.err


def test_a_saver_is_refused_with_the_way_round(cli: Cli, prod: Path, tmp_path: Path) -> None:
    (tmp_path / "stores.py").write_text(
        "from langgraph.checkpoint.sqlite import SqliteSaver\n\n"
        f"def production():\n    return SqliteSaver.from_conn_string({str(prod)!r})\n"
    )
    found = cli("size", "--store", "stores.py:production")

    assert found.code == 5
    assert "is a saver" in found.err
    assert "agentctl size --store FILE.sqlite|postgresql://..." in found.err


def test_a_store_without_threads_is_an_answer(cli: Cli, tmp_path: Path) -> None:
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(str(tmp_path / "empty.sqlite")) as saver:
        saver.setup()
    found = cli("size", "--store", "empty.sqlite", "--threads-per-day", "1", "--retention", "1", terminal=True)

    assert found.code == 0
    assert "0 threads, 0 checkpoints, 0 pending writes" in found.out
    assert "no thread is stored" in found.out
