"""Datasets as files: examples as JSON lines and CSV, references, reruns said by hand, what is refused."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest

from agentctl.datasets import csv_file, folder, pytest_file
from agentctl.datasets.export import export, format_of, with_reference, with_rerun
from agentctl.datasets.folder import example_object, example_of, load_examples, merge, write_atomically
from agentctl.errors import DecodeError, Refused, UsageError
from agentctl.records.datasets import BadResult, Example, ExampleCall, Reference
from tests.support.examples import example, human

OTHER = dataclasses.replace(example(), id="00000000-0000-5000-8000-000000000002")
COMMAND = ExampleCall(
    "write_todos",
    {"todos": []},
    "d1",
    "",
    {"type": "tool", "data": {"type": "tool", "content": "done", "tool_call_id": "d1", "status": "success"}},
    kind="command",
    writes=(("todos", [{"content": "x"}]),),
    goto=("model",),
    shared=True,
)


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_an_example_survives_being_written_and_read() -> None:
    whole = example(
        reference=Reference("Right.", ({"name": "a", "args": {}},), ("reply contains x",), "debug::t.fork-1"),
        tool_calls=(COMMAND, dataclasses.replace(COMMAND, before=True, inside=True, result=None)),
        answers=({"decision": "approve"}, None),
        n_earlier=3,
        turn=2,
    )
    (whole,) = with_rerun([whole], configurable={"prompt": "v3"}, stubs={"pay": {"ok": True}}, answers=["yes"])
    assert example_of(json.loads(json.dumps(example_object(whole)))) == whole


def test_lines_are_read_whole_whatever_line_separators_their_texts_hold(tmp_path: Path) -> None:
    odd = example("one\u2028two\x85three\x0bfour\nfive")
    export(with_own([odd]), base=tmp_path, dataset="d", format="jsonl")
    (read,) = load_examples(tmp_path / "d" / "examples.jsonl")
    assert read.outputs["reply"] == odd.outputs["reply"]


def with_own(examples: list[Example]) -> tuple[Example, ...]:
    return with_reference(examples, own_outcome=True)


def test_a_damaged_line_is_named_and_the_file_stays_as_it_is(tmp_path: Path) -> None:
    export(with_own([example()]), base=tmp_path, dataset="d", format="jsonl")
    file = tmp_path / "d" / "examples.jsonl"
    file.write_text(file.read_text("utf-8") + '{"id": 1}\n', "utf-8")
    before = file.read_bytes()
    with pytest.raises(DecodeError, match=r"examples\.jsonl line 2: .*metadata"):
        export(with_own([OTHER]), base=tmp_path, dataset="d", format="jsonl")
    assert file.read_bytes() == before


def test_exporting_again_replaces_the_same_example_and_keeps_the_others(tmp_path: Path) -> None:
    first = export(with_own([example("old"), OTHER]), base=tmp_path, dataset="d", format="jsonl")
    again = export(with_own([example("new")]), base=tmp_path, dataset="d", format="jsonl")
    assert (first.n_new, again.n_new, again.n_examples) == (2, 0, 1)
    replies = [read.outputs["reply"] for read in load_examples(tmp_path / "d" / "examples.jsonl")]
    assert replies == ["new", OTHER.outputs["reply"]]


def test_a_new_example_takes_the_place_of_the_old_one() -> None:
    together, n_new = merge([example("old"), OTHER], [example("new")])
    assert ([one.outputs["reply"] for one in together], n_new) == (["new", OTHER.outputs["reply"]], 0)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    report = export(with_own([example()]), base=tmp_path / "datasets", dataset="d", format="csv", dry_run=True)
    assert report.dry_run
    assert [Path(file).name for file in report.files] == ["examples.jsonl", "examples.csv"]
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "examples.jsonl"
    write_atomically(file, "old")

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(folder.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_atomically(file, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["examples.jsonl"]
    assert file.read_text("utf-8") == "old"


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "a b", "-x", "x" * 101])
def test_a_dataset_name_that_is_no_plain_folder_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="not a dataset name"):
        export(with_own([example()]), base=tmp_path, dataset=name, format="jsonl")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        format_of("parquet")
    assert "jsonl, csv, pytest, langsmith" in str(caught.value.hint)


def test_csv_holds_the_same_values_as_the_json_lines() -> None:
    (whole,) = with_own([example('She said "no",\nand left.')])
    (row,) = read_csv(csv_file.text([whole]))
    written: Any = json.loads(json.dumps(example_object(whole)))
    assert row["id"] == whole.id
    assert row["question"] == "Where is it?"
    assert row["reply"] == row["reference_reply"] == whole.outputs["reply"]
    assert json.loads(row["inputs"]) == written["inputs"]
    assert json.loads(row["outputs"]) == written["outputs"]
    assert json.loads(row["tool_calls"]) == written["metadata"]["tool_calls"]
    assert json.loads(row["reference_tool_calls"]) == written["reference"]["tool_calls"]
    assert row["steps"] == "agent,tools,agent"
    assert (row["thread"], row["checkpoint"], row["split"], row["turn"]) == ("t", "1f0", "test", "1")


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"])
def test_a_cell_that_a_spreadsheet_would_run_begins_with_a_quote(text: str) -> None:
    asked = example(text, inputs={"input": None, "messages": [human(text)], "state": {}})
    (row,) = read_csv(csv_file.text(with_own([asked])))
    assert row["question"] == row["reply"] == row["reference_reply"] == "'" + text


def test_the_question_of_a_message_of_blocks_is_its_text_and_without_messages_the_input() -> None:
    blocks = {"type": "human", "data": {"type": "human", "content": [{"type": "text", "text": "hi"}]}}
    (row,) = read_csv(csv_file.text([example(inputs={"input": 1, "messages": [blocks], "state": {}})]))
    assert row["question"] == "hi"
    (row,) = read_csv(csv_file.text([example(inputs={"input": {"n": 1}, "state": {}})]))
    assert row["question"] == '{"n": 1}'


def test_a_thread_without_anything_that_says_what_is_right_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        with_reference([example()], hint="agentctl export t --dataset d --check 'reply contains TEXT'")
    assert caught.value.hint == "agentctl export t --dataset d --check 'reply contains TEXT'"


def test_a_forks_own_outcome_is_the_reference_without_earlier_and_inner_calls() -> None:
    calls = (
        dataclasses.replace(COMMAND, before=True),
        dataclasses.replace(COMMAND, inside=True),
        dataclasses.replace(COMMAND, result=None),
        dataclasses.replace(COMMAND, name="pay", args={"amount": 1}),
    )
    (done,) = with_reference([example(tool_calls=calls)], own_outcome=True, source="debug::t.fork-1")
    assert done.reference == Reference(
        "It is on its way.", ({"name": "pay", "args": {"amount": 1}},), (), "debug::t.fork-1"
    )


def test_turns_before_the_last_keep_the_recorded_outcome_and_only_the_last_gets_the_check() -> None:
    first, last = with_reference([example("first"), dataclasses.replace(OTHER, turn=2)], check=["reply contains x"])
    assert (first.reference.reply, first.reference.check) == ("first", ())
    assert (last.reference.reply, last.reference.check) == (None, ("reply contains x",))


def test_a_graph_without_messages_is_held_to_its_final_state() -> None:
    quiet = example(channel="", outputs={"reply": None, "state": {"total": 3}}, tool_calls=())
    (done,) = with_own([quiet])
    assert done.reference.state == {"total": 3}


def test_an_outcome_that_says_nothing_is_no_reference() -> None:
    with pytest.raises(Refused, match="no reply and no tool calls"):
        with_own([example(outputs={"reply": None, "state": {}, "messages": []}, tool_calls=())])


def test_an_expected_answer_may_be_a_text_or_an_object() -> None:
    (text,) = with_reference([example()], expected_value="Right.")
    (calls,) = with_reference([example()], expected_value={"tool_calls": [{"name": "pay"}]})
    assert text.reference == Reference("Right.")
    assert calls.reference == Reference(None, ({"args": {}, "name": "pay"},))


@pytest.mark.parametrize("value", [{"answer": "x"}, {"reply": 1}, {"tool_calls": {}}, {"tool_calls": [{"args": {}}]}])
def test_an_expected_answer_of_another_shape_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="an expected answer is"):
        with_reference([example()], expected_value=value)


def test_bad_results_are_kept_as_fixtures_with_what_was_right(tmp_path: Path) -> None:
    bad = BadResult("lookup/order", "c:1", {"order_id": "A1"}, '{"status": "ok"}', "status", '{"status": "lost"}')
    export(with_own([example()]), base=tmp_path, dataset="d", format="jsonl", bad_results=[bad])
    (file,) = (tmp_path / "d" / "bad_results").iterdir()
    assert file.name == "lookup_order-c_1.json"
    assert json.loads(file.read_text("utf-8")) == {
        "tool": "lookup/order",
        "args": {"order_id": "A1"},
        "result": '{"status": "ok"}',
        "field": "status",
        "corrected": '{"status": "lost"}',
    }


def test_the_pytest_file_is_python_that_names_graph_sandbox_and_project(tmp_path: Path) -> None:
    export(
        with_own([example()]),
        base=tmp_path / "datasets",
        dataset="re-funds.2",
        format="pytest",
        graph="graphs/it's.py:graph",
        sandbox=None,
        project=tmp_path,
    )
    text = (tmp_path / "datasets" / "re-funds.2" / "test_re_funds_2.py").read_text("utf-8")
    names: dict[str, Any] = {"__file__": str(tmp_path / "datasets" / "re-funds.2" / "test_re_funds_2.py")}
    exec(compile(text, "test_re_funds_2.py", "exec"), names)
    assert (names["GRAPH"], names["SANDBOX"], names["PROJECT"]) == ("graphs/it's.py:graph", None, tmp_path.resolve())
    assert callable(names["test_re_funds_2"])


def test_the_pytest_format_needs_a_graph_and_writes_nothing_without(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs the graph"):
        export(with_own([example()]), base=tmp_path, dataset="d", format="pytest")
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_s_tests_are_not_turned_to_another_graph(tmp_path: Path) -> None:
    def write(graph: str) -> None:
        export(with_own([example()]), base=tmp_path, dataset="d", format="pytest", graph=graph, project=tmp_path)

    write("a.py:graph")
    write("a.py:graph")
    file = tmp_path / "d" / pytest_file.file_name("d")
    before = file.read_bytes()
    with pytest.raises(Refused, match=r"runs its examples on a\.py:graph, not on b\.py:graph"):
        write("b.py:graph")
    assert file.read_bytes() == before
