"""What the expressions of a view can do besides JMESPath: read conversations, objects by their keys, JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jmespath import Options
from jmespath.functions import Functions, signature

from agentctl.codec import jsontext
from agentctl.codec.messages import messages_in
from agentctl.experiments.comparing.diff import content_value, final_reply
from agentctl.experiments.forking.pairing import pair_messages


class _ViewFunctions(Functions):
    """A subclass because JMESPath takes functions in no other way; its method names are what expressions call."""

    @signature({"types": ["array", "null"]})
    def _func_reply(self, messages: list[object] | None) -> str | None:
        return final_reply(messages_in(messages))

    @signature({"types": ["array", "null"]})
    def _func_tool_calls(self, messages: list[object] | None) -> list[dict[str, object]]:
        """Returns `{name, id, args, result, status}` of every call; result and status are null while it is open."""
        known = messages_in(messages)
        calls: list[dict[str, object]] = []
        for pair in pair_messages(known).pairs:
            answer = known[pair.answers[-1]] if pair.answers else None
            calls.append(
                {
                    "name": pair.call.name,
                    "id": pair.call.id,
                    "args": pair.call.args,
                    "result": content_value(answer.content) if answer else None,
                    "status": answer.status if answer else None,
                }
            )
        return calls

    @signature({"types": ["object", "null"]})
    def _func_entries(self, value: Mapping[str, object] | None) -> list[dict[str, object]]:
        return [{"key": key, "value": each} for key, each in (value or {}).items()]

    @signature({"types": ["string", "null"]})
    def _func_from_json(self, text: str | None) -> Any:
        try:
            return None if text is None else jsontext.parse(text)
        except ValueError:
            return None


OPTIONS: Final = Options(custom_functions=_ViewFunctions())
