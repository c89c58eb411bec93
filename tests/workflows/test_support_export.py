"""Incidents exported as regression tests: they fail on the version that was wrong and pass on the one that is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.datasets.folder import load_examples
from agentctl.testing import run_cli
from tests.support.incidents import SeededStore, seeded_store

FIXED = {"prompt": "v3", "validate_results": True}
WRONG = {
    "support-missing-window": "reply contains is on its way",
    "support-cents-as-dollars": "reply contains 12900",
}
FORK = "debug::support-stale-order.fork-1"
# The file needs none of the plugins that happen to be here, which take as long to load as the examples take to run.
_FOR_PYTEST = {"LANGSMITH_TRACING": "false", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
UNKIND_GRAPH = """
    from agentctl.testing import ScriptedModel
    from graphs.support_refunds import graph as support
    from graphs.support_refunds.script import support_script
    from langchain_core.messages import AIMessage


    def unkind(turn):
        return support_script(turn) if turn.tools == ("Route",) else AIMessage("No refund is due.")


    def build_graph(tools):
        return support.build_graph(tools, model=ScriptedModel(script=unkind))
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededStore]:
    """A seeded store with one dataset: two incidents with their checks, and a diagnosed one with its corrected fork."""
    folder = tmp_path_factory.mktemp("export")
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    with seeded_store(folder / "production") as store:
        effects = store.backoffice.counters()
        for thread, check in WRONG.items():
            words = ["export", f"prod::{thread}", "--dataset", "refunds", "--format", "pytest", "--check", check]
            assert run_cli(*words, cwd=store.folder, environ=environ).code == 0
        diagnosed = run_cli(
            "diagnose",
            "prod::support-stale-order",
            "--check",
            "reply contains no refund",
            "--patch",
            'lookup_order:status="lost"',
            "-n",
            "4",
            "--json",
            cwd=store.folder,
            environ=environ,
        )
        assert diagnosed.json["verdict"] == "tool_data"
        for format in ("jsonl", "pytest"):
            words = ["export", FORK, "--dataset", "refunds", "--format", format]
            done = run_cli(*words, cwd=store.folder, environ=environ)
            assert done.code == 0, done.err
        yield store
        assert store.backoffice.counters() == effects
        assert store.backoffice.alerts() == []


def run_pytest(store: SeededStore, **variables: str) -> tuple[int, str]:
    """Runs the exported file in a process of its own; returns its exit code and what it printed."""
    kept = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
    environ = {name: os.environ[name] for name in kept if name in os.environ} | _FOR_PYTEST
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "datasets/refunds"],
        cwd=store.folder,
        env={**environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_examples_are_the_incidents_with_what_the_approver_answered(exported: SeededStore) -> None:
    examples = {
        example.source.thread: example
        for example in load_examples(exported.folder / "datasets" / "refunds" / "examples.jsonl")
    }
    assert set(examples) == {*WRONG, "support-stale-order.fork-1"}
    window = examples["support-missing-window"]
    assert window.answers == ({"decision": "approve"},)
    assert window.configurable["prompt"] == "v2"
    assert (window.configurable["user_id"], window.configurable["actor"]) == ("u-3345", "lead-3")
    assert window.reference.check == (WRONG["support-missing-window"],)


def test_the_diagnosed_forks_outcome_is_the_reference(exported: SeededStore) -> None:
    *_, example = load_examples(exported.folder / "datasets" / "refunds" / "examples.jsonl")
    assert "Your refund of 120.00 EUR" in str(example.reference.reply)
    names = [call["name"] for call in example.reference.tool_calls]
    assert names == ["lookup_order", "get_refund_policy", "issue_refund", "send_email", "update_ticket"]
    assert example.steps[:3] == ("triage", "refunds_agent", "tools")
    assert '\\"lost\\"' in json.dumps(example.tool_calls[0].result)


@pytest.mark.real_process
def test_the_exported_file_fails_on_the_version_that_was_wrong(exported: SeededStore) -> None:
    code, printed = run_pytest(exported)
    assert code == 1, printed
    assert "2 failed, 1 passed" in printed
    for check in WRONG.values():
        assert f"what failing means holds: {check}" in printed


@pytest.mark.real_process
def test_the_exported_file_passes_on_the_version_that_is_right(exported: SeededStore) -> None:
    code, printed = run_pytest(exported, AGENTCTL_CONFIGURABLE=json.dumps(FIXED))
    assert code == 0, printed
    assert "3 passed" in printed


@pytest.mark.real_process
def test_another_graph_can_be_held_to_the_examples(exported: SeededStore) -> None:
    (exported.folder / "unkind.py").write_text(textwrap.dedent(UNKIND_GRAPH), "utf-8")
    repository = str(Path(__file__).parents[2])
    code, printed = run_pytest(exported, AGENTCTL_GRAPH="unkind.py:build_graph", PYTHONPATH=repository)
    assert code == 1, printed
    assert "1 failed, 2 passed" in printed
    assert "the reply is 'No refund is due.', expected 'Your refund of 120.00 EUR" in printed


def test_the_fixed_version_can_be_kept_in_the_examples(exported: SeededStore) -> None:
    for thread, check in WRONG.items():
        words = ["export", f"prod::{thread}", "--dataset", "fixed", "--format", "pytest", "--check", check]
        given = [word for key, value in FIXED.items() for word in ("--configurable", f"{key}={json.dumps(value)}")]
        assert run_cli(*words, *given, cwd=exported.folder).code == 0
    from agentctl.datasets.rerun import rerun

    for example in load_examples(exported.folder / "datasets" / "fixed" / "examples.jsonl"):
        assert dict(example.rerun.configurable) == FIXED
        outcome = rerun(
            example,
            graph="graphs/support_refunds/graph.py:build_graph",
            sandbox="sandbox_tools/support.py:registry",
            project=Path(__file__).parents[2],
        )
        assert outcome.problems == ()
        assert {call.served_by for call in outcome.observed.tool_calls} <= {"recorded", "recorded_again", "stub"}
