"""The forms of a fork: from flag values to records, and every value that is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.errors import RevisionSyntaxError, UsageError
from agentctl.experiments.forking.forms import Answer, Assign, Forms, MemoryItemForm, NewInput, Patch, parse_forms
from agentctl.experiments.forking.paths import parse_path, path_text


def forms(**given: Any) -> Forms:
    return parse_forms(**given, read_file=lambda path: FILES[path])


FILES = {
    "verbatim.txt": '{"status":  "lost"}\n',
    "string.json": '"lost"\n',
    "blocks.json": '[{"type": "text", "text": "lost"}]',
    "list.json": "[1, 2]",
    "update.json": '{"messages": []}',
    "input.json": '{"messages": [["user", "hi"]]}',
}


def test_an_answer_is_a_call_and_json() -> None:
    (answer,) = forms(answer=['lookup_order={"status": "lost"}']).answers
    assert answer == Answer("lookup_order", {"status": "lost"}, form='--answer \'lookup_order={"status": "lost"}\'')


@pytest.mark.parametrize(
    ("file", "content", "as_blocks"),
    [
        ("verbatim.txt", '{"status":  "lost"}', False),
        ("string.json", "lost", False),
        ("blocks.json", [{"type": "text", "text": "lost"}], True),
        ("list.json", "[1, 2]", False),
    ],
)
def test_an_answer_from_a_file_is_given_back_as_it_was_shown(file: str, content: object, as_blocks: bool) -> None:
    (answer,) = forms(answer=[f"call-1=@{file}"]).answers
    assert (answer.call, answer.content, answer.as_blocks) == ("call-1", content, as_blocks)


@pytest.mark.parametrize(
    ("text", "call", "path", "value"),
    [
        ('lookup_order:status="lost"', "lookup_order", ("status",), "lost"),
        ("c1:items[0].price=1.5", "c1", ("items", 0, "price"), 1.5),
        ("functions.get_weather:0:temp=3", "functions.get_weather:0", ("temp",), 3),
        ('c1:by["a:b=c"].x=null', "c1", ("by", "a:b=c", "x"), None),
        ('c1:q="a=b"', "c1", ("q",), "a=b"),
        ("c1:[1].n=2", "c1", (1, "n"), 2),
    ],
)
def test_a_patch_is_a_call_a_path_and_json(text: str, call: str, path: tuple[str | int, ...], value: object) -> None:
    (patch,) = forms(patch=[text]).patches
    assert (patch.call, patch.path, patch.value) == (call, path, value)


def test_set_names_a_channel_and_may_go_into_it() -> None:
    (assign,) = forms(assign=["trip.days[-1]=3"]).assigns
    assert assign == Assign(("trip", "days", -1), 3, "--set 'trip.days[-1]=3'")
    assert assign.channel == "trip"


def test_memory_has_a_namespace_of_any_depth_and_a_key() -> None:
    (item,) = forms(memory=['users/u-1/prefs={"seat": "aisle"}']).memory
    assert item == MemoryItemForm(
        ("users", "u-1"), "prefs", {"seat": "aisle"}, '--memory \'users/u-1/prefs={"seat": "aisle"}\''
    )


def test_update_input_resume_and_nodes_are_kept() -> None:
    parsed = forms(update="update.json", as_node="tools", goto="agent", resume=["null", "true"])
    assert parsed.update == {"messages": []}
    assert (parsed.as_node, parsed.goto, parsed.resume) == ("tools", "agent", (None, True))
    assert forms(new_input="input.json").new_input == NewInput({"messages": [["user", "hi"]]}, "--input input.json")


def test_the_operation_names_the_forms_used() -> None:
    assert forms(patch=["c:a=1"], assign=["x=1"]).op == "patch+set"
    assert forms().op == "rerun"


def test_the_texts_reproduce_the_fork() -> None:
    parsed = forms(answer=["a=1"], patch=["b:c=2"], assign=["x=1"], as_node="n", goto="m", memory=["k/v={}"])
    assert parsed.texts == (
        "--answer a=1",
        "--patch b:c=2",
        "--set x=1",
        "--as-node n",
        "--goto m",
        "--memory 'k/v={}'",
    )


@pytest.mark.parametrize(
    "given",
    [
        {"answer": ["lookup_order"]},
        {"answer": ["=1"]},
        {"answer": ["lookup_order=lost"]},
        {"patch": ["lookup_order=1"]},
        {"patch": ["lookup_order:=1"]},
        {"patch": [":status=1"]},
        {"patch": ["c:a..b=1"]},
        {"patch": ["c:a=lost"]},
        {"assign": ["x"]},
        {"assign": ["[0]=1"]},
        {"resume": ["yes"]},
        {"memory": ["key={}"]},
        {"memory": ["a//b={}"]},
    ],
)
def test_a_value_that_cannot_be_read_is_a_syntax_error_with_a_span(given: dict[str, Any]) -> None:
    with pytest.raises(RevisionSyntaxError) as refused:
        forms(**given)
    start, end = refused.value.span
    assert 0 <= start <= end <= len(refused.value.text)
    assert refused.value.exit_code == 2


def test_text_without_quotes_is_told_how_to_be_quoted() -> None:
    with pytest.raises(RevisionSyntaxError) as refused:
        forms(patch=["lookup_order:status=lost"])
    assert refused.value.hint is not None
    assert "'\"lost\"'" in refused.value.hint


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"update": "update.json"}, "--update needs --as-node"),
        ({"as_node": "tools"}, "--as-node says who made an update"),
        ({"answer": ["c=1", "c=2"]}, "more than one result"),
        ({"answer": ["c=1"], "patch": ["c:a=2"]}, "more than one result"),
        ({"assign": ["x=1", "x=2"]}, "set twice"),
        ({"new_input": "input.json", "goto": "n"}, "starts a new turn"),
        ({"answer": ["c=1"], "update": "update.json", "as_node": "n"}, "a whole node's result"),
        ({"memory": ["a/b=1"]}, "takes a JSON object"),
        ({"update": "list.json", "as_node": "n"}, "takes a JSON object"),
        ({"update": "verbatim.txt.missing", "as_node": "n"}, "cannot read"),
    ],
)
def test_forms_that_cannot_be_meant_are_refused(given: dict[str, Any], says: str) -> None:
    def read(path: str) -> str:
        if path not in FILES:
            raise FileNotFoundError(path)
        return FILES[path]

    with pytest.raises(UsageError, match=says) as refused:
        parse_forms(**given, read_file=read)
    assert refused.value.exit_code == 2


def test_files_are_read_from_disk_by_default(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text('"lost"')
    (answer,) = parse_forms(answer=[f"c=@{file}"]).answers
    assert answer.content == "lost"


STEPS = st.lists(st.one_of(st.text(min_size=1), st.integers(-99, 99)), min_size=1, max_size=5)


@given(STEPS)
def test_a_path_is_read_as_it_is_written(steps: list[str | int]) -> None:
    assert parse_path(path_text(tuple(steps))) == tuple(steps)


@example(["\\"], None)
@given(STEPS, st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.integers())))
def test_a_patch_is_read_as_it_is_written(steps: list[str | int], value: object) -> None:
    (patch,) = parse_forms(patch=[f"call_1:{path_text(tuple(steps))}={json.dumps(value)}"]).patches
    assert (patch.call, patch.path, patch.value) == ("call_1", tuple(steps), value)
    assert isinstance(patch, Patch)
