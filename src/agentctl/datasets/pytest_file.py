"""A pytest file that runs a dataset's examples again, with every tool answered from the recording."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path

from agentctl.errors import Refused

_TEXT = '''"""The dataset {dataset} as tests: each example runs again, its tools answered from the recording.

Written by `agentctl export --format pytest` and overwritten by the next export; run it with `pytest`.

An example runs under the configuration that was recorded with it. Where that configuration is what was wrong (a prompt
version, a switched-off validation), the test fails for as long as it is recorded: the version that is to be held to the
example is named by `agentctl export ... --configurable KEY=VALUE`, which is kept in examples.jsonl, or for one run by

    AGENTCTL_CONFIGURABLE='{{"KEY": "VALUE"}}'    over the recorded configuration
    AGENTCTL_GRAPH=path.py:attr                 another graph, relative to PROJECT
"""

import json
import os
from pathlib import Path

import pytest

from agentctl.datasets.folder import load_examples
from agentctl.datasets.rerun import rerun

HERE = Path(__file__).resolve().parent
PROJECT = (HERE / {project}).resolve()
GRAPH = {graph}
SANDBOX = {sandbox}


@pytest.mark.parametrize("example", load_examples(HERE / "examples.jsonl"), ids=lambda example: example.id)
def test_{name}(example):
    outcome = rerun(
        example,
        graph=os.environ.get("AGENTCTL_GRAPH", GRAPH),
        project=PROJECT,
        sandbox=SANDBOX,
        configurable=json.loads(os.environ.get("AGENTCTL_CONFIGURABLE", "{{}}")),
    )
    assert not outcome.problems, "\\n".join(outcome.problems)
'''


def file_name(dataset: str) -> str:
    """Returns the file's name, which pytest collects."""
    return f"test_{_identifier(dataset)}.py"


def text(dataset: str, graph: str, sandbox: str | None, project: Path, folder: Path) -> str:
    """Returns the file.

    Args:
        dataset: Name of the dataset.
        graph: `path.py:attr`, relative to the project folder, or `package.module:attr`.
        sandbox: The sandbox tool registry in the same form, or None.
        project: The project folder; it stands in the file relative to the dataset's.
        folder: The dataset's folder.
    """
    relative = Path(os.path.relpath(project.resolve(), folder.resolve())).as_posix()
    return _TEXT.format(
        dataset=dataset,
        graph=_quoted(graph),
        sandbox=None if sandbox is None else _quoted(sandbox),
        project=_quoted(relative),
        name=_identifier(dataset),
    )


def refuse_another_graph(file: Path, graph: str) -> None:
    """Refuses to make a dataset's file run another graph than the one its examples were exported for.

    Raises:
        Refused: the file is there and names another graph.
    """
    found = re.search(r"^GRAPH = (.+)$", file.read_text("utf-8"), re.MULTILINE) if file.exists() else None
    if found is None:
        return
    try:
        its_own = ast.literal_eval(found[1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        its_own = found[1]
    if its_own == graph:
        return
    raise Refused(
        f"{file.name} runs its examples on {its_own}, not on {graph}",
        hint="--dataset NAME: a dataset of its own for each graph",
    )


def _quoted(text: str) -> str:
    """Returns a Python literal in double quotes, as formatters have it, and in ASCII: nothing in it can mislead."""
    return json.dumps(text, ensure_ascii=False).encode("ascii", "backslashreplace").decode("ascii")


def _identifier(dataset: str) -> str:
    return re.sub(r"\W", "_", dataset)
