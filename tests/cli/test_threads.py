"""`agentctl threads`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentctl.records.threads import ThreadSummary
from agentctl.render.threads import metadata_words
from tests.support.cli import AGENT, ASKING, EDITED, FAILED, Cli


def listed(cli: Cli, *args: str) -> list[str]:
    return [item["thread"] for item in cli("threads", *args, "--json").json["items"]]


def test_threads_are_listed_newest_first_as_a_table(cli: Cli) -> None:
    assert cli("threads", terminal=True).out == (
        "thread      checkpoints  updated  status       metadata\n"
        "support-20            3       3h  error                         ValueError('t...\n"
        "support-19            3       3h  interrupted\n"
        "support-18            9       3h  done\n"
        "support 17            5       3h  done         workflow=ref...\n"
    )


def test_metadata_of_the_application_comes_before_what_libraries_add() -> None:
    metadata = {"lc_agent_name": "report", "step": 3, "user_id": "u-1", "ls_run": 2, "tenant": "acme"}
    at = datetime(2026, 11, 30, tzinfo=UTC)
    item = ThreadSummary("t", 1, "id", at, at, "done", None, metadata, None)
    assert metadata_words(item) == "user_id=u-1 tenant=acme lc_agent_name=report ls_run=2"


def test_a_pipe_gets_whole_ids_and_times(cli: Cli) -> None:
    rows = cli("threads").rows
    assert [row[0] for row in rows] == [FAILED, ASKING, EDITED, AGENT]
    assert [row[5] for row in rows] == ["error", "interrupted", "done", "done"]
    assert all(len(row[2]) == 36 and row[4].endswith("Z") for row in rows)


def test_the_document_has_every_key(cli: Cli) -> None:
    document = cli("threads", "--json").json
    assert document["schema"] == "agentctl.threads/1"
    assert (document["n_total"], document["truncated"], document["store"]) == (4, False, "prod (sqlite)")
    assert document["items"][0]["error"] == "ValueError('the bureau did not answer')"
    assert document["items"][3]["metadata"]["user_id"] == "u-1042"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["prod::"], [FAILED, ASKING, EDITED, AGENT]),
        (["--where", "user_id=u-1042"], [AGENT]),
        (["--where", "user_id=u-1042", "--where", "workflow=other"], []),
        (["--status", "interrupted"], [ASKING]),
        (["--status", "error"], [FAILED]),
        (["--since", "2h"], []),
        (["--since", "4h"], [FAILED, ASKING, EDITED, AGENT]),
        (["--until", "4h"], []),
        (["--grep", "on its way"], [EDITED]),
        (["--grep", "bureau"], [FAILED]),
        (["--limit", "1"], [FAILED]),
        (["--limit", "0"], [FAILED, ASKING, EDITED, AGENT]),
    ],
)
def test_filters_find_threads(cli: Cli, args: list[str], expected: list[str]) -> None:
    assert listed(cli, *args) == expected


def test_until_a_day_takes_the_whole_day(cli: Cli) -> None:
    day = cli("threads").rows[0][4][:10]
    assert listed(cli, "--until", day) == [FAILED, ASKING, EDITED, AGENT]


def test_a_cut_list_says_so(cli: Cli) -> None:
    assert cli("threads", "--limit", "1", terminal=True).out.splitlines()[-1] == (
        "first 1 thread shown; more: --limit N, all: --limit 0"
    )
    assert cli("threads", "--limit", "1", "--json").json["truncated"] is True


def test_a_search_says_how_far_it_read_and_shows_the_hit(cli: Cli) -> None:
    found = cli("threads", "--grep", "on its way", terminal=True)
    assert "on its way" in found.out
    assert found.err == "searched 4 of 4 threads, newest first\n"


def test_an_empty_answer_is_said(cli: Cli) -> None:
    found = cli("threads", "--where", "user_id=nobody", terminal=True)
    assert (found.out, found.code) == ("no thread matches in prod (sqlite)\n", 0)


@pytest.mark.parametrize(
    ("args", "code", "message", "hint"),
    [
        (["--status", "late"], 2, "no status late", "one of: done, pending, interrupted, error, empty"),
        (["--where", "user"], 2, "--where takes KEY=VALUE, not 'user'", "agentctl threads --where user_id=u-1042"),
        (["--since", "soon"], 2, "'soon' is not a time", "times are UTC"),
        (["prd::"], 3, "there is no profile prd", "did you mean prod?"),
        (["--store", "nothing.sqlite"], 4, "no such file", ""),
    ],
)
def test_what_cannot_be_done_is_said_with_a_hint(cli: Cli, args: list[str], code: int, message: str, hint: str) -> None:
    failed = cli("threads", *args)
    assert (failed.code, failed.out) == (code, "")
    assert message in failed.err
    assert f"hint: {hint}" in failed.err
    error = cli("threads", *args, "--json")
    assert error.code == code
    assert message in error.json["error"]["message"]


def test_a_mistyped_store_creates_nothing(cli: Cli) -> None:
    before = sorted(cli.cwd.rglob("*"))
    assert cli("threads", "--store", "nothing.sqlite").code == 4
    assert sorted(cli.cwd.rglob("*")) == before
