"""What a starter registry holds, and what agentctl.yaml needs for it, for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import yaml

from agentctl.records.starters import Starter
from agentctl.render.clean import clean
from agentctl.render.grid import Cell, Column, grid
from agentctl.render.machine import document
from agentctl.render.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS = (Column("tool", style="cyan"), Column("effect", style="dim"), Column("answers with", shrink_to=16))


def config_lines(starter: Starter, sandbox: str) -> tuple[str, ...]:
    """Returns the lines of agentctl.yaml that make the registry the sandbox of a workflow."""
    entry = {"graph": starter.graph, "sandbox": sandbox}
    text = yaml.safe_dump({"workflows": {starter.workflow: entry}}, sort_keys=False, allow_unicode=True, width=1000)
    return tuple(text.splitlines())


def human(starter: Starter, file: str, lines: Sequence[str], width: int) -> Iterable[RenderableType]:
    """Yields one line a tool, what was left out, the file, and the lines to add to agentctl.yaml."""
    yield from grid(_COLUMNS, [(tool.name, tool.effect, _answer(tool.answers_with)) for tool in starter.tools], width)
    yield ""
    if starter.left_out:
        yield f"left out, they need no stub: {clean(', '.join(starter.left_out))}"
    yield f"{count(len(starter.tools), 'tool')} in {clean(file)}, {count(len(starter.threads), 'thread')} read"
    yield ""
    yield "add to agentctl.yaml:"
    yield from map(clean, lines)


def _answer(answers_with: str) -> Cell | str:
    words = {"recorded": "a recorded result", "shortened": "a recorded result, shortened"}
    return words.get(answers_with) or Cell("nothing: write its stub", "red")


def plain(starter: Starter, file: str) -> Iterator[Sequence[str | None]]:
    """Yields file, tool, effect, what it answers with; a row a tool."""
    yield from ((file, tool.name, tool.effect, tool.answers_with) for tool in starter.tools)


def as_document(starter: Starter, file: str, lines: Sequence[str]) -> dict[str, object]:
    """Returns the JSON document `agentctl.sandbox.init/1`."""
    return document(
        "sandbox.init",
        {
            "file": file,
            "graph": starter.graph,
            "workflow": starter.workflow,
            "tools": [
                {"name": tool.name, "effect": tool.effect, "answers_with": tool.answers_with, "notes": list(tool.notes)}
                for tool in starter.tools
            ],
            "left_out": list(starter.left_out),
            "threads": list(starter.threads),
            "config": "\n".join(lines),
        },
    )
