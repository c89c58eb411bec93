"""A pytest file that runs a dataset's examples again, with every tool answered from the recording."""

from __future__ import annotations

import os
import re
from pathlib import Path

_TEXT = '''"""Regression tests for the dataset {dataset}: each example runs again, every tool answered from its recording.

Written by `agentctl export --format pytest`; run with `pytest`. AGENTCTL_GRAPH runs another graph instead.
"""

import os
from pathlib import Path

import pytest

from agentctl.datasets.folder import load_examples
from agentctl.datasets.rerun import rerun

HERE = Path(__file__).resolve().parent
PROJECT = (HERE / {project!r}).resolve()
GRAPH = os.environ.get("AGENTCTL_GRAPH", {graph!r})
SANDBOX = {sandbox!r}


@pytest.mark.parametrize("example", load_examples(HERE / "examples.jsonl"), ids=lambda example: example.id)
def test_{name}(example):
    outcome = rerun(example, graph=GRAPH, project=PROJECT, sandbox=SANDBOX)
    assert not outcome.problems, "\\n".join(outcome.problems)
'''


def file_name(dataset: str) -> str:
    """Returns the file's name, which pytest collects."""
    return f"test_{_identifier(dataset)}.py"


def text(dataset: str, graph: str, sandbox: str | None, project: Path | None, folder: Path) -> str:
    """Returns the file; the project folder stands in it relative to the dataset's."""
    relative = os.path.relpath(project or Path.cwd(), folder)
    return _TEXT.format(dataset=dataset, graph=graph, sandbox=sandbox, project=relative, name=_identifier(dataset))


def _identifier(dataset: str) -> str:
    return re.sub(r"\W", "_", dataset)
