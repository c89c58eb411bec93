"""A starter registry as the text of a Python module."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterator
from typing import Final

from agentctl.records.starters import Starter, StarterTool
from agentctl.sandbox.starting.literals import WIDTH, literal
from agentctl.sandbox.starting.signatures import Signature, signature_of

_RESERVED: Final = frozenset({"registry", "Any", "Annotated", "Field", "Literal", "StructuredTool", "ToolRegistry"})
_CHECK: Final = '# Check the effect: it is "write" until known, "read" if nothing outside changes.'


def source_of(starter: Starter) -> str:
    """Returns the module: a `registry` with every tool of the starter, typed and formatted."""
    names = _function_names(starter)
    signatures = [signature_of(tool.schema) for tool in starter.tools]
    parts = [_head(starter), _imports(signatures, starter), "registry = ToolRegistry()"]
    for name, tool, signature in zip(names, starter.tools, signatures, strict=True):
        parts.append("\n" + "\n".join(_tool(name, tool, signature)))
    return "\n\n".join(parts) + "\n"


def _head(starter: Starter) -> str:
    return (
        '"""Sandbox tools, a start: each answers with what a thread recorded.\n\n'
        "Check every effect, and every answer: examples hold what the threads held, without\n"
        f'secrets of known names and shapes. Then: agentctl sandbox check{_named(starter)}\n"""'
    )


def _named(starter: Starter) -> str:
    return f" {starter.workflow}" if re.fullmatch(r"[\w.-]+", starter.workflow) else ""


def _in_comment(text: str) -> str:
    """Returns a text that cannot end the comment it is in, whatever a stored row put into it."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _imports(signatures: list[Signature | None], starter: Starter) -> str:
    needed = {name for signature in signatures if signature is not None for name in signature.names}
    needed |= {"Any"} if None in signatures or any(_returns(tool).endswith("Any]") for tool in starter.tools) else set()
    typing = sorted(needed - {"Field"})
    lines = ["from __future__ import annotations", ""]
    if typing:
        lines += [f"from typing import {', '.join(typing)}", ""]
    lines.append("from agentctl.sandbox.registry import ToolRegistry")
    lines.append("from langchain_core.tools import StructuredTool")
    if "Field" in needed:
        lines.append("from pydantic import Field")
    return "\n".join(lines)


def _function_names(starter: Starter) -> list[str]:
    """Returns a free identifier for each tool."""
    taken = set(_RESERVED)
    names: list[str] = []
    for tool in starter.tools:
        name = re.sub(r"\W", "_", tool.name, flags=re.ASCII) or "tool"
        name = f"tool_{name}" if not name.isidentifier() or keyword.iskeyword(name) else name
        while name in taken:
            name += "_"
        taken |= {name, _schema_name(name)}
        names.append(name)
    return names


def _schema_name(name: str) -> str:
    return f"{name.upper()}_ARGUMENTS"


def _tool(name: str, tool: StarterTool, signature: Signature | None) -> Iterator[str]:
    """Yields the lines of one tool: its schema where a signature cannot say it, its stub, its registration."""
    if signature is None:
        head = f"{_schema_name(name)}: dict[str, Any] = "
        yield head + literal(dict(tool.schema), used=len(head))
        yield "\n"
    yield from _signature(name, _returns(tool), ("**arguments: Any",) if signature is None else signature.parameters)
    yield f'    """Answers in place of {name}."""'
    yield from _body(tool)
    yield "\n"
    for note in tool.notes:
        yield from textwrap.wrap(_in_comment(note), WIDTH, initial_indent="# ", subsequent_indent="# ")
    yield _CHECK
    yield from _registration(name, tool, has_schema=signature is None)


def _signature(name: str, returned: str, parameters: tuple[str, ...]) -> Iterator[str]:
    flat = f"def {name}({', '.join(parameters)}) -> {returned}:"
    if len(flat) <= WIDTH:
        yield flat
        return
    yield f"def {name}("
    last = "" if any(each.startswith("**") for each in parameters) and len(parameters) == 1 else ","
    yield from (f"    {each}{last}" for each in parameters)
    yield f") -> {returned}:"


def _body(tool: StarterTool) -> Iterator[str]:
    if tool.answers_with == "nothing":
        said = f"{tool.name} has no stub: return what it would answer"
        yield "    raise NotImplementedError(" + literal(said, "    ", used=len("raise NotImplementedError()")) + ")"
    else:
        yield "    return " + literal(tool.example, "    ", used=len("return "))


def _returns(tool: StarterTool) -> str:
    if tool.answers_with == "nothing":
        return "object"
    kinds = {str: "str", dict: "dict[str, Any]", list: "list[Any]"}
    return next((text for kind, text in kinds.items() if isinstance(tool.example, kind)), "object")


def _registration(name: str, tool: StarterTool, *, has_schema: bool) -> Iterator[str]:
    inner, outer = " " * 8, " " * 4
    yield "registry.register("
    yield f"{outer}StructuredTool.from_function("
    yield f"{inner}{name},"
    yield f"{inner}name={literal(tool.name, inner, used=len('name=,'))},"
    yield f"{inner}description={literal(tool.description, inner, used=len('description=,'))},"
    if has_schema:
        yield f"{inner}args_schema={_schema_name(name)},"
    yield f"{outer}),"
    yield f'{outer}effect="{tool.effect}",'
    if tool.answers_with == "nothing":
        yield f"{outer}answers=False,"
    yield ")"
