"""Workflows and graphs: which code made a thread, found from its metadata."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentctl.config.origins import DEFAULT, Origin
from agentctl.config.places import locate_code, locate_path
from agentctl.config.yamlfile import Section
from agentctl.errors import ConfigError, UsageError

_KEYS = frozenset({"graph", "sandbox", "production", "model", "incidents", "renderer", "checks", "claims"})
_YAML = (".yaml", ".yml")
_METADATA_KEYS = ("workflow", "graph_id", "assistant_id")


@dataclass(frozen=True, slots=True)
class Workflow:
    """An application that agentctl knows: its graph and what experiments on it use.

    Attributes:
        name: Key in the file.
        graph: `path.py:attr` (absolute) or `package.module:attr`.
        sandbox: Where the sandbox tool registry is, or None.
        production: Where the production tool registry is, or None.
        model: `provider:model` for `init_chat_model`, or None for the graph's own.
        incidents: Folder of incidents, or None.
        claims: Where the function is by which it claims an answer, or None.
        renderer: YAML file that says how its state is shown (`config.views`), or None.
        checks: Check files (absolute) and inline checks, in order.
        origin: The place in the file.
    """

    name: str
    graph: str
    sandbox: str | None = None
    production: str | None = None
    model: str | None = None
    incidents: Path | None = None
    claims: str | None = None
    renderer: Path | None = None
    checks: tuple[str, ...] = ()
    origin: Origin = DEFAULT


@dataclass(frozen=True, slots=True)
class GraphChoice:
    """Which graph to load for a thread, and why. `workflow` is None for a graph that only langgraph.json names."""

    name: str
    graph: str
    workflow: Workflow | None
    origin: Origin


def read_workflows(section: Section) -> dict[str, Workflow]:
    """Returns the workflows of `workflows:`, paths resolved against the file's folder.

    Raises:
        ConfigError: an unknown key, a bad value, or no graph.
    """
    return {name: _workflow(name, entry) for name, entry in section.sections().items()}


def _workflow(name: str, section: Section) -> Workflow:
    section.only(_KEYS)
    folder = section.file.parent
    graph = section.text("graph")
    if graph is None:
        raise ConfigError(f"{section.where()}: workflow {name} has no graph", hint="graph: path.py:attr")
    codes = {
        key: locate_code(text, folder) if (text := section.text(key)) else None
        for key in ("sandbox", "production", "claims")
    }
    incidents = section.text("incidents")
    return Workflow(
        name,
        _code(section, "graph", graph),
        sandbox=codes["sandbox"],
        production=codes["production"],
        claims=codes["claims"],
        renderer=_view_file(section),
        model=section.text("model"),
        incidents=locate_path(incidents, folder) if incidents else None,
        checks=tuple(_check(text, folder) for text in section.texts("checks")),
        origin=section.origin("graph"),
    )


def _code(section: Section, key: str, text: str) -> str:
    if ":" not in text:
        raise section.error(key, f"must be path.py:attr or package.module:attr, not {text}")
    return locate_code(text, section.file.parent)


def _view_file(section: Section) -> Path | None:
    text = section.text("renderer")
    if text is not None and not text.endswith(_YAML):
        raise section.error("renderer", f"must be a YAML file, not {text}", hint="a view has no code")
    return locate_path(text, section.file.parent) if text else None


def _check(text: str, folder: Path) -> str:
    return str(locate_path(text, folder)) if text.endswith(_YAML) else text


def read_langgraph_json(file: Path) -> dict[str, str]:
    """Returns the graphs that langgraph.json names, by name, as `path.py:attr` (absolute) or `package.module:attr`.

    Raises:
        ConfigError: unreadable, no JSON, or `graphs` of another shape.

    Source: langgraph-cli 0.4.40, schemas.py (a graph is a text or `{"path": text}`).
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as exc:
        raise ConfigError(f"{file} cannot be read: {exc}") from exc
    graphs = data.get("graphs", {}) if isinstance(data, dict) else None
    if not isinstance(graphs, dict):
        raise ConfigError(f"{file}: graphs must be a mapping of names to path.py:attr")
    found: dict[str, str] = {}
    for name, entry in graphs.items():
        spec = entry.get("path") if isinstance(entry, dict) else entry
        if not isinstance(spec, str) or ":" not in spec:
            raise ConfigError(f"{file}: graph {name} must be path.py:attr", hint='such as "./agent.py:graph"')
        found[name] = locate_code(spec, file.parent)
    return found


