"""Writing examples into a dataset, one module a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agentctl.codec.jsontext import dumps
from agentctl.datasets import csv_file, langsmith_upload, pytest_file
from agentctl.datasets.folder import EXAMPLES, dataset_folder, example_object, load_examples, merge, write_atomically
from agentctl.errors import Refused, UsageError
from agentctl.records.datasets import Example, ExportReport, Reference

Format = Literal["jsonl", "csv", "pytest", "langsmith"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "pytest", "langsmith")


def format_of(text: str) -> Format:
    """Returns the format of a name.

    Raises:
        UsageError: there is no such format.
    """
    for known in FORMATS:
        if text == known:
            return known
    raise UsageError(f"no format {text}", hint="one of: " + ", ".join(FORMATS))


def with_reference(
    examples: Sequence[Example],
    *,
    expected: Example | None = None,
    expected_value: Mapping[str, object] | str | None = None,
    check: Sequence[str] = (),
    own_outcome: bool = False,
    source: str | None = None,
) -> tuple[Example, ...]:
    """Returns the examples with what is right for the last turn, and the recorded outcome for the turns before it.

    Args:
        examples: The turns of one branch, oldest first.
        expected: The turn whose outcome is right: the last turn of the branch that `--expect` names.
        expected_value: `{"reply", "tool_calls"}` or a reply, as written by a person.
        check: What failing means, as `--check` texts; the last turn is right where it does not hold.
        own_outcome: The branch is a fork that was made to be right: its own outcome is the reference.
        source: Where the reference was taken from, as a target.

    Raises:
        Refused: nothing says what is right, so the recorded answer, perhaps the wrong one, would become the reference.
    """
    *before, last = examples
    outcome = expected if expected is not None else last if own_outcome else None
    if outcome is None and expected_value is None and not check:
        raise Refused(
            "nothing says what the right answer is, and exporting the recorded one could enshrine a wrong answer",
            hint="--expect debug::THREAD.fork-1, --expect @answer.json, or --check 'reply contains ...'",
        )
    reference = _outcome(outcome, source) if outcome else _written(expected_value, source)
    reference = replace(reference, check=tuple(check))
    return (
        *(replace(turn, reference=_outcome(turn, turn.source.thread)) for turn in before),
        replace(last, reference=reference),
    )


def export(
    examples: Sequence[Example],
    *,
    base: Path,
    dataset: str,
    format: Format,
    graph: str | None = None,
    sandbox: str | None = None,
    project: Path | None = None,
    endpoint: str | None = None,
    dry_run: bool = False,
) -> ExportReport:
    """Adds the examples to a dataset; one that is there already is replaced. Files are written whole or not at all.

    Args:
        examples: With their references.
        base: The folder that holds datasets.
        dataset: The dataset's name.
        format: What is written besides `examples.jsonl`, which every format but `langsmith` keeps.
        graph: For `pytest`: the graph that the tests run, `path.py:attr`.
        sandbox: For `pytest`: the sandbox registry, `path.py:attr`, where the graph has one.
        project: For `pytest`: the folder that `graph` is relative to.
        endpoint: For `langsmith`: the API's address; the client's own configuration without it.
        dry_run: Write nothing.
    """
    if format == "langsmith":
        return langsmith_upload.upload(examples, dataset, endpoint=endpoint, dry_run=dry_run)
    folder = dataset_folder(base, dataset)
    file = folder / EXAMPLES
    together, n_new = merge(load_examples(file) if file.exists() else (), examples)
    texts = {file: "".join(dumps(example_object(example)) + "\n" for example in together)}
    if format == "csv":
        texts[folder / "examples.csv"] = csv_file.text(together)
    elif format == "pytest":
        if graph is None:
            raise UsageError("format pytest needs the graph that the tests run", hint="--graph path.py:attr")
        texts[folder / pytest_file.file_name(dataset)] = pytest_file.text(dataset, graph, sandbox, project, folder)
    if not dry_run:
        for path, text in texts.items():
            write_atomically(path, text)
    return ExportReport(dataset, format, len(examples), n_new, tuple(str(path) for path in texts))


def _outcome(turn: Example, source: str | None) -> Reference:
    reply = turn.outputs.get("reply")
    calls = [{"name": call.name, "args": call.args} for call in turn.tool_calls if not call.before]
    return Reference(reply if isinstance(reply, str) else None, tuple(calls), (), source)


def _written(value: Mapping[str, object] | str | None, source: str | None) -> Reference:
    if value is None or isinstance(value, str):
        return Reference(value, (), (), source)
    unknown = set(value) - {"reply", "tool_calls"}
    reply, calls = value.get("reply"), value.get("tool_calls", [])
    if unknown or not (reply is None or isinstance(reply, str)) or not isinstance(calls, list):
        raise UsageError(
            "an expected answer is a text, or {reply: TEXT, tool_calls: [{name, args}]}",
            hint='{"reply": "...", "tool_calls": []}',
        )
    return Reference(reply, tuple(calls), (), source)
