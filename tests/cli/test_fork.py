"""`agentctl fork`."""

from __future__ import annotations

import json

import pytest

from tests.support.cli import AGENT, CHECK, PATCH, Cli

APPROVE = '{"decisions": [{"type": "approve"}]}'


def test_a_corrected_result_changes_the_reply(cli: Cli) -> None:
    done = cli("fork", AGENT, "--patch", PATCH, "--resume", APPROVE, "--check", CHECK, terminal=True, width=120)
    assert done.code == 0
    lines = cli.named(done.out, AGENT).splitlines()
    assert lines[1:] == [
        'answers  lookup_order (c1): status "delivered" -> "lost"; get_policy (p1) kept',
        "fork     'debug::support 17.fork-1@<id 2>'  as tools -> model",
        "runs     0 of 1 fail  [0 %, 79 %]   tools: 0 recorded, 1 stubbed, 0 blocked, 0 escaped",
        "reply    Your refund is on its way.",
        "threads  'debug::support 17.fork-1'",
        "next     agentctl history 'debug::support 17.fork-1'",
        "         agentctl diff 'prod::support 17' 'debug::support 17.fork-1'",
        "case     support-17",
    ]


def test_a_question_on_the_way_stops_the_run_and_is_shown(cli: Cli) -> None:
    done = cli("fork", AGENT, "--patch", PATCH, "--json")
    assert (done.code, done.json["runs"][0]["status"]) == (0, "interrupted")
    assert done.json["runs"][0]["interrupts"][0]["value"]["action_requests"][0]["name"] == "issue_refund"


def test_a_fork_at_rest_says_where_to_look_at_it(cli: Cli) -> None:
    lines = cli("fork", AGENT, "--patch", PATCH, "--no-run", terminal=True, width=120).out.splitlines()
    assert lines[-3:-1] == [
        "next     agentctl history 'debug::support 17.fork-1'",
        "         agentctl diff 'prod::support 17' 'debug::support 17.fork-1'",
    ]


def test_every_field_of_a_question_has_its_line_however_narrow_the_terminal(cli: Cli) -> None:
    done = cli("fork", AGENT, "--patch", PATCH, terminal=True, width=60)
    asked = done.out[done.out.index("asks ") : done.out.index("threads ")].splitlines()
    value = cli("fork", AGENT, "--patch", PATCH, "--json").json["runs"][0]["interrupts"][0]["value"]
    assert [line[9:].partition(":")[0] for line in asked[:-1]] == [key for key in value if value[key]]
    assert all(len(line) <= 60 for line in asked)
    assert asked[-1].strip() == "answer it with --resume JSON"


def test_a_whole_answer_from_a_file(cli: Cli) -> None:
    (cli.cwd / "result.json").write_text(json.dumps({"order_id": "A1", "status": "lost"}), "utf-8")
    done = cli("fork", AGENT, "--answer", "lookup_order=@result.json", "--resume", APPROVE, "--json")
    assert done.json["runs"][0]["reply"] == "Your refund is on its way."
    assert [(entry["name"], entry["how"]) for entry in done.json["answered"]] == [
        ("lookup_order", "substituted"),
        ("get_policy", "kept"),
    ]


def test_a_fork_that_is_not_run_is_ready_to_be(cli: Cli) -> None:
    done = cli("fork", AGENT, "--patch", PATCH, "--no-run", "--reason", "INC-31")
    assert done.rows == [[f"debug::{AGENT}.fork-1@{cli.ids(AGENT)[2]}"]]
    head = cli("show", f"debug::{AGENT}.fork-1", "--json").json
    assert head["metadata"]["agentctl_reason"] == "INC-31"
    assert head["metadata"]["agentctl_case"] == "support-17"
    assert cli("history", AGENT, "--json").json["n_total"] == 5


@pytest.mark.parametrize(
    ("forms", "code", "message"),
    [
        (["--answer", "nothing=1"], 3, "nothing"),
        (["--answer", "lookup_order"], 2, "--answer"),
        (["--set", "nothing=1"], 2, "nothing"),
        (["--goto", "nowhere"], 2, "nowhere"),
        (["--update", "missing.json", "--as-node", "model"], 2, "missing.json"),
        (["--answer", "lookup_order=@missing.json"], 2, "missing.json"),
    ],
)
def test_what_cannot_be_forked_leaves_nothing_behind(cli: Cli, forms: list[str], code: int, message: str) -> None:
    failed = cli("fork", AGENT, *forms)
    assert (failed.code, failed.out) == (code, ""), failed.err
    assert message in failed.err
    assert f"{AGENT}.fork-1" not in cli("threads", "debug::").out
