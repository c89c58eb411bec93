"""`agentctl replay`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import shop
from tests.support.cli import AGENT, CHECK, Cli


def test_a_replay_reproduces_the_failure_and_says_so(cli: Cli) -> None:
    done = cli("replay", f"{AGENT}@before:tools", "-n", "2", "--check", CHECK, terminal=True)
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("copied   ") and lines[0].endswith(", verified")
    assert lines[1:] == [
        "replay   2 of 2 fail  [34 %, 100 %]   tools: 4 recorded, 0 stubbed, 0 blocked, 0 escaped",
        "reply    2x No refund is due: your order was delivered.",
        "threads  'debug::support 17.replay-1' ... 'debug::support 17.replay-2'",
        "next     agentctl history 'debug::support 17.replay-1'",
        "case     support-17",
    ]


def test_the_plan_is_told_on_stderr_before_anything_runs(cli: Cli) -> None:
    done = cli("replay", f"{AGENT}@before:tools")
    lines = done.err.splitlines()
    assert lines[0].startswith("replay of prod::support 17@") and lines[0].endswith("from here on these run: tools x2")
    assert "  tools from recorded, else stub: lookup_order, get_policy" in lines
    assert cli("replay", f"{AGENT}@before:tools", "--json").err == ""


def test_a_pipe_gets_a_row_a_run(cli: Cli) -> None:
    (row,) = cli("replay", f"{AGENT}@before:tools", "--check", CHECK).rows
    assert row[:4] == [f"debug::{AGENT}.replay-1", "done", "true", "No refund is due: your order was delivered."]
    assert cli("history", row[0]).code == 0


def test_the_document(cli: Cli) -> None:
    document = cli("replay", f"{AGENT}@before:tools", "-n", "2", "--check", CHECK, "--json").json
    assert document["schema"] == "agentctl.replay/1"
    assert (document["n"], document["n_failed"], document["n_undecided"]) == (2, 2, 0)
    assert document["interval"] == pytest.approx([0.342, 1.0], abs=0.01)
    assert document["side_effects"] == {"recorded": 4, "stubbed": 0, "live": 0, "blocked": 0, "escaped": 0}
    run = document["runs"][0]
    assert [call["served_by"] for call in run["tool_calls"]] == ["recorded", "recorded"]
    assert run["failed"] is True and run["usage"]["model_calls"] == 1
    assert document["warnings"] == []


def test_a_check_that_holds_for_no_run_ends_with_zero(cli: Cli) -> None:
    assert cli("replay", f"{AGENT}@before:tools", "--check", "called issue_refund").code == 0


def test_a_blocked_call_ends_with_5_and_the_flag_that_answers_it(cli: Cli) -> None:
    graph = f"{shop.__file__}:agent"
    target = f"{AGENT}@before:tools"
    blocked = cli("replay", target, "--graph", graph, "--tools", "sandbox", terminal=True, width=40)
    assert blocked.code == 5
    (way_on,) = [line for line in blocked.out.splitlines() if "--stub lookup_order=" in line]
    assert "..." not in way_on, "what is to be pasted is never cut"
    stubs = ["--stub", 'lookup_order={"status": "delivered"}', "--stub", "get_policy=30 days"]
    assert cli("replay", target, "--graph", graph, "--tools", "sandbox", *stubs).code == 0
    assert shop.PAID == []


def test_a_graph_that_raises_ends_with_6(cli: Cli) -> None:
    failed = cli("replay", f"{AGENT}@root", "--graph", f"{cli.cwd / 'broken.py'}:graph")
    assert failed.code in (3, 6)
    (cli.cwd / "broken.py").write_text("raise RuntimeError('no such thing')\n", "utf-8")
    failed = cli("replay", f"{AGENT}@root", "--graph", f"{cli.cwd / 'broken.py'}:graph")
    assert failed.code == 6
    assert "RuntimeError: no such thing" in failed.err and "agentctl/cli" not in failed.err
    assert (
        cli("replay", f"{AGENT}@root", "--graph", "broken.py:graph", "--json").json["error"]["kind"] == "graph_failed"
    )


def test_what_the_graph_prints_does_not_mix_with_the_answer(cli: Cli, tmp_path: Path) -> None:
    (cli.cwd / "in.json").write_text('{"n": 1}', "utf-8")
    graph = f"{shop.__file__}:printing"
    ran = cli("run", graph, "--thread", "t", "--input", "in.json", "--json")
    assert (ran.code, ran.json["status"]) == (0, "done")
    assert ran.err == "noise on stdout\n"
    again = cli("replay", "debug::t@before:work", "--graph", graph, "--json")
    assert (again.code, again.json["runs"][0]["status"]) == (0, "done")


def test_the_graph_raising_in_a_run_ends_with_6(cli: Cli) -> None:
    (cli.cwd / "in.json").write_text('{"n": 1}', "utf-8")
    graph = f"{shop.__file__}:raising"
    ran = cli("run", graph, "--thread", "t", "--input", "in.json", "--json")
    assert (ran.code, ran.json["status"]) == (6, "error")
    replayed = cli("replay", "debug::t@before:work", "--graph", graph, "--json")
    assert (replayed.code, replayed.json["runs"][0]["error"]) == (6, "ValueError: the shop is closed")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ([AGENT], 5, "nothing runs from"),
        ([f"{AGENT}@before:tools", "--tools", "production"], 2, "--tools production is not for experiments"),
        ([f"{AGENT}@before:tools", "--stub", "x"], 2, "--stub takes NAME=JSON"),
        ([f"{AGENT}@before:tools", "--check", "replies with"], 2, "replies with"),
        ([f"{AGENT}@before:tools", "--context", "[1]"], 2, "--context takes a JSON object"),
        ([f"{AGENT}@before:tools", "-n", "0"], 2, "-n"),
        (["support-20@root"], 2, "does not say which graph made it"),
    ],
)
def test_what_cannot_run_is_said_and_copies_nothing(cli: Cli, args: list[str], code: int, message: str) -> None:
    failed = cli("replay", *args)
    if message.startswith("does not say"):
        (cli.cwd / "agentctl.yaml").write_text(f"profiles: {{prod: {{store: '{cli.prod}', default: true}}}}\n", "utf-8")
        failed = cli("replay", *args)
        code, message = 2, "no graph is configured"
    assert (failed.code, failed.out) == (code, "")
    assert message in failed.err
    assert cli("threads", "debug::").rows in ([], [[""]])
