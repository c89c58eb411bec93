"""Paths into values, as `--patch` and `--set` take them: `status`, `items[0].price`, `by_day["2026-01-01"]`."""

from __future__ import annotations

import re

from agentctl.errors import RevisionSyntaxError

Path = tuple[str | int, ...]

_STEP = re.compile(r"\.?(?P<name>[^.\[\]=]+)|\[(?P<index>-?\d+)\]|\[\"(?P<quoted>(?:[^\"\\]|\\.)*)\"\]")


def parse_path(text: str) -> Path:
    """Parses a dotted path; `[i]` counts from 0 or, negative, from the end; `["a.b"]` is a key with any character.

    Raises:
        RevisionSyntaxError: it is empty or cannot be read; the span is what could not.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (at == 0 and text.startswith(".")):
            raise RevisionSyntaxError(f"not a path: {text}", text=text, span=(at, len(text)), hint=_HINT)
        if (name := match["name"]) is not None:
            if at > 0 and not text[at] == ".":
                raise RevisionSyntaxError(f"not a path: {text}", text=text, span=(at, len(text)), hint=_HINT)
            steps.append(name.strip())
        elif (index := match["index"]) is not None:
            steps.append(int(index))
        else:
            steps.append(re.sub(r"\\(.)", r"\1", match["quoted"]))
        at = match.end()
    if not steps:
        raise RevisionSyntaxError("the path is empty", text=text, span=(0, len(text)), hint=_HINT)
    return tuple(steps)


def path_text(path: Path) -> str:
    """Returns the text that `parse_path` reads as this path."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not step or re.search(r"[.\[\]=:\"\\]", step) or step != step.strip():
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{escaped}"]'
        else:
            text += f".{step}" if text else step
    return text


_HINT = 'like status, items[0].price or by_day["2026-01-01"]'
