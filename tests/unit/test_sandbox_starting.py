"""Examples and Python source of starter registries."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.records.starters import Starter, StarterTool
from agentctl.sandbox.starting.examples import example_of
from agentctl.sandbox.starting.literals import literal
from agentctl.sandbox.starting.source import source_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=15, deadline=None)
def test_a_literal_is_the_value(value: Any) -> None:
    assert ast.literal_eval(literal(value)) == value


def test_long_values_are_broken_over_lines() -> None:
    value = {"why": "because of this " * 20, "lines": ["x" * 50, "y" * 50, "z"]}
    text = literal(value, used=7)
    assert max(map(len, text.splitlines())) <= 88
    assert ast.literal_eval(text) == value


@pytest.mark.parametrize(
    ("content", "example"),
    [
        ('{"status": "lost", "api_key": "k-1"}', {"status": "lost", "api_key": "***"}),
        ('{"status":"lost"}', '{"status":"lost"}'),
        ('{"token":"t"}', '{"token": "***"}'),
        ("postgresql://u:secret@host/db", "postgresql://u:***@host/db"),
        ('{"n": NaN}', '{"n": NaN}'),
        ([{"type": "text", "text": "hi"}], [{"type": "text", "text": "hi"}]),
        ('{"inner": "{\\"password\\": \\"p\\"}"}', {"inner": '{"password": "***"}'}),
    ],
)
def test_an_example_is_what_the_tool_gave_without_its_secrets(content: object, example: object) -> None:
    assert example_of(content) == (example, "recorded")


def test_a_long_example_keeps_its_shape() -> None:
    value, how = example_of(json.dumps({"rows": [{"id": n, "text": "t" * 500} for n in range(50)]}))
    assert how == "shortened"
    assert isinstance(value, dict)
    assert [row["id"] for row in value["rows"]] == [0, 1, 2]
    assert value["rows"][0]["text"] == "t" * 200 + "..."


@pytest.mark.parametrize("text", ["x\nBROKEN_OUT = 1", 'x"""\nBROKEN_OUT = 1\n"""', "x\x0c\u2028\rBROKEN_OUT = 1"])
def test_no_text_of_a_thread_becomes_code(text: str) -> None:
    schema = {"properties": {text: {"type": "string", "enum": [text]}}, "required": [text], "title": text}
    tool = StarterTool(text, text, schema, "write", "recorded", {text: [text]}, (text,))
    source = source_of(Starter("graph.py:graph", text, (tool, tool), (), ()))
    assigned = [node.targets for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assign)]
    assert [target.id for (target,) in assigned if isinstance(target, ast.Name)] == ["registry"]
