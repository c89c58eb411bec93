"""Whether two registries are the same to a model and to a graph, and whether the sandbox can stand for production."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from agentctl.records.parity import Finding, ToolParity
from agentctl.sandbox.registry import RegisteredTool, ToolRegistry

_SHOWN_PATHS = 3
_NOTHING = "nothing"


def compare_registries(
    production: ToolRegistry, sandbox: ToolRegistry, called: Collection[str] = ()
) -> tuple[ToolParity, ...]:
    """Returns every tool of two registries and what is not the same; nothing is called.

    The same are: names, argument schemas, descriptions and effects. Every tool of effect `write` must have a stub that
    answers in the sandbox, or a replay that reaches it cannot go on. Every tool that the graph can call must be in the
    registries, or nothing says what it does.

    Args:
        production: The tools of real runs.
        sandbox: The tools of experiments.
        called: Names of tools that the graph can call, framework tools that touch graph state alone left out.
    """
    theirs = {entry.name: entry for entry in production}
    ours = {entry.name: entry for entry in sandbox}
    tools = [
        _compare(name, theirs.get(name), ours.get(name), theirs, ours) for name in (*theirs, *_not_in(ours, theirs))
    ]
    unregistered = [name for name in dict.fromkeys(called) if name not in theirs and name not in ours]
    return (*tools, *(_unregistered(name) for name in unregistered))


def _not_in(names: Mapping[str, object], others: Mapping[str, object]) -> list[str]:
    return [name for name in names if name not in others]


def _compare(
    name: str,
    theirs: RegisteredTool | None,
    ours: RegisteredTool | None,
    production: Mapping[str, RegisteredTool],
    sandbox: Mapping[str, RegisteredTool],
) -> ToolParity:
    if ours is None:
        findings: Sequence[Finding] = [_missing(name, _not_in(sandbox, production))]
    elif theirs is None:
        findings = [_unknown(name, _not_in(production, sandbox))]
    else:
        findings = list(_differences(theirs, ours))
    return ToolParity(
        name=name,
        production=theirs.effect if theirs else None,
        sandbox=ours.effect if ours else None,
        answers=ours is not None and ours.answers,
        findings=tuple(findings),
    )


def _missing(name: str, others: Sequence[str]) -> Finding:
    near = difflib.get_close_matches(name, others, n=1)
    fix = f"rename the sandbox's {near[0]} to {name}" if near else f"register {name} in the sandbox registry"
    return Finding("missing", "the sandbox lacks it", fix)


def _unknown(name: str, others: Sequence[str]) -> Finding:
    near = difflib.get_close_matches(name, others, n=1)
    fix = f"production calls it {near[0]}" if near else f"take {name} out of the sandbox, or register it in production"
    return Finding("unknown", "production has no tool of that name", fix)


def _unregistered(name: str) -> ToolParity:
    finding = Finding(
        "unregistered",
        "the graph can call it and no registry holds it: it counts as a write",
        f"register {name} in both registries, with its effect",
    )
    return ToolParity(name, None, None, False, (finding,))


def _differences(theirs: RegisteredTool, ours: RegisteredTool) -> Iterator[Finding]:
    if theirs.effect != ours.effect:
        yield Finding(
            "effect",
            f"{theirs.effect} in production, {ours.effect} in the sandbox",
            "say in the sandbox what production does: a wrong effect lets a call run, or blocks it",
        )
    paths = list(_changed(_arguments(theirs), _arguments(ours)))
    if paths:
        more = f", and {len(paths) - _SHOWN_PATHS} more" if len(paths) > _SHOWN_PATHS else ""
        yield Finding(
            "schema",
            f"other arguments: {', '.join(paths[:_SHOWN_PATHS])}{more}",
            "build both from one args_schema",
        )
    if theirs.tool.description != ours.tool.description:
        yield Finding(
            "description",
            "another description, and the model decides by it",
            "give both one description",
        )
    if "write" in (theirs.effect, ours.effect) and not ours.answers:
        yield Finding(
            "no_stub",
            "a write without a stub: a replay that reaches it is blocked",
            "answer it in the sandbox, and leave `answers=False` out",
        )


def _arguments(entry: RegisteredTool) -> object:
    """Returns the schema of the arguments with its references resolved, and without names that a model never reads."""
    schema = entry.schema
    definitions = schema.get("$defs")
    body = {key: value for key, value in schema.items() if key not in ("$defs", "description")}
    return _resolved(body, definitions if isinstance(definitions, Mapping) else {}, ())


def _resolved(value: object, definitions: Mapping[str, object], inside: tuple[str, ...]) -> object:
    """Returns a part of a schema with each `$ref` replaced by what it names; a recursive one stays as it is."""
    if isinstance(value, list):
        return [_resolved(each, definitions, inside) for each in value]
    if not isinstance(value, Mapping):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in definitions and name not in inside:
            rest = {key: each for key, each in value.items() if key != "$ref"}
            target = definitions[name]
            merged = {**target, **rest} if isinstance(target, Mapping) else target
            return _resolved(merged, definitions, (*inside, name))
        return {"$ref": str(inside.index(name)) if name in inside else name}
    return {
        key: _resolved(each, definitions, inside)
        for key, each in value.items()
        if key != "title" or not isinstance(each, str)
    }


def _changed(left: object, right: object, path: str = "") -> Iterator[str]:
    """Yields each smallest path at which two schemas differ, with both sides."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in dict.fromkeys((*left, *right)):
            inner = path if key == "properties" and not path else f"{path}.{key}" if path else str(key)
            yield from _changed(left.get(key, _NOTHING), right.get(key, _NOTHING), inner)
    elif left != right:
        yield f"{path} ({_said(left)} in production, {_said(right)} in the sandbox)"


def _said(value: object) -> str:
    if value == _NOTHING:
        return _NOTHING
    if isinstance(value, Mapping):
        return str(value.get("type", "a schema"))
    return json.dumps(value, ensure_ascii=False)
