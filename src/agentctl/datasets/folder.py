"""A dataset as a folder: `examples.jsonl`, one example a line, and what was made from it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentctl.codec import jsontext
from agentctl.errors import DecodeError, StoreError, UsageError
from agentctl.records.datasets import Example, ExampleCall, ExampleSource, Reference, Rerun
from agentctl.records.rows import MemoryItem

EXAMPLES = "examples.jsonl"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def require_name(name: str) -> None:
    """Raises UsageError where a dataset's name is no plain folder name."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"not a dataset name: {name!r}", hint="letters, digits, dots, dashes and underscores")


def dataset_folder(base: Path, name: str) -> Path:
    """Returns the folder of a dataset below `base`.

    Raises:
        UsageError: the name is no plain folder name.
        StoreError: a link stands in its place.
    """
    require_name(name)
    folder = base / name
    _require_plain_folder(folder)
    return folder


def example_object(example: Example) -> dict[str, object]:
    """Returns the JSON object of an example: id, inputs, outputs, reference, metadata, split."""
    reference, source = example.reference, example.source
    return {
        "id": example.id,
        "inputs": dict(example.inputs),
        "outputs": dict(example.outputs),
        "reference": {
            "reply": reference.reply,
            "tool_calls": [dict(call) for call in reference.tool_calls],
            "check": list(reference.check),
            "state": None if reference.state is None else dict(reference.state),
            "source": reference.source,
        },
        "metadata": {
            "source": {
                "store": source.store,
                "thread": source.thread,
                "checkpoint": source.checkpoint,
                "branch": source.branch,
            },
            "turn": example.turn,
            "n_earlier": example.n_earlier,
            "channel": example.channel,
            "steps": list(example.steps),
            "tool_calls": [_call_object(call) for call in example.tool_calls],
            "answers": list(example.answers),
            "configurable": dict(example.configurable),
            "rerun": {
                "configurable": dict(example.rerun.configurable),
                "stubs": dict(example.rerun.stubs),
                "memory": [_item_object(item) for item in example.rerun.memory],
            },
        },
        "split": example.split,
    }


def _call_object(call: ExampleCall) -> dict[str, object]:
    return {
        "name": call.name,
        "args": call.args,
        "id": call.id,
        "ns": call.ns,
        "result": call.result,
        "before": call.before,
        "inside": call.inside,
        "kind": call.kind,
        "writes": [[channel, value] for channel, value in call.writes],
        "goto": list(call.goto),
        "shared": call.shared,
    }


def example_of(value: Mapping[str, Any]) -> Example:
    """Returns the example of a JSON object.

    Raises:
        DecodeError: a key is missing, or holds what it cannot.
    """
    try:
        metadata, reference = value["metadata"], value["reference"]
        return Example(
            id=value["id"],
            inputs=value["inputs"],
            outputs=value["outputs"],
            reference=Reference(
                reply=reference["reply"],
                tool_calls=tuple(reference["tool_calls"]),
                check=tuple(reference["check"]),
                source=reference["source"],
                state=reference["state"],
            ),
            source=ExampleSource(**metadata["source"]),
            steps=tuple(metadata["steps"]),
            tool_calls=tuple(_call_of(call) for call in metadata["tool_calls"]),
            configurable=metadata["configurable"],
            split=value["split"],
            turn=metadata["turn"],
            n_earlier=metadata["n_earlier"],
            channel=metadata["channel"],
            answers=tuple(metadata["answers"]),
            rerun=_rerun_of(metadata["rerun"]),
        )
    except KeyError as error:
        raise DecodeError(f"not an example: it has no {error}", hint="agentctl export makes them") from error
    except (TypeError, ValueError) as error:
        raise DecodeError(f"not an example: {error}", hint="agentctl export makes them") from error


def _item_object(item: MemoryItem) -> dict[str, object]:
    return {"namespace": list(item.namespace), "key": item.key, "value": dict(item.value)}


def _rerun_of(value: Mapping[str, Any]) -> Rerun:
    items = value.get("memory", ())
    memory = tuple(MemoryItem(tuple(item["namespace"]), item["key"], item["value"]) for item in items)
    return Rerun(**{**value, "memory": memory})


def _call_of(value: Mapping[str, Any]) -> ExampleCall:
    fields = dict(value)
    writes = tuple((str(channel), written) for channel, written in fields.pop("writes"))
    return ExampleCall(**{**fields, "writes": writes, "goto": tuple(fields["goto"])})


def load_examples(path: Path) -> tuple[Example, ...]:
    """Returns the examples of a file, in its order.

    Raises:
        DecodeError: a line is not an example; the message names it.
    """
    examples = []
    if not path.is_file():
        raise DecodeError(f"{path} is no plain file", hint="agentctl export makes them")
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            examples.append(example_of(jsontext.parse(line)))
        except (ValueError, RecursionError, DecodeError) as error:
            raise DecodeError(
                f"{path.name} line {number}: {error}", hint="mend or delete that line; nothing was written"
            ) from error
    return tuple(examples)


def merge(old: Sequence[Example], new: Iterable[Example]) -> tuple[tuple[Example, ...], int]:
    """Returns the examples together, a new one in the place of an old one of its id, and how many replace none."""
    together = {example.id: example for example in old}
    n_before = len(together)
    for example in new:
        together[example.id] = example
    return tuple(together.values()), len(together) - n_before


def _require_plain_folder(folder: Path) -> None:
    if folder.is_symlink():
        raise StoreError(f"{folder} is a link, not a folder", hint="remove it, or give the folder itself: --output DIR")


def write_atomically(path: Path, text: str) -> None:
    """Writes a whole file or nothing: beside it first, then in its place.

    Raises:
        StoreError: a link stands in the place of its folder.
    """
    _require_plain_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
