"""`agentctl run` and `agentctl resume`."""

from __future__ import annotations

import os

import pytest

from tests.support import shop
from tests.support.cli import AGENT, ASKING, Cli

APPROVE = '{"decisions": [{"type": "approve"}]}'
REAL = {**os.environ, "AGENTCTL_ENV": "production"}


def start(cli: Cli, thread: str = "try-1", **options: object) -> object:
    return cli("run", "refunds", "--thread", thread, "--input", "question.json", "--json").json


def test_a_run_stops_at_its_question_and_resume_answers_it(cli: Cli) -> None:
    ran = cli("run", "refunds", "--thread", "try 1", "--input", "question.json", terminal=True, width=120)
    assert ran.code == 0
    text = ran.out
    assert text.startswith("run      'debug::try 1'  interrupted   nodes: model x2, ")
    assert "\nasks     " in text and "issue_refund" in text
    assert text.splitlines()[-4:] == [
        "case     try-1",
        "next     agentctl resume 'debug::try 1' --value JSON",
        "         agentctl show 'debug::try 1'",
        "         agentctl fork 'debug::try 1' --resume JSON",
    ]
    done = cli("resume", "debug::try 1", "--value", APPROVE, terminal=True, width=160)
    assert done.code == 0
    assert done.out.splitlines()[1:] == [
        "reply    Your refund is on its way.",
        "case     try-1",
        "next     agentctl history 'debug::try 1'",
        "         agentctl show 'debug::try 1' --messages",
    ]
    assert shop.PAID == []


def test_answers_by_id_and_from_a_file(cli: Cli) -> None:
    document = start(cli)
    assert isinstance(document, dict)
    assert (document["schema"], document["status"], document["tools"]) == ("agentctl.run/1", "interrupted", "sandbox")
    asked = document["interrupts"][0]["id"]
    (cli.cwd / "answer.json").write_text(APPROVE, "utf-8")
    done = cli("resume", "debug::try-1", "--map", f"{asked}=@answer.json", "--json")
    assert (done.code, done.json["schema"]) == (0, "agentctl.resume/1")
    assert done.json["reply"] == "Your refund is on its way."
    assert done.json["side_effects"] == {"recorded": 0, "stubbed": 1, "live": 0, "blocked": 0, "escaped": 0}
    assert [row[0] for row in cli("threads", "debug::", "--where", "workflow=refunds").rows] == ["try-1"]


def test_input_from_stdin(cli: Cli) -> None:
    text = (cli.cwd / "question.json").read_text("utf-8")
    assert cli("run", "refunds", "--thread", "t", "--input", "-", stdin=text).code == 0


def test_a_question_is_not_lost_by_new_input_unless_that_is_said(cli: Cli) -> None:
    start(cli)
    refused = cli("run", "refunds", "--thread", "try-1", "--input", "question.json")
    assert refused.code == 5
    assert "would discard the question" in refused.err
    assert "agentctl resume debug::try-1 --value JSON" in refused.err
    assert cli("run", "refunds", "--thread", "try-1", "--input", "question.json", "--discard-interrupt").code == 0


def test_production_takes_all_three(cli: Cli) -> None:
    staging = ["run", "refunds", "--thread", "staging::t", "--input", "question.json"]
    assert cli("copy", ASKING, "--to", "staging").code == 0
    sandboxed = cli(*staging)
    assert (sandboxed.code, sandboxed.out) == (5, "")
    assert "no debug store" in sandboxed.err
    outside = cli(*staging, "--tools", "production")
    assert outside.code == 5 and "AGENTCTL_ENV is not set" in outside.err
    readable = cli("run", "refunds", "--thread", "prod::t", "--input", "question.json", "--tools", "production",
                   environ=REAL)  # fmt: skip
    assert readable.code == 5 and "access: read" in readable.err
    done = cli(*staging, "--tools", "production", "--json", environ=REAL)
    assert (done.code, done.json["reply"]) == (0, "No refund is due: your order was delivered.")
    assert done.json["tools"] == "production"


def test_production_tools_never_run_from_a_debug_store(cli: Cli) -> None:
    refused = cli("run", "refunds", "--thread", "t", "--input", "question.json", "--tools", "production",
                  "--debug-store", cli.cwd / "d.sqlite", environ={**REAL, "AGENTCTL_PROFILE": "debug"})  # fmt: skip
    assert refused.code == 5
    assert "is a debug store" in refused.err


def test_a_missing_production_store_is_not_made(cli: Cli) -> None:
    failed = cli("run", "refunds", "--thread", "staging::t", "--input", "question.json", "--tools", "production",
                 environ=REAL)  # fmt: skip
    assert failed.code == 4
    assert not (cli.cwd / "staging.sqlite").exists()


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["run", "refund", "--thread", "t", "--input", "question.json"], 2, "there is no workflow refund"),
        (["run", "refunds", "--thread", "t", "--input", "none.json"], 3, "none.json"),
        (["run", "refunds", "--thread", "t", "--input", "agentctl.yaml"], 2, "not JSON"),
        (["run", "refunds", "--thread", "t"], 3, "nothing to go on with"),
        (["run", "refunds", "--input", "question.json"], 2, "--thread"),
        (["run", "refunds", "--thread", "t", "--tools", "recorded"], 2, "--tools recorded"),
        (["resume", "debug::t", "--value", "1"], 4, "no such file"),
        (["resume", ASKING], 2, "--value JSON, or --map ID=JSON"),
        (["resume", ASKING, "--value", "JSON"], 2, "not JSON"),
        (["resume", ASKING, "--map", "JSON"], 2, "--map takes ID=JSON"),
        (["resume", ASKING, "--value", "1", "--graph", "refunds"], 5, "no debug store"),
        (["resume", f"{AGENT}@root", "--value", "1"], 5, "only the head can be resumed"),
    ],
)
def test_what_cannot_run_is_said(cli: Cli, args: list[str], code: int, message: str) -> None:
    failed = cli(*args)
    assert (failed.code, failed.out) == (code, ""), failed.err
    assert message in failed.err
    assert "hint: " in failed.err


def test_a_run_that_takes_too_long_ends_with_1(cli: Cli) -> None:
    stopped = cli("run", "refunds", "--thread", "t", "--input", "question.json", "--max-steps", "1", "--json")
    assert (stopped.code, stopped.json["status"]) == (1, "step_limit")
