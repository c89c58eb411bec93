"""`agentctl export` on debug forks, ordinary threads and ranges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentctl.datasets.folder import load_examples
from agentctl.datasets.rerun import rerun
from agentctl.records.datasets import Example, Rerun
from agentctl.testing import CliResult, run_cli
from tests.catalog import CATALOG, sqlite_thread
from tests.support.langsmith_loopback import langsmith_server

APP = """
from tests.catalog import CATALOG

def graph():
    return CATALOG["agent"].build(None)
"""
LOST = """lookup_order:status="lost\""""
THREAD = CATALOG["agent"].thread


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A project with a production store that holds the agent's thread, and a fork of it in a debug store."""
    sqlite_thread(tmp_path, CATALOG["agent"]).rename(tmp_path / "prod.sqlite")
    (tmp_path / "app.py").write_text(APP, "utf-8")
    (tmp_path / "agentctl.yaml").write_text(
        yaml.safe_dump(
            {
                "profiles": {"prod": {"store": "prod.sqlite", "access": "read", "default": True}},
                "debug_store": "debug/debug.sqlite",
                "workflows": {"orders": {"graph": "app.py:graph"}},
            }
        ),
        "utf-8",
    )
    (tmp_path / "debug").mkdir()
    yield tmp_path


@pytest.fixture
def forked(folder: Path) -> Path:
    done = run_cli("fork", f"prod::{THREAD}", "--patch", LOST, "--stub", "issue_refund=paid", "--json", cwd=folder)
    assert done.code == 0, done.err
    assert done.json["runs"][0]["reply"] == "Your refund is on its way."
    return folder


FORK = f"debug::{THREAD}.fork-1"


def export(folder: Path, *args: str, json: bool = True) -> CliResult:
    words = ["export", *args, "--dataset", "refunds", *(["--json"] if json else [])]
    return run_cli(*words, cwd=folder)


def written(folder: Path) -> tuple[Example, ...]:
    return load_examples(folder / "datasets" / "refunds" / "examples.jsonl")


def test_a_fork_is_exported_with_its_own_outcome_and_what_came_before_it(forked: Path) -> None:
    done = export(forked, FORK)
    file = forked / "datasets" / "refunds" / "examples.jsonl"
    assert done.code == 0
    assert done.json == {
        "schema": "agentctl.export/1",
        "dataset": "refunds",
        "format": "jsonl",
        "n_examples": 1,
        "n_new": 1,
        "files": [str(file)],
        "url": None,
        "dry_run": False,
        "warnings": [],
        "masked": True,
        "masking": done.json["masking"],
    }
    assert done.json["masking"]["values"] == {}
    (example,) = written(forked)
    assert example.reference.reply == "Your refund is on its way."
    assert [call["name"] for call in example.reference.tool_calls] == ["lookup_order", "get_policy", "issue_refund"]
    assert example.reference.source == FORK
    assert example.steps[0] == "model"
    assert example.inputs["input"] is not None


def test_exporting_again_replaces_the_example(forked: Path) -> None:
    assert export(forked, FORK).json["n_new"] == 1
    again = export(forked, FORK).json
    assert (again["n_examples"], again["n_new"]) == (1, 0)
    assert len(written(forked)) == 1


def test_an_ordinary_thread_is_refused_with_a_command_to_paste(folder: Path) -> None:
    done = export(folder, f"prod::{THREAD}")
    assert done.code == 5
    assert done.json["error"]["kind"] == "refused"
    assert done.json["error"]["hint"].startswith(
        f"agentctl export prod::{THREAD} --dataset refunds --json --check 'reply contains TEXT'"
    )
    assert not (folder / "datasets").exists()


def test_a_check_says_what_failing_means(folder: Path) -> None:
    assert export(folder, f"prod::{THREAD}", "--check", "reply contains no refund", "--split", "train").code == 0
    (example,) = written(folder)
    assert (example.reference.check, example.reference.reply) == (("reply contains no refund",), None)
    assert example.split == "train"


def test_a_check_that_is_none_is_refused_before_anything_is_written(folder: Path) -> None:
    assert export(folder, f"prod::{THREAD}", "--check", "reply is nice").code == 2
    assert not (folder / "datasets").exists()


