"""`run` and `resume` while they go on, on a terminal, in a pipe and as a document; what is planned and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import asking_twice
from tests.support.cli import Cli

APP = f"{asking_twice.__file__}:graph"
RUN = ("run", APP, "--thread", "t", "--input", "{}")
STREAMS = ("--stream", "updates", "--stream", "custom", "--stream", "messages")


def ids(cli: Cli) -> dict[str, str]:
    """The ids of the questions that wait on `debug::t`, by node."""
    tasks = cli("show", "debug::t", "--json").json["tasks"]
    return {task["name"]: task["interrupts"][0]["id"] for task in tasks if task["interrupts"] and not task["finished"]}


def answer(cli: Cli, *words: str, **options: object) -> object:
    return cli("resume", "debug::t", "--graph", APP, *words, **options)  # type: ignore[arg-type]


def test_on_a_terminal_each_event_is_a_readable_line_or_block(cli: Cli) -> None:
    assert cli(*RUN).code == 0
    asked = ids(cli)
    words = [f"--map={asked['first']}=1", f"--map={asked['income']}=null"]
    shown = cli("resume", "debug::t", "--graph", APP, *words, *STREAMS, terminal=True, width=60)
    lines = shown.out.splitlines()
    assert sorted(lines[:3]) == [
        "updates  first  log [1]",
        "updates  income  log [null]",
        "updates  income|ask  log [null]",
    ]
    assert lines[3:9] == [
        r'custom   talk  {"key": "***", "text": "\u001b[31mclean\u0...',
        "messages talk  one two",
        "         three",
        "updates  talk",
        '         log ["talked"]',
        "         note a note that is a good deal longer than the ...",
    ]
    assert lines[9].startswith("resume   debug::t  done   nodes: first, income, income|ask,")
    assert "\x1b" not in shown.out and "sk-" not in shown.out
    assert max(map(len, lines[:12])) <= 60


def test_in_a_pipe_each_event_is_a_line_of_cells_and_the_end_is_the_last(cli: Cli) -> None:
    ran = cli(*RUN, *STREAMS)
    assert [row[0] for row in ran.rows] == ["updates", "updates", "end"]
    mode, at, ns, node, data = next(row for row in ran.rows if row[2])
    assert (mode, node, ns.partition(":")[0]) == ("updates", "income", "income")
    assert at.endswith("Z") and json.loads(data)["__interrupt__"][0]["value"] == {"question": "income?"}
    assert ran.rows[-1][1:3] == ["debug::t", "interrupted"]


def test_a_document_carries_the_events(cli: Cli) -> None:
    ran = cli(*RUN, "--stream", "updates", "--stream", "values", "--json").json
    assert {event["mode"] for event in ran["events"]} == {"updates", "values"}
    assert cli("run", APP, "--thread", "u", "--input", "{}", "--json").json["events"] == []


def test_one_of_two_questions_is_answered_and_the_other_goes_on_waiting(cli: Cli) -> None:
    cli(*RUN)
    asked = ids(cli)
    half = cli("resume", "debug::t", "--graph", APP, f"--map={asked['income']}=false", terminal=True)
    assert f"  answers {asked['income']} with false" in half.err
    assert f"  goes on waiting: {asked['first']}  first" in half.err
    assert "next     agentctl resume debug::t --value JSON --graph " in half.out
    assert cli("resume", "debug::t", "--graph", APP, f"--map={asked['income']}=1").code == 5
    assert cli("resume", "debug::t", "--graph", APP, "--value", "2", "--json").json["status"] == "done"


def test_one_value_for_several_questions_is_refused_by_their_ids(cli: Cli) -> None:
    cli(*RUN)
    refused = cli("resume", "debug::t", "--graph", APP, "--value", "1")
    assert refused.code == 5
    assert all(id in refused.err for id in ids(cli).values())
    assert cli("resume", "debug::t", "--graph", APP, f"--map={'f' * 32}=1").code == 2
    twice = next(iter(ids(cli).values()))
    assert "twice" in cli("resume", "debug::t", "--graph", APP, f"--map={twice}=1", f"--map={twice}=2").err


def test_discarded_questions_are_said(cli: Cli) -> None:
    cli(*RUN)
    asked = ids(cli)
    refused = cli(*RUN)
    assert refused.code == 5 and f"--map {asked['first']}=JSON" in refused.err
    again = cli(*RUN, "--discard-interrupt", "--json").json
    assert {one["id"] for one in again["discarded"]} == set(asked.values())
    shown = cli(*RUN, "--discard-interrupt")
    assert shown.err.count("  discards: ") == 2


@pytest.mark.parametrize("verb", ["run", "resume"])
def test_a_dry_run_shows_the_plan_and_writes_nothing(cli: Cli, verb: str) -> None:
    if verb == "resume":
        cli(*RUN)
        asked = ids(cli)
        words: tuple[str, ...] = ("resume", "debug::t", "--graph", APP, f"--map={asked['first']}=1")
    else:
        words = RUN
    before = listing(cli.cwd)
    shown = cli(*words, "--dry-run", terminal=True)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"{verb} of debug::t")
    document = cli(*words, "--dry-run", "--json").json
    assert (document["dry_run"], document["status"], document["case"]) == (True, "not_run", "")
    assert document["plan"]["nodes"] == (["first"] if verb == "resume" else ["first", "income"])
    assert listing(cli.cwd) == before


def listing(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--input", "[1]"), 2, "the input of refunds is an object, not a list"),
        (("--input", '{"mesages": []}'), 2, "the input of refunds has no mesages"),
        (("--input", '{"messages": '), 2, "--input: not JSON"),
        (("--input", "null"), 3, "null"),
        (("--input", "{}", "--stream", "tokens"), 2, "--stream tokens: no such stream"),
        ((), 3, "nothing to go on with"),
    ],
)
def test_wrong_input_is_said_before_anything_is_written(
    cli: Cli, words: tuple[str, ...], code: int, message: str
) -> None:
    failed = cli("run", "refunds", "--thread", "t", *words)
    assert (failed.code, failed.out) == (code, "")
    assert message in failed.err and "hint: " in failed.err
    assert list((cli.cwd / "debug").iterdir()) == []


def test_a_thread_of_another_workflow_is_left_alone(cli: Cli) -> None:
    cli(*RUN)
    refused = cli("run", "refunds", "--thread", "t", "--input", "question.json")
    assert refused.code == 5
    assert f"debug::t was made by {APP}, not by refunds" in refused.err


def test_a_run_belongs_to_the_case_that_its_thread_was_made_for(cli: Cli) -> None:
    first = cli(*RUN, "--case", "INC-7", "--reason", "a try", "--json").json
    assert first["case"] == "INC-7"
    asked = ids(cli)
    resumed = cli("resume", "debug::t", "--graph", APP, f"--map={asked['first']}=1", "--json").json
    assert resumed["case"] == "INC-7"
    case = cli("case", "show", "INC-7", "--json").json
    assert (case["n_runs"], case["reason"]) == (2, "a try")
    assert [(thread["thread"], thread["kind"]) for thread in case["threads"]] == [("t", "run")]
    assert cli("case", "close", "INC-7").code == 0
    assert cli("history", "debug::t").code == 3


def test_the_next_command_repeats_what_it_needs(cli: Cli) -> None:
    ran = cli(*RUN, "--env", "A=b", "--json").json
    asked = " ".join(f"--map {one['id']}=JSON" for one in ran["interrupts"])
    assert ran["commands"][0] == f"agentctl resume debug::t {asked} --graph {APP} --env A=b"
