"""An application loaded: its graph, built on the tools that it is to have, and the effects of these."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentctl.errors import UsageError
from agentctl.experiments.settings import GraphSource, Settings
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.providers import unused_keys
from agentctl.sandbox.registry import ToolRegistry

if TYPE_CHECKING:
    from langgraph.pregel import Pregel


@dataclass(frozen=True, slots=True)
class Application:
    """A compiled graph with its registries. `live` is the one whose reads may really run, or None."""

    graph: Pregel[Any, Any, Any, Any]
    registry: ToolRegistry | None
    live: ToolRegistry | None
    effects: Effects


@contextmanager
def loaded_application(
    source: GraphSource,
    settings: Settings,
    *,
    tools: str | None,
    live: str | None = None,
    recorded: bool = False,
    configurable: Mapping[str, object],
    env: Mapping[str, str],
) -> Iterator[Application]:
    """Gives an application, its code on the import path and its variables set for the time of the block.

    Args:
        source: Where its code is.
        settings: What a person chose.
        tools: The registry that the graph is built on, or None.
        live: The registry that live reads run, or None.
        recorded: Whether recorded answers may stand for its models.
        configurable: Configuration, for a graph that is a function of it.
        env: Environment variables for the graph.

    Raises:
        UsageError: a context is missing, a model is given to a graph that takes none, or recorded answers are asked
            for where nothing is recorded.
        NotFound: no such file or attribute.
        GraphFailed: importing or building it raised.
    """
    from agentctl.sandbox.environment import environment, import_path
    from agentctl.sandbox.loading import load_graph, require_context
    from agentctl.sandbox.registries import load_registry
    from agentctl.sandbox.specs import parse_spec

    if source.runs_no_model and not recorded:
        raise UsageError(
            "--model recorded answers what a thread asked already: a run that goes on asks something new",
            hint="replay, fork or diagnose a thread with it; or name a model: --model PROVIDER:NAME",
        )
    with ExitStack() as stack:
        env = {**(unused_keys(os.environ) if source.runs_no_model else {}), **env}
        stack.enter_context(environment(env))
        stack.enter_context(import_path(parse_spec(source.graph, cwd=settings.cwd).paths))
        registry = load_registry(tools, cwd=settings.cwd) if tools else None
        reads = load_registry(live, cwd=settings.cwd) if live else None
        config = {"configurable": dict(configurable)}
        loaded = stack.enter_context(
            load_graph(source.graph, registry=registry, model=_model(source), config=config, env=env, cwd=settings.cwd)
        )
        require_context(loaded.graph, settings.context)
        if source.model is not None and not source.runs_no_model and loaded.kind != "build_graph":
            raise UsageError(f"--model needs a graph that takes its model: {source.name} does not")
        registries = tuple(known for known in (registry, reads) if known is not None)
        yield Application(loaded.graph, registry, reads, Effects(settings.effects, registries))


def _model(source: GraphSource) -> object:
    """Returns what a graph that takes its model is given: a name, or what stands for a model that never runs."""
    if not source.runs_no_model:
        return source.model
    from agentctl.sandbox.models.stand_in import RecordedModel

    return RecordedModel()
