"""Whether a recorded answer is one that a call could have got, by the tools and the format that it asks for.

A node may call a model for its route and again for its reply, and stores the reply alone: the first call, which was
answered by a call of its one schema or by JSON, is then not taken for the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from agentctl.codec import jsontext
from agentctl.sandbox.models.recording import ModelAnswer

_FREE: Final = ("auto", "none")
_ANY: Final = ("any", "required")


def misfit(answer: ModelAnswer, options: Mapping[str, object]) -> str | None:
    """Returns why a call with such options cannot have got an answer, None where it can.

    Args:
        answer: The recorded answer.
        options: What is given to the model beside the messages; tools in any provider's form.
    """
    names = _tool_names(options.get("tools"))
    if names is not None and (foreign := [name for name in answer.tools if name not in names]):
        return f"the recorded answer calls {', '.join(foreign)}, which this call has no tool for"
    forced = _forced(options.get("tool_choice"))
    if forced is not None and not answer.tools:
        return "it must call a tool, and the recorded answer calls none"
    if forced and any(name != forced for name in answer.tools):
        return f"it must call {forced}, and the recorded answer calls {', '.join(answer.tools)}"
    if _asks_for_json(options) and not answer.tools and not _is_object(answer.text):
        return "it asks for JSON, and the recorded answer is none"
    return None


def _tool_names(tools: object) -> frozenset[str] | None:
    """Returns the names of bound tools; None where there are none in the options, or their form is not known."""
    if not isinstance(tools, list | tuple):
        return None
    names = [name for tool in tools for name in _names_in(tool)]
    return frozenset(names) if len(names) >= len(tools) else None


def _names_in(tool: object) -> Iterator[str]:
    """Yields the names in one bound tool: a dict of OpenAI or Anthropic, declarations of Google, an object."""
    fields = tool if isinstance(tool, Mapping) else getattr(tool, "__dict__", {})
    declared = fields.get("function_declarations")
    if isinstance(declared, list | tuple):
        for inner in declared:
            yield from _names_in(inner)
        return
    function = fields.get("function")
    name = function.get("name") if isinstance(function, Mapping) else fields.get("name", fields.get("type"))
    if isinstance(name, str):
        yield name


def _forced(choice: object) -> str | None:
    """Returns the tool that must be called, '' where any must, None where none has to."""
    if isinstance(choice, Mapping):
        function = choice.get("function")
        named = function.get("name") if isinstance(function, Mapping) else choice.get("name")
        if isinstance(named, str):
            return named
        choice = choice.get("type", choice.get("mode"))
    if choice is True or (isinstance(choice, str) and choice.lower() in _ANY):
        return ""
    return choice if isinstance(choice, str) and choice and choice.lower() not in _FREE else None


def _asks_for_json(options: Mapping[str, object]) -> bool:
    wanted = options.get("response_format") or options.get("response_schema") or options.get("response_mime_type")
    if isinstance(wanted, Mapping):
        return wanted.get("type") != "text"
    return wanted is not None and wanted != "text/plain"


def _is_object(text: str) -> bool:
    try:
        return isinstance(jsontext.parse(text), Mapping)
    except ValueError:
        return False
