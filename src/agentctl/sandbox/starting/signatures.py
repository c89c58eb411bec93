"""JSON schemas of arguments as signatures of Python functions, where a signature says all that the schema says.

Source: how a signature becomes a schema: create_schema_from_function, langchain_core/tools/base.py (langchain-core
1.8.3), with pydantic 2.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agentctl.sandbox.starting.literals import literal, quoted

_TYPES: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_TAKEN: Final = frozenset({"run_manager", "callbacks", "config", "runtime", "self", "cls", "state", "store"})
"""Names of parameters that LangChain gives a meaning of its own, or might."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters of a function as source, and the names that their annotations need."""

    parameters: tuple[str, ...]
    names: frozenset[str]


def signature_of(schema: Mapping[str, object]) -> Signature | None:
    """Returns the signature that has this schema, or None where none is known to have exactly this one."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    known = {"properties", "required", "title", "type", "description"}
    if not isinstance(properties, Mapping) or not isinstance(required, Sequence) or schema.keys() - known:
        return None
    parameters: list[str] = []
    names: set[str] = set()
    has_default = False
    for name, given in properties.items():
        if not isinstance(given, Mapping) or not _is_free(str(name)):
            return None
        is_optional = name not in required
        if is_optional != ("default" in given) or (has_default and not is_optional):
            return None
        has_default = is_optional
        annotation = _annotation({key: each for key, each in given.items() if key not in ("default", "description")})
        if annotation is None:
            return None
        if (description := given.get("description")) is not None:
            annotation = f"Annotated[{annotation}, Field(description={quoted(str(description))})]"
        default = f" = {literal(given['default'])}" if is_optional else ""
        parameters.append(f"{name}: {annotation}{default}")
        names.update(each for each in ("Annotated", "Any", "Field", "Literal") if f"{each}" in annotation)
    return Signature(tuple(parameters), frozenset(names))


def _is_free(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_") and name not in _TAKEN


def _annotation(schema: Mapping[str, object]) -> str | None:
    """Returns the annotation whose schema this is, its title left out; None where there is none."""
    said = {key: value for key, value in schema.items() if key != "title"}
    if not said:
        return "Any"
    if said.keys() == {"anyOf"}:
        options = said["anyOf"]
        parts = [_annotation(each) for each in options] if isinstance(options, list) else []
        known = [part for part in parts if part is not None]
        return " | ".join(known) if known and len(known) == len(parts) and "Any" not in known else None
    kind = said.get("type")
    if said.keys() == {"type"}:
        return _TYPES.get(str(kind))
    if said.keys() == {"type", "items"} and kind == "array" and isinstance(said["items"], Mapping):
        inner = _annotation(said["items"])
        return f"list[{inner}]" if inner is not None else None
    if said.keys() == {"type", "additionalProperties"} and kind == "object":
        inner = "Any" if said["additionalProperties"] is True else _inner(said["additionalProperties"])
        return f"dict[str, {inner}]" if inner is not None else None
    return _choice(said)


def _inner(schema: object) -> str | None:
    return _annotation(schema) if isinstance(schema, Mapping) else None


def _choice(said: Mapping[str, object]) -> str | None:
    if said.get("type") != "string" or said.keys() not in ({"type", "enum"}, {"type", "const"}):
        return None
    choices = said.get("enum", [said.get("const")])
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        return None
    return f"Literal[{', '.join(map(quoted, choices))}]"
