"""From a configured application to a workflow that can run: which tools its graph is built on, and what it may do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from agentctl.errors import UsageError
from agentctl.experiments.application import loaded_application
from agentctl.experiments.settings import GraphSource, Settings
from agentctl.experiments.workflows.claims import load_claim
from agentctl.experiments.workflows.runs import ENVIRONMENT, PRODUCTION, Tools, Workflow, WorkflowStore, check_allowed
from agentctl.records.rows import MemoryItem
from agentctl.sandbox.answers import Policy


@contextmanager
def workflow_on(
    store: WorkflowStore,
    graph: GraphSource,
    settings: Settings,
    tools: Tools,
    *,
    recorded: Mapping[str, object] | None = None,
    memory: Sequence[MemoryItem] = (),
    env: Mapping[str, str] | None = None,
) -> Iterator[Workflow]:
    """Gives a workflow whose graph is loaded for the time of the block; what is not allowed is refused before that.

    Args:
        store: Where it runs.
        graph: The application. Its metadata name goes into every row that the run writes, so that experiments on the
            thread find it again.
        settings: What a person chose.
        tools: `sandbox`: its sandbox registry, stubs given by hand before it. `production`: its production registry,
            called for real.
        recorded: Configuration that the thread recorded, for a graph that is a function of it.
        memory: Items of the memory store that a sandboxed run sees a copy of.
        env: The environment that says whether this is production; the process's own by default.

    Raises:
        Refused: it may not run there.
        UsageError: the application has no such tools, or a context is missing.
        GraphFailed: importing or building it raised.
    """
    check_allowed(store, tools, env)
    real = tools == PRODUCTION
    if real and (settings.stubs or settings.effects):
        raise UsageError("--stub and --effect are for sandbox tools", hint="leave --tools production out")
    with loaded_application(
        graph,
        settings,
        tools=graph.production if real else graph.sandbox,
        configurable={**(recorded or {}), **settings.configurable},
        env={**settings.env, ENVIRONMENT: PRODUCTION} if real else settings.env,
    ) as app:
        yield Workflow(
            graph=app.graph,
            store=store,
            tools=tools,
            policy=Policy(mode="sandbox", stubs=settings.stubs, registry=app.registry, effects=app.effects),
            limits=settings.limits,
            configurable=settings.configurable,
            metadata={"workflow": graph.name},
            context=settings.context,
            memory=tuple(memory),
            answers=settings.answers,
            name=graph.name,
            claim=load_claim(graph.claims, cwd=settings.cwd) if real and graph.claims else None,
        )
