"""Stored text in files that other programs open: a spreadsheet, Python."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path

import pytest

from agentctl.datasets import csv_file, pytest_file
from agentctl.errors import Refused
from agentctl.records.datasets import Example, ExampleSource, Reference, Rerun

PLANTED = '"""\\"; import os; os.system("touch pwned") #\n'


def example(text: str) -> Example:
    return Example(
        id=text,
        inputs={"messages": [{"type": "human", "content": text}]},
        outputs={"reply": text},
        reference=Reference(text),
        source=ExampleSource(text, text, text, text),
        steps=(text,),
        tool_calls=(),
        configurable={},
        split=text,
        turn=1,
        n_earlier=0,
        channel="messages",
        answers=(),
        rerun=Rerun({}, {}, ()),
    )


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t=", "\r=", "\n=", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_no_cell_is_a_formula(begin: str) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_file.text([example(f'{begin}cmd|"/C calc"!A0')]), newline="")))
    assert [cell for cell in rows[0].values() if cell.startswith(begin)] == []
    assert rows[0]["reply"] == f'\'{begin}cmd|"/C calc"!A0'


def test_a_cell_holds_quotes_line_ends_and_commas_as_they_are() -> None:
    text = 'a,"b"\r\nc;\u202e\x1b[31m'
    rows = list(csv.DictReader(io.StringIO(csv_file.text([example(text)]), newline="")))
    assert len(rows) == 1 and rows[0]["reply"] == text


@pytest.mark.parametrize("text", [PLANTED, "a\\", "\u202e evil", "\U0001f680.py:graph", "{name}", "'''", "\x1b[31m"])
def test_generated_python_holds_names_as_text_alone(tmp_path: Path, text: str) -> None:
    made = pytest_file.text("refunds", text, text, tmp_path / "project", tmp_path / "datasets")
    tree = ast.parse(made)
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id != "HERE"
        if isinstance(node.value, ast.Constant)
    }
    assert values == {"GRAPH": text, "SANDBOX": text}
    assert made.isascii()
    assert [type(node) for node in tree.body] == [
        type(node) for node in ast.parse(pytest_file.text("refunds", "a:b", "c:d", tmp_path, tmp_path)).body
    ]


@pytest.mark.parametrize("line", ["GRAPH = os.environ['X']", "GRAPH = (", "GRAPH = " + "(" * 5_000, "GRAPH = 'b:b'"])
def test_a_test_file_of_another_graph_is_not_written_over(tmp_path: Path, line: str) -> None:
    (tmp_path / "test_refunds.py").write_text(f"{line}\n")
    with pytest.raises(Refused, match="not on a:a"):
        pytest_file.refuse_another_graph(tmp_path / "test_refunds.py", "a:a")
