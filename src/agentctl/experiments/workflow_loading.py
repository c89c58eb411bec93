"""From a configured application to a workflow that can run: which tools its graph is built on, and what it may do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from agentctl.errors import UsageError
from agentctl.experiments.prepare import GraphSource, Settings
from agentctl.experiments.workflow_runs import ENVIRONMENT, PRODUCTION, Tools, Workflow, WorkflowStore, check_allowed
from agentctl.records.rows import MemoryItem
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects


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
    from agentctl.sandbox.environment import environment, import_path
    from agentctl.sandbox.loading import load_graph, require_context
    from agentctl.sandbox.registries import load_registry
    from agentctl.sandbox.specs import parse_spec

    check_allowed(store, tools, env)
    real = tools == PRODUCTION
    if real and (settings.stubs or settings.effects):
        raise UsageError("--stub and --effect are for sandbox tools", hint="leave --tools production out")
    around = {**settings.env, ENVIRONMENT: PRODUCTION} if real else dict(settings.env)
    where = graph.production if real else graph.sandbox
    with ExitStack() as stack:
        stack.enter_context(environment(around))
        stack.enter_context(import_path(parse_spec(graph.graph, cwd=settings.cwd).paths))
        registry = load_registry(where, cwd=settings.cwd) if where else None
        loaded = stack.enter_context(
            load_graph(
                graph.graph,
                registry=registry,
                model=graph.model,
                config={"configurable": {**(recorded or {}), **settings.configurable}},
                env=around,
                cwd=settings.cwd,
            )
        )
        require_context(loaded.graph, settings.context)
        if graph.model is not None and loaded.kind != "build_graph":
            raise UsageError(f"--model needs a graph that takes its model: {graph.name} does not")
        registries = (registry,) if registry is not None else ()
        yield Workflow(
            graph=loaded.graph,
            store=store,
            tools=tools,
            policy=Policy(
                mode="sandbox",
                stubs=settings.stubs,
                registry=registry,
                effects=Effects(settings.effects, registries),
            ),
            limits=settings.limits,
            configurable=settings.configurable,
            metadata={"workflow": graph.name},
            context=settings.context,
            memory=tuple(memory),
            answers=settings.answers,
        )
