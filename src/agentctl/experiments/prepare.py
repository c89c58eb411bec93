"""From a target and what the user said to an experiment that can run: graph, registry, recording, policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from agentctl.errors import Refused
from agentctl.experiments.application import loaded_application
from agentctl.experiments.experiment import IN_PROCESS, DebugStore, Experiment, Target, recorded_configurable
from agentctl.experiments.runs.observed import Check
from agentctl.experiments.runs.running import Ended
from agentctl.experiments.settings import GraphSource, Settings
from agentctl.records.copies import Place
from agentctl.records.runs import Plan
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.models.recorder import record_models
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.base import Reader, Writer
from agentctl.stores.copying.stated_rows import as_rows
from agentctl.stores.masked import is_masked
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.same import same_tables


@contextmanager
def prepared(
    source: Reader,
    debug: DebugStore,
    target: Target,
    graph: GraphSource,
    settings: Settings,
    *,
    check: Check | None = None,
    branch: str | None = None,
    isolation: str = IN_PROCESS,
    on_plan: Callable[[Plan], None] | None = None,
    on_threads: Callable[[Sequence[Place], str], None] | None = None,
    on_end: Callable[[Ended], None] | None = None,
) -> Iterator[Experiment]:
    """Gives an experiment on a target, its graph loaded for the time of the block.

    Args:
        source: Where the target lives; only read.
        debug: Where copies go.
        target: The checkpoint.
        graph: The application.
        settings: What a person chose.
        check: What failing means.
        branch: Tip of the branch whose recorded answers come first; None for the newest tip above the target.
        isolation: What keeps effects in, for the plan.
        on_plan: Called with the plan before anything is copied or run.
        on_threads: Called with the debug threads before they are made.
        on_end: Called as each run ends.

    Raises:
        UsageError: an option names what the graph does not have, or a context is missing.
        NotFound: no such target, file or attribute.
        GraphFailed: importing or building the graph raised.
    """
    source = as_rows(source)
    tip = branch or seen_tip(source, target)
    recording = record_thread(source, target.thread, tip=tip)
    models = record_models(source, target.thread, tip=tip, at=(target.ns, target.id)) if graph.runs_no_model else None
    metadata = next(iter(source.rows(target.thread, target.ns, ids=[target.id]))).metadata
    with loaded_application(
        graph,
        settings,
        tools=graph.sandbox,
        live=graph.production if settings.live_reads else None,
        recorded=True,
        configurable={**recorded_configurable(metadata), **settings.configurable},
        env=settings.env,
    ) as app:
        policy = Policy(
            mode=settings.tools,
            stubs=settings.stubs,
            registry=app.registry,
            effects=app.effects,
            live_reads=settings.live_reads,
            live=app.live,
        )
        yield Experiment(
            source=source,
            debug=debug,
            graph=app.graph,
            graph_name=graph.name,
            policy=policy,
            recording=recording,
            models=models,
            limits=settings.limits,
            check=check,
            answers=settings.answers,
            configurable=settings.configurable,
            context=settings.context,
            memory=source.memory(),
            drop=settings.drop,
            reason=settings.reason,
            case=settings.case,
            isolation=isolation,
            masked=source.info.masked or is_masked(source, target.thread),
            on_plan=on_plan,
            on_threads=on_threads,
            on_end=on_end,
        )


def seen_tip(source: Reader, target: Target) -> str | None:
    """Returns the tip of the branch whose recorded answers come first; None for the thread's head.

    Of the tips that descend from the target it is the newest whose branch no person edited: what the customer saw.
    """
    if target.ns:
        return None
    tree = read_tree(source, target.thread)
    below = [tip for tip in tree.tips if target.id in set(tree.chain(tip))]
    for tip in below:
        rows = source.rows(target.thread, "", ids=list(tree.chain(tip)))
        if all(row.source not in ("update", "fork") for row in rows):
            return tip
    return next(iter(below), None)


def refuse_same_store(source: Reader, debug: Writer, target: Target) -> None:
    """Refuses to run in the store that the source thread lives in, unless that thread is a debug thread itself.

    Raises:
        Refused: it is that store.
    """
    if source.info.profile != "debug" and same_tables(source, debug):
        raise Refused(
            f"the debug store is the store that {target.thread} lives in, and that is only read",
            hint="--debug-store FILE.sqlite names another",
        )
