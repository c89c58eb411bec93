"""`agentctl diagnose`."""

from __future__ import annotations

import shlex

from tests.support import shop
from tests.support.cli import AGENT, CHECK, PATCH, Cli

APPROVE = '{"decisions": [{"type": "approve"}]}'


def test_a_verdict_with_its_evidence_and_the_next_command(cli: Cli) -> None:
    done = cli("diagnose", AGENT, "--check", CHECK, "--patch", PATCH, "--resume", APPROVE, terminal=True, width=120)
    assert done.code == 0, done.err
    out = done.out.splitlines()
    assert "replay   5 of 5 fail  [57 %, 100 %]   tools: 10 recorded, 5 stubbed, 0 blocked, 0 escaped" in out
    assert any(line.startswith("fork     0 of 5 fail  [0 %, 43 %]") for line in out)
    assert any(line.startswith("verdict  tool data") for line in out)
    assert "diff     reply      - No refund is due: your order was delivered." in out
    assert out[-1].startswith("next     agentctl export ")
    assert shop.PAID == []


def test_the_document(cli: Cli) -> None:
    done = cli("diagnose", AGENT, "--check", CHECK, "--patch", PATCH, "--resume", APPROVE, "--json")
    document = done.json
    assert document["verdict"] == "tool_data"
    assert (document["replays"]["n_failed"], document["forks"][0]["n_failed"]) == (5, 0)
    assert document["cause"]["substituted"][0]["call"] == {"name": "lookup_order", "id": "c1"}
    assert document["cause"]["fields"] == ["lookup_order.status"] or document["cause"]["fields"] == ["status"]
    assert document["p_value"] < 0.05
    assert document["side_effects"]["escaped"] == 0
    assert document["warnings"] == [] or isinstance(document["warnings"], list)
    assert all(shlex.split(command)[0] == "agentctl" for command in document["commands"])


def test_without_a_fork_it_is_inconclusive_and_says_what_to_try(cli: Cli) -> None:
    done = cli("diagnose", AGENT, "--check", CHECK, "--json")
    assert (done.code, done.json["verdict"]) == (1, "inconclusive")
    assert any("--patch" in command or "--answer" in command for command in done.json["commands"])


def test_a_pipe_gets_a_row_a_run_and_the_verdict(cli: Cli) -> None:
    rows = cli("diagnose", AGENT, "--check", CHECK, "--patch", PATCH, "--resume", APPROVE, "-n", "4").rows
    assert [row[0] for row in rows][:8] == ["replay"] * 4 + ["fork"] * 4
    assert rows[8][:2] == ["verdict", "tool_data"]
