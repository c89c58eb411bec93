"""From a target and what the user said to an experiment that can run: graph, registry, recording, policy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentctl.errors import Refused, UsageError
from agentctl.experiments.experiment import DebugStore, Experiment, Target, recorded_configurable
from agentctl.experiments.observed import Check
from agentctl.experiments.resuming import Answers
from agentctl.experiments.running import Ended, Limits
from agentctl.records.copies import Place
from agentctl.records.runs import Effect, Plan
from agentctl.sandbox.answers import Policy, ToolsMode
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.base import Reader
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.urls import same_store

EFFECTS: tuple[Effect, ...] = ("read", "write", "state")


@dataclass(frozen=True, slots=True)
class GraphSource:
    """Where an application's code is.

    Attributes:
        graph: `path.py:attr` or `package.module:attr`.
        name: What messages call it.
        sandbox: Its sandbox tool registry, or None.
        production: Its production tool registry, or None; used for live reads alone.
        model: `provider:model` for a graph that takes one, or None.
    """

    graph: str
    name: str
    sandbox: str | None = None
    production: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person chose for the runs of one command.

    Attributes:
        tools: `recorded`, or `sandbox` to leave the recording out.
        stubs: Answers by tool name, given by hand.
        live_reads: Whether tools of effect `read` may really run.
        effects: Effects said by hand.
        answers: Answers to interrupts.
        configurable: Configuration over the recorded one.
        context: Runtime context of the graph.
        limits: Limits of each run.
        env: Environment variables for the graph.
        reason: Why.
        case: Case name.
        cwd: Folder that relative paths start at.
    """

    tools: ToolsMode = "recorded"
    stubs: Mapping[str, object] = field(default_factory=dict)
    live_reads: bool = False
    effects: Mapping[str, Effect] = field(default_factory=dict)
    answers: Answers = ()
    configurable: Mapping[str, object] = field(default_factory=dict)
    context: Mapping[str, object] | None = None
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    case: str = ""
    cwd: Path = field(default_factory=Path.cwd)


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
        on_plan: Called with the plan before anything is copied or run.
        on_threads: Called with the debug threads before they are made.
        on_end: Called as each run ends.

    Raises:
        UsageError: an option names what the graph does not have, or a context is missing.
        NotFound: no such target, file or attribute.
        GraphFailed: importing or building the graph raised.
        Refused: the debug store is the source itself.
    """
    from agentctl.sandbox.environment import environment, import_path
    from agentctl.sandbox.loading import load_graph, require_context
    from agentctl.sandbox.registries import load_registry
    from agentctl.sandbox.specs import parse_spec

    _refuse_same_store(source, debug, target)
    recording = record_thread(source, target.thread, tip=branch or seen_tip(source, target))
    metadata = next(iter(source.rows(target.thread, target.ns, ids=[target.id]))).metadata
    configurable = {**recorded_configurable(metadata), **settings.configurable}
    with ExitStack() as stack:
        stack.enter_context(environment(settings.env))
        stack.enter_context(import_path(parse_spec(graph.graph, cwd=settings.cwd).paths))
        sandbox = load_registry(graph.sandbox, cwd=settings.cwd) if graph.sandbox else None
        live = load_registry(graph.production, cwd=settings.cwd) if graph.production and settings.live_reads else None
        loaded = stack.enter_context(
            load_graph(
                graph.graph,
                registry=sandbox,
                model=graph.model,
                config={"configurable": configurable},
                env=settings.env,
                cwd=settings.cwd,
            )
        )
        require_context(loaded.graph, settings.context)
        if graph.model is not None and loaded.kind != "build_graph":
            raise UsageError(f"--model needs a graph that takes its model: {graph.name} does not")
        registries = tuple(registry for registry in (sandbox, live) if registry is not None)
        policy = Policy(
            mode=settings.tools,
            stubs=settings.stubs,
            registry=sandbox,
            effects=Effects(settings.effects, registries),
            live_reads=settings.live_reads,
            live=live,
        )
        yield Experiment(
            source=source,
            debug=debug,
            graph=loaded.graph,
            graph_name=graph.name,
            policy=policy,
            recording=recording,
            limits=settings.limits,
            check=check,
            answers=settings.answers,
            configurable=settings.configurable,
            context=settings.context,
            memory=source.memory(),
            reason=settings.reason,
            case=settings.case,
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


def parse_stubs(texts: Sequence[str]) -> dict[str, object]:
    """Returns `--stub NAME=JSON` values by tool name; text that is not JSON stands for itself.

    Raises:
        UsageError: a text has no `=`.
    """
    return {name: _json_or_text(value) for name, value in (_pair(text, "--stub", "NAME=JSON") for text in texts)}


def parse_effects(texts: Sequence[str]) -> dict[str, Effect]:
    """Returns `--effect NAME=read|write|state` values by tool name.

    Raises:
        UsageError: a text has no `=` or names no effect.
    """
    found: dict[str, Effect] = {}
    for text in texts:
        name, value = _pair(text, "--effect", "NAME=read|write|state")
        effect = next((known for known in EFFECTS if known == value), None)
        if effect is None:
            raise UsageError(f"--effect {text}: no effect {value}", hint="read, write or state")
        found[name] = effect
    return found


def parse_configurable(texts: Sequence[str]) -> dict[str, object]:
    """Returns `--configurable KEY=VALUE` values; JSON where it is JSON, else text."""
    return {key: _json_or_text(value) for key, value in (_pair(text, "--configurable", "KEY=VALUE") for text in texts)}


def parse_env(texts: Sequence[str]) -> dict[str, str]:
    """Returns `--env NAME=VALUE` values."""
    return dict(_pair(text, "--env", "NAME=VALUE") for text in texts)


def parse_tools(text: str) -> ToolsMode:
    """Returns the mode of `--tools`.

    Raises:
        UsageError: it is neither `recorded` nor `sandbox`.
    """
    if text == "recorded":
        return "recorded"
    if text == "sandbox":
        return "sandbox"
    raise UsageError(f"--tools {text} is not for experiments", hint="--tools recorded, or --tools sandbox")


def parse_answers(texts: Sequence[str]) -> Answers:
    """Returns the answers of `--resume`, in order; each is JSON, or text that is not JSON."""
    return tuple(_json_or_text(text) for text in texts)


def _pair(text: str, flag: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{flag} takes {form}, not {text!r}")
    return name, value


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _refuse_same_store(source: Reader, debug: DebugStore, target: Target) -> None:
    """Refuses to run in the store that the source thread lives in, unless that thread is a debug thread itself."""
    if source.info.profile != "debug" and same_store(source.info.url, debug.writer.info.url):
        raise Refused(
            f"the debug store is the store that {target.thread} lives in, and that is only read",
            hint="--debug-store FILE.sqlite names another",
        )
