"""`show`, `diff` and `diagnose` in the words of a workflow that has a view."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentctl.cli.viewing import view_of
from agentctl.config.load import load_config
from tests.support.cli import AGENT, CHECK, EDITED, PATCH, Cli, seed, write_project, write_view

APPROVE = '{"decisions": [{"type": "approve"}]}'
VIEW = """
fields:
  told: reply(messages)
  looked up: tool_calls(messages)[?name == 'lookup_order'] | [-1].result.status
lists:
  refunds:
    items: tool_calls(messages)[?name == 'issue_refund']
    key: args.order_id
    fields:
      amount: {path: args.amount, format: money, currency: EUR}
"""


@pytest.fixture(scope="module")
def prod(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seed(tmp_path_factory.mktemp("prod"))


@pytest.fixture
def viewed(prod: Path, tmp_path: Path) -> Cli:
    cli = write_project(tmp_path, prod)
    write_view(cli, VIEW)
    return cli


def test_a_checkpoint_is_shown_in_its_workflows_words_first(viewed: Cli) -> None:
    lines = viewed("show", AGENT, terminal=True).out.splitlines()
    start = lines.index("refunds")
    assert lines[start + 1 : start + 3] == [
        "  told       No refund is due: your order was delivered.",
        "  looked up  delivered",
    ]
    assert lines[start + 3] == "messages"


def test_a_pipe_and_a_program_get_the_reading_whole(viewed: Cli) -> None:
    assert ["view looked up", "delivered"] in viewed("show", AGENT).rows
    view = viewed("show", AGENT, "--json").json["view"]
    assert view["workflow"] == "refunds"
    assert view["fields"][1] == {"name": "looked up", "value": "delivered", "text": "delivered"}
    assert view["lists"] == [{"name": "refunds", "items": []}]


def test_a_diagnosis_says_its_difference_in_the_workflows_words(viewed: Cli) -> None:
    forms = ("--patch", PATCH, "--resume", APPROVE, "--check", CHECK, "-n", "1")
    told = viewed("diagnose", AGENT, *forms, terminal=True, width=100).out.splitlines()
    start = next(i for i, line in enumerate(told) if line.startswith("diff "))
    assert [line.rstrip() for line in told[start : start + 4]] == [
        "diff     told       - No refund is due: your order was delivered.",
        "                    + Your refund is on its way.",
        "         looked up  ~ delivered -> lost",
        "         refunds    + A1: amount 120.00 EUR",
    ]
    assert not any("reply  " in line for line in told[start:])

    fork, replay = f"debug::{AGENT}.fork-1", f"debug::{AGENT}.replay-1"
    shown = viewed("diff", replay, fork, terminal=True).out.splitlines()
    assert "told       - No refund is due: your order was delivered." in shown
    assert "refunds    + A1: amount 120.00 EUR" in shown
    assert not any(line.startswith("reply") for line in shown)
    document = viewed("diff", replay, fork, "--json").json
    assert document["reply"]["right"] == "Your refund is on its way."
    assert [(each["name"], each["key"], each["side"]) for each in document["view"]] == [
        ("told", None, "both"),
        ("looked up", None, "both"),
        ("refunds", "A1", "right"),
    ]
    assert ["view", "+", "refunds A1 amount", "", "120.00 EUR"] in viewed("diff", replay, fork).rows


def test_a_thread_that_names_no_workflow_has_no_words_of_its_own(viewed: Cli) -> None:
    left = f"{EDITED}@root"
    assert viewed("diff", left, EDITED, "--json").json["view"] == []
    assert viewed("show", EDITED, "--json").json["view"] == {"workflow": None, "fields": [], "lists": []}


def test_two_threads_of_different_workflows_have_no_words_in_common(viewed: Cli) -> None:
    config = load_config(viewed.cwd, {})
    other = replace(config.workflows["refunds"], name="other")
    both = replace(config, workflows={**config.workflows, "other": other})
    refunds, others, unnamed = {"workflow": "refunds"}, {"graph_id": "other"}, {"user_id": "u-1"}
    assert view_of(both, [refunds, others]) is None
    assert view_of(both, [unnamed, unnamed]) is None
    for one_workflow in ([refunds, refunds], [refunds, unnamed], [unnamed, others]):
        assert view_of(both, one_workflow) is not None


def test_a_view_that_is_wrong_is_an_error_of_configuration_where_it_is_used_alone(viewed: Cli) -> None:
    write_view(viewed, "fields:\n  told: repyl(messages)\n")
    for words in (("show", AGENT), ("diff", f"{AGENT}@root", AGENT)):
        failed = viewed(*words)
        assert (failed.code, failed.out) == (4, "")
        assert f"{viewed.cwd}/app/view.yaml:2: fields.told calls repyl(), which is no function" in failed.err
        assert "hint: did you mean reply?" in failed.err
    assert viewed("history", AGENT).code == 0
    assert viewed("show", AGENT, "--messages").code == 0


def test_code_is_no_view(viewed: Cli) -> None:
    config = viewed.cwd / "agentctl.yaml"
    config.write_text(config.read_text("utf-8").replace("app/view.yaml", "app/view.py:render"), "utf-8")
    failed = viewed("threads")
    assert failed.code == 4
    assert "workflows.refunds.renderer must be a YAML file, not app/view.py:render" in failed.err


def test_an_expression_that_does_not_fit_is_a_warning_and_the_rest_is_shown(viewed: Cli) -> None:
    write_view(viewed, "fields:\n  n: length(nothing)\n  told: reply(messages)\n")
    shown = viewed("show", AGENT)
    assert shown.code == 0
    assert "warning: view of refunds: n: In function length()" in shown.err
    assert ["view told", "No refund is due: your order was delivered."] in shown.rows
    (warning,) = viewed("diff", f"{AGENT}@root", AGENT, "--json").json["warnings"]
    assert warning.startswith("view of refunds: n:")
