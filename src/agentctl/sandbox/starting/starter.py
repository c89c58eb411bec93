"""What goes into a starter registry: the tools of a graph, each with an example from the recordings of its threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from agentctl.errors import UsageError
from agentctl.records.starters import Starter, StarterTool
from agentctl.sandbox.effects import needs_registry
from agentctl.sandbox.recordings import Recorded, Recording
from agentctl.sandbox.registry import RegisteredTool
from agentctl.sandbox.starting.examples import example_entry, example_of
from agentctl.sandbox.walk import Found

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

_JSON_TYPES: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"))

_HANDOFF: Final = (
    "It led the parent graph on, which no stub can do. Where it does nothing else, say",
    'effect="state": then the graph\'s own tool runs.',
)


def starter_of(
    found: Found, recordings: Mapping[str, Recording], *, graph: str, workflow: str, spec: str = ""
) -> Starter:
    """Returns the starter registry of a graph.

    Args:
        found: What a walk over the graph met.
        recordings: What its threads recorded, by thread.
        graph: Where the graph is, as agentctl.yaml would have it.
        workflow: Name for the workflow.
        spec: How the user named the graph, for messages.

    Raises:
        UsageError: neither the graph nor the threads have a tool that a registry could answer for.
    """
    recording = Recording(tuple(entry for each in recordings.values() for entry in each.entries))
    by_name = found.tools_by_name()
    tools = {name: tool for name, tool in by_name.items() if needs_registry(tool)}
    left_out = tuple(name for name in by_name if name not in tools)
    unseen = sorted(recording.names - by_name.keys())
    if not tools and not unseen:
        known = f": {', '.join(left_out)} touch graph state alone" if left_out else ""
        raise UsageError(
            f"{spec or graph} has no tools that a registry could answer for{known}",
            hint="tools that a node builds while it runs are seen in its threads: --store URL THREAD",
        )
    return Starter(
        graph=graph,
        workflow=workflow,
        tools=(
            *(_of_graph(tool, recording) for tool in tools.values()),
            *(_of_threads(name, recording) for name in unseen),
        ),
        left_out=left_out,
        threads=tuple(recordings),
        is_complete=found.complete,
    )


def _of_graph(tool: BaseTool, recording: Recording) -> StarterTool:
    return _with_example(tool.name, tool.description, RegisteredTool(tool, "write").schema, recording, ())


def _of_threads(name: str, recording: Recording) -> StarterTool:
    """Returns a tool that the graph builds while it runs: its arguments are those of its recorded calls."""
    calls = [entry.args for entry in recording.entries if entry.name == name and isinstance(entry.args, Mapping)]
    note = "The graph builds this tool while it runs: its arguments are those of recorded calls."
    return _with_example(name, f"{name}, as threads called it.", _schema_of(calls), recording, (note,))


def _with_example(
    name: str, description: str, schema: Mapping[str, object], recording: Recording, notes: tuple[str, ...]
) -> StarterTool:
    entry = example_entry(recording, name)
    if entry is None:
        return StarterTool(name, description, schema, "write", "nothing", None, notes)
    if entry.kind == "handoff":
        return StarterTool(name, description, schema, "write", "nothing", None, (*notes, *_HANDOFF))
    value, how = example_of(entry.content)
    return StarterTool(name, description, schema, "write", how, value, (*notes, *_left_out(entry)))


def _left_out(entry: Recorded) -> Iterator[str]:
    """Yields what a recorded call gave beside the content of its message."""
    if entry.kind != "message":
        channels = ", ".join(dict.fromkeys(channel for channel, _ in entry.writes if channel != "messages"))
        wrote = f" that wrote {channels}" if channels else ""
        yield f"The recorded call gave a Command{wrote}: this answers with its message alone."
    if entry.artifact is not None:
        yield "The recorded message had an artifact: this answers without one."
    if entry.status == "error":
        yield "The recorded result is an error."


def _schema_of(calls: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Returns a schema that recorded arguments fit: a property each, required where all calls had it."""
    names = list(dict.fromkeys(str(name) for args in calls for name in args))
    required = [name for name in names if all(name in args for args in calls)]
    properties = {
        name: _property([args[name] for args in calls if name in args], name in required)
        for name in (*required, *(name for name in names if name not in required))
    }
    return {"type": "object", "properties": properties, "required": required}


def _property(values: Iterable[object], is_required: bool) -> dict[str, object]:
    kinds = {next((kind for known, kind in _JSON_TYPES if isinstance(value, known)), "") for value in values}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if kind == "array":
        schema: dict[str, object] = {"type": "array", "items": {}}
    elif kind and is_required:
        schema = {"type": kind}
    else:
        schema = {}
    return schema if is_required else {"default": None}