def find_workflow(workflows: Mapping[str, Workflow], wanted: str | Mapping[str, object]) -> Workflow | None:
    """Returns a workflow by name, or the one that a thread's metadata names, or None where it names none of them.

    Raises:
        UsageError: no workflow has that name; near ones are in the hint.
    """
    if not isinstance(wanted, str):
        return next((workflows[name] for name in _named(wanted) if name in workflows), None)
    if wanted not in workflows:
        near = difflib.get_close_matches(wanted, list(workflows), n=1)
        known = f"workflows are: {', '.join(workflows)}" if workflows else "agentctl.yaml lists no workflows"
        raise UsageError(f"there is no workflow {wanted}", hint=f"did you mean {near[0]}?" if near else known)
    return workflows[wanted]


def named_graph(
    workflows: Mapping[str, Workflow], graphs: Mapping[str, str], graphs_file: Path | None, name: str
) -> GraphChoice:
    """Returns the graph that is configured under a name.

    Raises:
        UsageError: none is; the hint lists those that are, and the other forms of `--graph`.
    """
    choices, aliases = _choices(workflows, graphs, graphs_file)
    if choice := choices.get(name) or choices.get(aliases.get(name, "")):
        return choice
    known = f"configured are: {', '.join(choices)}" if choices else "none is configured"
    raise UsageError(f"no graph is configured as {name}", hint=f"--graph path.py:attr or package.module:attr; {known}")


def _choices(
    workflows: Mapping[str, Workflow], graphs: Mapping[str, str], graphs_file: Path | None
) -> tuple[dict[str, GraphChoice], dict[str, str]]:
    """Returns the configured graphs by name, and the names by which langgraph.json has a workflow's graph too."""
    choices = {name: GraphChoice(name, flow.graph, flow, flow.origin) for name, flow in workflows.items()}
    taken = {flow.graph for flow in workflows.values()}
    for name, graph in graphs.items():
        if name not in choices and graph not in taken:
            choices[name] = GraphChoice(name, graph, None, Origin("file", str(graphs_file)))
    aliases = {name: flow.name for name, graph in graphs.items() for flow in workflows.values() if flow.graph == graph}
    return choices, aliases


def choose_graph(
    workflows: Mapping[str, Workflow],
    graphs: Mapping[str, str],
    graphs_file: Path | None,
    metadata: Mapping[str, object],
) -> GraphChoice:
    """Returns the graph that made a thread: named by its metadata, else the only one configured.

    Args:
        workflows: Of agentctl.yaml.
        graphs: Of langgraph.json.
        graphs_file: The langgraph.json they are from.
        metadata: Checkpoint metadata; `workflow`, `graph_id` and `assistant_id` are looked at.

    Raises:
        UsageError: none fits, or several could; the hint names `--graph`.
    """
    choices, aliases = _choices(workflows, graphs, graphs_file)
    named = _named(metadata)
    for name in named:
        if choice := choices.get(name) or choices.get(aliases.get(name, "")):
            return choice
    listed = ", ".join(choices)
    says = next((str(metadata[key]) for key in ("workflow", "graph_id") if metadata.get(key)), None)
    if says is not None:
        known = f"configured are: {listed}" if choices else "none is configured"
        raise UsageError(
            f"the thread was made by {says}, which is not configured", hint=f"--graph path.py:attr; {known}"
        )
    if len(choices) == 1:
        return next(iter(choices.values()))
    if choices:
        raise UsageError(
            "the thread does not say which graph made it",
            hint=f"--graph NAME or path.py:attr; configured are: {listed}",
        )
    raise UsageError("no graph is configured", hint="--graph path.py:attr, or a langgraph.json in the project folder")


def _named(metadata: Mapping[str, object]) -> list[str]:
    return [value for key in _METADATA_KEYS if isinstance(value := metadata.get(key), str)]
