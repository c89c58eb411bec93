"""Examples as CSV: flat columns, nested values as JSON text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from agentctl.codec.jsontext import dumps
from agentctl.codec.messages import text_of
from agentctl.datasets.folder import example_object
from agentctl.records.datasets import Example

COLUMNS = (
    "id",
    "split",
    "turn",
    "question",
    "reply",
    "reference_reply",
    "reference_tool_calls",
    "check",
    "inputs",
    "outputs",
    "steps",
    "tool_calls",
    "configurable",
    "store",
    "thread",
    "checkpoint",
    "branch",
)

_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The wide forms count too where a spreadsheet is set to Japanese or Chinese (OWASP, CSV Injection)."""


def text(examples: Iterable[Example]) -> str:
    """Returns the whole file, header first, lines ending in CR LF as RFC 4180 has it."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    for example in examples:
        writer.writerow({key: _safe(value) for key, value in _row(example).items()})
    return out.getvalue()


def _row(example: Example) -> dict[str, object]:
    whole = example_object(example)
    metadata = whole["metadata"]
    assert isinstance(metadata, dict)
    return {
        "id": example.id,
        "split": example.split,
        "turn": example.turn,
        "question": _question(example),
        "reply": example.outputs.get("reply"),
        "reference_reply": example.reference.reply,
        "reference_tool_calls": dumps(example.reference.tool_calls),
        "check": "\n".join(example.reference.check),
        "inputs": dumps(example.inputs),
        "outputs": dumps(example.outputs),
        "steps": ",".join(example.steps),
        "tool_calls": dumps(metadata["tool_calls"]),
        "configurable": dumps(example.configurable),
        "store": example.source.store,
        "thread": example.source.thread,
        "checkpoint": example.source.checkpoint,
        "branch": example.source.branch,
    }


def _question(example: Example) -> str:
    messages = example.inputs.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    data = last.get("data", last) if isinstance(last, Mapping) else None
    text = text_of(data.get("content")) if isinstance(data, Mapping) else ""
    return text or dumps(example.inputs.get("input"))


def _safe(value: object) -> object:
    """A cell that a spreadsheet would run as a formula gets a quote before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_BEGINS_A_FORMULA) else value
