"""Changing one field of a recorded result and nothing else of its text.

A tool result is text that is JSON, or a list of content blocks whose text is. The value is replaced in place, so
spacing, key order and number forms of all the rest stay as the tool wrote them: the smallest experiment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from agentctl.codec import jsontext
from agentctl.errors import Ambiguous, UsageError
from agentctl.experiments.forking.paths import Path, path_text

_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder()


def patch_content(content: object, path: Path, value: object, *, name: str) -> tuple[object, object]:
    """Returns the content with the value at `path` replaced, and the old value.

    Args:
        content: Text, or a list of content blocks.
        path: Where. In blocks a first `[i]` chooses the block; without it the one block that has the path is taken.
        value: The new JSON value.
        name: The tool's name, for messages.

    Raises:
        UsageError: the content is not JSON, or has no such field.
        Ambiguous: several blocks have the field.
    """
    if isinstance(content, str):
        return patch_text(content, path, value, name=name)
    if isinstance(content, Sequence):
        return _patch_blocks(content, path, value, name=name)
    raise UsageError(f"the recorded result of {name} is neither text nor blocks", hint=_whole(name))


def patch_text(text: str, path: Path, value: object, *, name: str) -> tuple[str, object]:
    """Returns JSON text with the value at `path` replaced, and the old value; see `patch_content`."""
    try:
        jsontext.parse(text)
    except ValueError as error:
        raise UsageError(
            f"the recorded result of {name} is not JSON, so it has no fields", hint=_whole(name)
        ) from error
    start, end = _span(text, path, name=name)
    old = jsontext.parse(text[start:end])
    return text[:start] + _in_style(value, text) + text[end:], old


def compact(value: object) -> str:
    """Returns a given answer as content: text as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _patch_blocks(blocks: Sequence[object], path: Path, value: object, *, name: str) -> tuple[object, object]:
    if isinstance(path[0], int):
        if not -len(blocks) <= path[0] < len(blocks):
            raise UsageError(f"the recorded result of {name} has {len(blocks)} blocks, not [{path[0]}]")
        chosen = path[0] % len(blocks)
        rest = path[1:]
    else:
        having = [index for index, block in enumerate(blocks) if _has(block, path, name)]
        if len(having) != 1:
            where = f"{len(having)} blocks" if having else "no block"
            kind = Ambiguous if having else UsageError
            raise kind(
                f"{where} of the recorded result of {name} has {path_text(path)}",
                hint=f"choose one of {len(blocks)} blocks, as in {name}:[0].{path_text(path)}=...",
            )
        chosen, rest = having[0], path
    changed, old = _patch_block(blocks[chosen], rest, value, name=name)
    return [changed if index == chosen else block for index, block in enumerate(blocks)], old


def _has(block: object, path: Path, name: str) -> bool:
    try:
        _patch_block(block, path, None, name=name)
    except UsageError:
        return False
    return True


def _patch_block(block: object, path: Path, value: object, *, name: str) -> tuple[object, object]:
    if isinstance(block, str):
        return patch_text(block, path, value, name=name)
    if not isinstance(block, Mapping):
        raise UsageError(f"a block of the recorded result of {name} is neither text nor an object")
    if path and path[0] in block:
        if len(path) == 1:
            return {**block, str(path[0]): value}, block[str(path[0])]
        inner, old = _patch_tree(block[str(path[0])], path[1:], value, name=name)
        return {**block, str(path[0]): inner}, old
    text = block.get("text")
    if not isinstance(text, str) or not path:
        raise UsageError(f"a block of the recorded result of {name} has no {path_text(path) or 'field to change'}")
    patched, old = patch_text(text, path, value, name=name)
    return {**block, "text": patched}, old


def _patch_tree(tree: object, path: Path, value: object, *, name: str) -> tuple[object, object]:
    """Replaces inside an already decoded block field."""
    if isinstance(tree, str):
        return patch_text(tree, path, value, name=name)
    text, old = patch_text(json.dumps(tree), path, value, name=name)
    return jsontext.parse(text), old


def _span(text: str, path: Path, *, name: str) -> tuple[int, int]:
    """Returns the half-open range of the value at `path` in JSON text."""
    start = _skip(text, 0)
    for depth, step in enumerate(path):
        spans = _children(text, start)
        match step, spans:
            case int(), list() if -len(spans) <= step < len(spans):
                start = spans[step]
            case str(), dict() if step in spans:
                start = spans[step]
            case _:
                missing = path_text(path[: depth + 1])
                raise UsageError(f"the recorded result of {name} has no {missing}", hint=_known(spans, path[:depth]))
    return start, _DECODER.raw_decode(text, start)[1]


def _children(text: str, at: int) -> dict[str, int] | list[int] | None:
    """Returns where the values of an object or array start; None for a scalar. The last of equal keys counts."""
    if text[at] not in "{[":
        return None
    is_object = text[at] == "{"
    keys: dict[str, int] = {}
    items: list[int] = []
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
            keys[key] = at
        else:
            items.append(at)
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)
    return keys if is_object else items


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _in_style(value: object, text: str) -> str:
    """Returns the value as JSON, spaced and escaped as the text around it is."""
    spaced = ": " in text or ", " in text
    escaped = text.isascii() and "\\u" in text
    return json.dumps(value, ensure_ascii=escaped, separators=None if spaced else (",", ":"))


def _known(spans: dict[str, int] | list[int] | None, above: Path) -> str:
    where = path_text(above) or "it"
    if isinstance(spans, dict):
        return f"{where} has: {', '.join(spans) or 'nothing'}"
    if isinstance(spans, list):
        return f"{where} is a list of {len(spans)}"
    return f"{where} is a single value"


def _whole(name: str) -> str:
    return f"give the whole result: --answer {name}=JSON, or {name}=@FILE"
