"""`agentctl diff`."""

from __future__ import annotations

import shlex

import pytest

from tests.support.cli import AGENT, EDITED, Cli


def test_two_branches_of_a_thread(cli: Cli) -> None:
    seen = cli.ids(EDITED)[4]
    out = cli.named(cli("diff", f"{EDITED}@{seen}...head", terminal=True, width=100).out, EDITED).splitlines()
    assert out[:3] == [
        "- prod::support-18@<id 4>",
        "+ prod::support-18@<id 8>",
        "common ancestor <id 3>, 3 messages shared",
    ]
    assert "reply      - No refund is due: your order was delivered." in out
    assert "           + Your refund is on its way." in out
    assert 'tool call  + issue_refund(order_id="A1", amount=120.0)' in out


def test_two_targets_and_the_exit_code(cli: Cli) -> None:
    left, right = f"{EDITED}@root", EDITED
    assert cli("diff", left, right).code == 0
    assert cli("diff", left, right, "--exit-code").code == 1
    same = cli("diff", EDITED, EDITED, "--exit-code", terminal=True)
    assert same.code == 0
    assert same.out.splitlines()[-1] == "equal"


def test_a_copy_is_compared_by_the_ids_that_it_kept(cli: Cli) -> None:
    assert cli("copy", AGENT).code == 0
    found = cli("diff", AGENT, f"debug::{AGENT}.copy-1", "--json", "--exit-code")
    assert found.code == 0
    document = found.json
    assert document["schema"] == "agentctl.diff/1"
    assert (document["equal"], document["common"]) == (True, cli.ids(AGENT)[0])
    assert document["left"]["target"] == f"prod::{AGENT}@{cli.ids(AGENT)[0]}"


def test_a_pipe_gets_values_as_json(cli: Cli) -> None:
    rows = cli("diff", f"{EDITED}@root", EDITED).rows
    assert rows[-1][:2] == ["reply", "~"]
    assert rows[-1][4] == '"Your refund is on its way."'


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ([EDITED], 2, "diff takes two targets, or one range"),
        ([EDITED, "nobody"], 3, "there is no thread nobody"),
        ([f"{EDITED}@root..step:99"], 3, "there is no step 99"),
        ([EDITED, f"{EDITED}@root..head"], 2, ""),
        ([], 2, "missing argument 'A'"),
    ],
)
def test_what_cannot_be_compared_is_said(cli: Cli, args: list[str], code: int, message: str) -> None:
    failed = cli("diff", *args)
    assert (failed.code, failed.out) == (code, "")
    assert message in failed.err


def test_the_hint_of_one_target_is_a_command(cli: Cli) -> None:
    hint = cli("diff", EDITED, "--json").json["error"]["hint"]
    words = shlex.split(hint)[1:]
    assert cli(*words).code == 0
