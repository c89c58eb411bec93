"""The prompts: versioned texts, and the messages that are made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from graphs.common.versions import read_prompt

CURRENT_EXTRACTION_PROMPT = "v2"
_FOLDER = Path(__file__).parent
_BEGIN, _END = "<<<DOCUMENT", "DOCUMENT>>>"


def extraction_messages(version: str, *, kind: str, text: str, problems: Sequence[str]) -> list[BaseMessage]:
    """Returns the messages by which the model reads one document.

    Args:
        version: The prompt's version.
        kind: The kind of document.
        text: Its text; markers in it are taken out, so that it cannot end early.
        problems: What was wrong with an earlier reading.

    Raises:
        UnknownPrompt: there is no such version.
    """
    clean = text.replace(_BEGIN, "").replace(_END, "")
    again = "".join(f"\nAn earlier reading had this problem: {problem}" for problem in problems)
    return [
        SystemMessage(_read(f"extract-{version}")),
        HumanMessage(f"Document of kind {kind}:\n{_BEGIN}\n{clean}\n{_END}{again}"),
    ]


def document_in(message: BaseMessage) -> str:
    """Returns the document's text of an extraction message."""
    return message.text.partition(_BEGIN)[2].partition(_END)[0].strip("\n")


def summary_messages(facts: Mapping[str, Any]) -> list[BaseMessage]:
    """Returns the messages by which the model writes the case summary."""
    return [SystemMessage(_read("summary")), HumanMessage(json.dumps(facts, sort_keys=True))]


def _read(name: str) -> str:
    return read_prompt(_FOLDER, name).strip()