def test_a_check_file_is_named_as_the_tests_will_find_it(folder: Path) -> None:
    (folder / "checks").mkdir()
    (folder / "checks" / "refund.yaml").write_text("fails_when: reply contains no refund\n", "utf-8")
    done = run_cli("export", f"prod::{THREAD}", "--dataset", "refunds", "--check", "refund.yaml", cwd=folder / "checks")
    assert done.code == 0, done.err
    assert written(folder)[0].reference.check == ("checks/refund.yaml",)


def test_the_outcome_of_another_branch_may_be_right(forked: Path) -> None:
    assert export(forked, f"prod::{THREAD}", "--expect", FORK).code == 0
    (example,) = written(forked)
    assert example.outputs["reply"] == "No refund is due: your order was delivered."
    assert (example.reference.reply, example.reference.source) == ("Your refund is on its way.", FORK)


@pytest.mark.parametrize(
    ("name", "text", "reply", "calls"),
    [
        ("answer.txt", "Your refund comes.\n", "Your refund comes.", ()),
        ("answer.json", '"Your refund comes."', "Your refund comes.", ()),
        ("answer.json", '{"tool_calls": [{"name": "issue_refund"}]}', None, ({"args": {}, "name": "issue_refund"},)),
    ],
)
def test_a_file_may_say_what_is_right(
    folder: Path, name: str, text: str, reply: str | None, calls: tuple[Any, ...]
) -> None:
    (folder / name).write_text(text, "utf-8")
    assert export(folder, f"prod::{THREAD}", "--expect", f"@{name}").code == 0
    (example,) = written(folder)
    assert (example.reference.reply, example.reference.tool_calls) == (reply, calls)


def test_an_expected_file_that_is_missing_is_a_usage_error(folder: Path) -> None:
    done = export(folder, f"prod::{THREAD}", "--expect", "@gone.json")
    assert done.code == 2
    assert "gone.json" in done.json["error"]["message"]


def test_a_fork_that_did_not_end_has_no_outcome_to_take_as_right(folder: Path) -> None:
    blocked = run_cli("fork", f"prod::{THREAD}", "--patch", LOST, "--json", cwd=folder)
    assert blocked.code == 5
    done = export(folder, FORK)
    assert done.code == 5
    assert "did not end, next is tools" in done.json["error"]["message"]
    assert not (folder / "datasets").exists()


def test_a_replay_is_no_correction(folder: Path) -> None:
    assert run_cli("replay", f"prod::{THREAD}@call:lookup_order", "--json", cwd=folder).code == 0
    done = export(folder, f"debug::{THREAD}.replay-1")
    assert done.code == 5
    assert "nothing says what the right answer is" in done.json["error"]["message"]


def test_the_corrected_result_is_kept_as_a_fixture(forked: Path) -> None:
    done = export(forked, FORK, "--bad-result")
    (file,) = (forked / "datasets" / "refunds" / "bad_results").iterdir()
    assert str(file) in done.json["files"]
    kept = json.loads(file.read_text("utf-8"))
    assert (kept["tool"], kept["args"], kept["field"]) == ("lookup_order", {"order_id": "A1"}, "status")
    assert json.loads(kept["result"])["status"] == "delivered"
    assert json.loads(kept["corrected"])["status"] == "lost"


def test_a_thread_without_a_corrected_result_has_none_to_keep(folder: Path) -> None:
    done = export(folder, f"prod::{THREAD}", "--check", "reply contains x", "--bad-result")
    assert done.code == 2
    assert not (folder / "datasets").exists()


def test_where_the_origin_cannot_be_read_the_gaps_are_said(forked: Path) -> None:
    (forked / "prod.sqlite").unlink()
    done = export(forked, FORK)
    assert done.code == 0
    (warning,) = done.json["warnings"]
    assert f"prod::{THREAD}@" in warning
    assert "the input and the steps before" in warning
    assert "warning: prod::" in export(forked, FORK, json=False).err
    (example,) = written(forked)
    assert example.inputs["input"] is None
    assert example.outputs["reply"] == "Your refund is on its way."


def test_a_range_exports_both_branches_as_examples_of_their_own(tmp_path: Path) -> None:
    case = CATALOG["agent corrected"]
    store = sqlite_thread(tmp_path, case)
    history = run_cli("history", case.thread, "--store", store, "--json", cwd=tmp_path).json["items"]
    parents = {row["parent"] for row in history}
    left, right = [row["id"] for row in history if row["id"] not in parents]
    words = ["export", f"{case.thread}@{left}...{right}", "--store", store, "--dataset", "refunds"]
    done = run_cli(*words, "--check", "reply contains no refund", "--json", cwd=tmp_path)
    assert done.code == 0, done.out
    assert done.json["n_examples"] == 2
    assert {example.outputs["reply"] for example in written(tmp_path)} == {
        "Your refund is on its way.",
        "No refund is due: your order was delivered.",
    }
    again = run_cli(*words, "--check", "reply contains no refund", "--json", cwd=tmp_path)
    assert again.json["n_new"] == 0


