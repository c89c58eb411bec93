"""Writing examples into a dataset, one module a format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeGuard

from agentctl.codec.jsontext import dumps
from agentctl.datasets import csv_file, langsmith_upload, pytest_file
from agentctl.datasets.folder import EXAMPLES, dataset_folder, example_object, load_examples, merge, write_atomically
from agentctl.errors import Refused, UsageError
from agentctl.records.datasets import BadResult, Example, ExportReport, Reference, Rerun
from agentctl.records.rows import MemoryItem
from agentctl.stores.reading.layout import END

Format = Literal["jsonl", "csv", "pytest", "langsmith"]
BAD_RESULTS = "bad_results"
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
    hint: str = "--check 'reply contains ...', or --expect TARGET",
) -> tuple[Example, ...]:
    """Returns the examples with what is right for the last turn, and the recorded outcome for the turns before it.

    Args:
        examples: The turns of one branch, oldest first.
        expected: The turn whose outcome is right: the last turn of the branch that `--expect` names.
        expected_value: `{"reply", "tool_calls"}` or a reply, as written by a person.
        check: What failing means, as `--check` texts; the last turn is right where it does not hold.
        own_outcome: The branch is a fork that was made to be right: its own outcome is the reference.
        source: Where the reference was taken from, as a target.
        hint: The next command, where nothing says what is right.

    Raises:
        Refused: nothing says what is right, so the recorded answer, perhaps the wrong one, would become the reference.
    """
    *before, last = examples
    outcome = expected if expected is not None else last if own_outcome else None
    if outcome is None and expected_value is None and not check:
        raise Refused(
            "nothing says what the right answer is, and exporting the recorded one could enshrine a wrong answer",
            hint=hint,
        )
    reference = replace(_outcome(outcome, source) if outcome else _written(expected_value, source), check=tuple(check))
    if reference.is_empty:
        raise Refused(
            f"the outcome of {source or last.source.thread} has no reply and no tool calls to hold a run against",
            hint="--check 'state JMESPATH' or another check says what failing means",
        )
    return (
        *(replace(turn, reference=_outcome(turn, turn.source.thread)) for turn in before),
        replace(last, reference=reference),
    )


def with_rerun(
    examples: Sequence[Example],
    *,
    configurable: Mapping[str, object],
    stubs: Mapping[str, object],
    answers: Sequence[object],
    memory: Sequence[MemoryItem] = (),
) -> tuple[Example, ...]:
    """Returns the examples with how they run again.

    Args:
        examples: The examples.
        configurable: Wins over the recorded configuration.
        stubs: Answers to calls that the recording does not hold, by tool name.
        answers: Answers to interrupts, in place of the recorded ones where any are given.
        memory: What the memory store holds when they run.
    """
    rerun = Rerun(configurable, stubs, tuple(memory))
    return tuple(
        replace(example, rerun=rerun, answers=tuple(answers) if answers else example.answers) for example in examples
    )


def bad_result_files(folder: Path, results: Sequence[BadResult]) -> dict[Path, str]:
    """Returns the fixtures of corrected tool results, one file each, by path."""
    return {
        folder / BAD_RESULTS / f"{_file_part(result.tool)}-{_file_part(result.id)}.json": dumps(
            {
                "tool": result.tool,
                "args": result.args,
                "result": result.result,
                "field": result.field,
                "corrected": result.corrected,
            },
            indent=2,
        )
        + "\n"
        for result in results
    }


def _file_part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text) or "_"


def export(
    examples: Sequence[Example],
    *,
    base: Path,
    dataset: str,
    format: Format,
    graph: str | None = None,
    sandbox: str | None = None,
    project: Path | None = None,
    bad_results: Sequence[BadResult] = (),
    endpoint: str | None = None,
    dry_run: bool = False,
) -> ExportReport:
    """Adds the examples to a dataset; one that is there already is replaced. Each file is written whole or not at all.

    Args:
        examples: With their references.
        base: The folder that holds datasets.
        dataset: The dataset's name.
        format: What is written besides `examples.jsonl`, which every format but `langsmith` keeps.
        graph: For `pytest`: the graph that the tests run, `path.py:attr`.
        sandbox: For `pytest`: the sandbox registry, `path.py:attr`, where the graph has one.
        project: For `pytest`: the folder that `graph` and `sandbox` are relative to; `base` without it.
        bad_results: Tool results that a fork corrected, to be kept as fixtures.
        endpoint: For `langsmith`: the API's address; the client's own configuration without it.
        dry_run: Write nothing.
    """
    folder = dataset_folder(base, dataset)
    texts = bad_result_files(folder, bad_results)
    if format == "langsmith":
        report = langsmith_upload.upload(examples, dataset, endpoint=endpoint, dry_run=dry_run)
    else:
        file = folder / EXAMPLES
        together, n_new = merge(load_examples(file) if file.exists() else (), examples)
        report = ExportReport(dataset, format, len(examples), n_new, (), dry_run=dry_run)
        texts = {file: "".join(dumps(example_object(example)) + "\n" for example in together)} | texts
        if format == "csv":
            texts[folder / "examples.csv"] = csv_file.text(together)
        elif format == "pytest":
            texts |= _tests(folder, dataset, graph, sandbox, project or base)
    if not dry_run:
        for path, text in texts.items():
            write_atomically(path, text)
    return replace(report, files=tuple(str(path) for path in texts))


def _tests(folder: Path, dataset: str, graph: str | None, sandbox: str | None, project: Path) -> dict[Path, str]:
    if graph is None:
        raise UsageError("format pytest needs the graph that the tests run", hint="--graph path.py:attr")
    file = folder / pytest_file.file_name(dataset)
    pytest_file.refuse_another_graph(file, graph)
    return {file: pytest_file.text(dataset, graph, sandbox, project, folder)}


def _outcome(turn: Example, source: str | None) -> Reference:
    reply = turn.outputs.get("reply")
    calls = [
        {"name": call.name, "args": call.args}
        for call in turn.tool_calls
        if call.result is not None and not (call.before or call.inside)
    ]
    return Reference(
        reply=reply if isinstance(reply, str) else None,
        tool_calls=tuple(calls),
        source=source,
        state=None if turn.channel else _final_state(turn),
    )


def _final_state(turn: Example) -> Mapping[str, object] | None:
    """Returns the state as LangGraph shows it: an entrypoint's result stands for itself where it is a mapping."""
    state = turn.outputs.get("state")
    if not isinstance(state, Mapping):
        return None
    result = state.get(END)
    return result if set(state) == {END} and isinstance(result, Mapping) else state


def _written(value: Mapping[str, object] | str | None, source: str | None) -> Reference:
    if value is None or isinstance(value, str):
        return Reference(value, source=source)
    unknown = set(value) - {"reply", "tool_calls"}
    reply, calls = value.get("reply"), value.get("tool_calls", [])
    if unknown or not (reply is None or isinstance(reply, str)) or not _are_calls(calls):
        raise UsageError(
            "an expected answer is a text, or {reply: TEXT, tool_calls: [{name, args}]}",
            hint='{"reply": "...", "tool_calls": []}',
        )
    return Reference(reply, tuple({"args": {}, **call} for call in calls), source=source)


def _are_calls(value: object) -> TypeGuard[list[Mapping[str, object]]]:
    return isinstance(value, list) and all(
        isinstance(call, Mapping) and isinstance(call.get("name"), str) and set(call) <= {"name", "args"}
        for call in value
    )
