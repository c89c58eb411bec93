"""What the lead keeps of messages that are summarised: the brief, the plan, and what each search came back with.

Written by rule, not by a model: it costs nothing, adds no certainty and forgets no constraint. The evidence lies in the
notes files and is read again where it is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from graphs.research_report.brief import brief_in
from graphs.research_report.plan import task_of

_HEADING = "Research so far"
_DIGEST = re.compile(rf"{_HEADING}\n(\{{.*\}})", re.DOTALL)


def digest(messages: Sequence[AnyMessage]) -> str:
    """Sums messages up, an earlier summary among them included."""
    return f"{_HEADING}\n{json.dumps(progress(messages), ensure_ascii=False)}"


def progress(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """Returns what messages say of a run: `brief`, `todos` as last written, and the answer of each search by its id."""
    found: dict[str, Any] = {"brief": {}, "todos": [], "answers": {}}
    answered = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    for message in messages:
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                _add(found, call["name"], call["args"], answered.get(str(call["id"])))
        elif (earlier := _digest_in(message.text)) is not None:
            found = {**earlier, "answers": {**earlier["answers"], **found["answers"]}}
        elif (brief := brief_in(message.text)) is not None:
            found["brief"] = brief
    return found


def _add(found: dict[str, Any], name: str, args: dict[str, Any], answer: ToolMessage | None) -> None:
    if answer is None or answer.status == "error":
        return
    if name == "write_todos":
        found["todos"] = args["todos"]
    elif name == "task" and (sub_question := task_of(str(args.get("description", "")))) is not None:
        found["answers"][sub_question] = answer.text


def _digest_in(text: str) -> dict[str, Any] | None:
    found = _DIGEST.search(text)
    return None if found is None else dict(json.loads(found[1]))