def test_output_names_the_folder_of_datasets_and_a_dry_run_writes_nothing(forked: Path) -> None:
    done = export(forked, FORK, "--output", "elsewhere", "--format", "csv", "--dry-run")
    names = [str(Path(file).relative_to(forked)) for file in done.json["files"]]
    assert names == ["elsewhere/refunds/examples.jsonl", "elsewhere/refunds/examples.csv"]
    assert done.json["dry_run"] is True
    assert not (forked / "elsewhere").exists()


def test_the_pytest_file_runs_the_graph_of_the_workflow_from_the_project_folder(forked: Path) -> None:
    assert (
        export(forked, FORK, "--format", "pytest", "--configurable", "prompt=v3", "--stub", "issue_refund=1").code == 0
    )
    text = (forked / "datasets" / "refunds" / "test_refunds.py").read_text("utf-8")
    assert 'GRAPH = "app.py:graph"' in text
    assert 'PROJECT = (HERE / "../..").resolve()' in text
    assert (written(forked)[0].rerun.configurable, written(forked)[0].rerun.stubs) == (
        {"prompt": "v3"},
        {"issue_refund": 1},
    )


REMEMBERING = """
from typing import TypedDict

from langgraph.graph import StateGraph

class State(TypedDict, total=False):
    messages: list
    greeting: str

def node(state, *, store):
    item = store.get(("customers", "u-1"), "name")
    return {"greeting": f"Hello {item.value['value']}" if item else "Who are you?"}

def graph():
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.set_entry_point("node")
    return builder.compile()
"""


def test_what_the_memory_store_held_is_kept_and_is_there_when_the_example_runs_again(forked: Path) -> None:
    item = """customers/u-1/name={"value": "Ada"}"""
    assert export(forked, FORK, "--memory", item).code == 0
    (example,) = written(forked)
    (kept,) = example.rerun.memory
    assert (kept.namespace, kept.key, kept.value) == (("customers", "u-1"), "name", {"value": "Ada"})
    (forked / "remembering.py").write_text(REMEMBERING, "utf-8")
    told = [
        rerun(each, graph="remembering.py:graph", project=forked).observed.values.get("greeting")
        for each in (example, replace(example, rerun=Rerun()))
    ]
    assert told == ["Hello Ada", None], "without an item the graph has no memory store, and its node fails"


def test_an_item_that_is_none_is_a_usage_error_and_writes_nothing(forked: Path) -> None:
    assert export(forked, FORK, "--memory", "name=1").code == 2
    assert not (forked / "datasets").exists()


def test_langsmith_gets_the_same_example(forked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with langsmith_server(multipart=True) as service:
        monkeypatch.setenv("LANGSMITH_API_KEY", "key")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", service.url)
        done = export(forked, FORK, "--format", "langsmith")
    assert done.code == 0, done.out
    (held,) = service.examples.values()
    assert held["outputs"]["reply"] == "Your refund is on its way."
    assert service.datasets["refunds"] in done.json["url"]
    assert not (forked / "datasets").exists()


def test_for_people_the_files_are_named_and_for_pipes_there_is_one_line(forked: Path) -> None:
    plain = export(forked, FORK, json=False)
    assert [row[:4] for row in plain.rows] == [["refunds", "jsonl", "1", "1"]]
    human = run_cli("export", FORK, "--dataset", "refunds", cwd=forked, terminal=True)
    assert "1 example" in human.out
    assert "0 new, 1 replaced" in human.out


def test_an_unknown_format_is_a_usage_error(folder: Path) -> None:
    assert export(folder, f"prod::{THREAD}", "--format", "parquet").code == 2


def test_production_is_only_read(forked: Path) -> None:
    before = (forked / "prod.sqlite").read_bytes()
    export(forked, FORK, "--bad-result")
    assert (forked / "prod.sqlite").read_bytes() == before
    assert sorted(path.name for path in forked.glob("prod.sqlite*")) == ["prod.sqlite"]
