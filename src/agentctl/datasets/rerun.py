"""Running an example's turn again: its tools answered from what was recorded, its outcome held against what is right.

It runs on a SQLite file of its own in a temporary folder, on the same saver and behind the same gate as a replay, so
that an exported test reaches nothing outside.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentctl.datasets.judging import problems_of
from agentctl.datasets.messages import revive
from agentctl.errors import UsageError
from agentctl.experiments.judging.checks import parse_checks
from agentctl.experiments.runs.memory import MemoryCopy
from agentctl.experiments.runs.observed import Observed
from agentctl.experiments.runs.reports import observe
from agentctl.experiments.runs.running import Ended, Limits, RunJob, in_event_loop, run_all
from agentctl.experiments.runs.savers import open_saver
from agentctl.records.datasets import Example, ExampleCall
from agentctl.records.rows import NULL_TASK, Stored
from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recordings import Recorded, Recording

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

_EARLIER, _NOW = "0", "1"
"""Stand for the checkpoints at which calls were answered: before the turn, and in it."""

_SEED, _WRITES = "$seed", "$writes"
"""Keys of a delta channel's value whose reducer is not known. Source: agentctl.codec.delta."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rerun showed and what is wrong with it; no problems, all right. `nodes` are those that started."""

    problems: tuple[str, ...]
    observed: Observed
    nodes: tuple[str, ...] = ()


def rerun(
    example: Example,
    *,
    graph: str,
    project: Path,
    sandbox: str | None = None,
    configurable: Mapping[str, object] | None = None,
    stubs: Mapping[str, object] | None = None,
    answers: Sequence[object] | None = None,
    limits: Limits | None = None,
) -> Outcome:
    """Runs an example's turn again and compares its outcome with the reference.

    The conversation and the state before the turn are put back first; the memory store holds what the example says,
    else nothing. With a check in the
    reference there is a problem where it holds; without one where the reply is not the expected one (white space
    aside), an expected tool call was not made, or the final state of a graph without messages differs. A run that does
    not end is a problem that says what would let it end.

    Args:
        example: The example.
        graph: `path.py:attr` or `package.module:attr`.
        project: Folder that `graph`, `sandbox` and check files are relative to.
        sandbox: The sandbox tool registry, where the graph has one.
        configurable: Wins over the recorded configuration and the example's own `rerun.configurable`.
        stubs: Answers by tool name for calls that the recording does not hold, over those of the example.
        answers: Answers to interrupts, in place of the recorded ones.
        limits: Limits of the run.

    Raises:
        NotFound: no such graph or check file.
        GraphFailed: importing or building the graph raised.
        UsageError: the graph needs what an example cannot give.
        DecodeError: a value of the example cannot be made again.
    """
    from agentctl.sandbox.environment import environment, import_path
    from agentctl.sandbox.injection import sandboxed
    from agentctl.sandbox.loading import load_graph, require_context
    from agentctl.sandbox.registries import load_registry
    from agentctl.sandbox.specs import parse_spec

    check = parse_checks(example.reference.check, project)
    settings = {**example.configurable, **example.rerun.configurable, **(configurable or {})}
    with ExitStack() as stack:
        url = str(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentctl-"))) / "rerun.sqlite")
        stack.enter_context(environment({}))
        stack.enter_context(import_path(parse_spec(graph, cwd=project).paths))
        registry = load_registry(sandbox, cwd=project) if sandbox else None
        config = {"configurable": settings}
        loaded = stack.enter_context(load_graph(graph, registry=registry, config=config, cwd=project))
        require_context(loaded.graph, None)
        policy = Policy(
            stubs={**example.rerun.stubs, **(stubs or {})},
            registry=registry,
            effects=Effects({}, (registry,) if registry else ()),
        )
        recording = recording_of(example.tool_calls)
        job = RunJob(
            thread=example.source.thread,
            payload=_payload(example),
            configurable=settings,
            answers=tuple(revive(answer) for answer in (example.answers if answers is None else answers)),
        )
        restore(example, job.thread, url)
        runnable = loaded.with_saver(None, MemoryCopy.of(example.rerun.memory).store if example.rerun.memory else None)
        with sandboxed(runnable):
            ended = _run(job, runnable, url, Desk(policy, recording.cursor(_EARLIER)), limits or Limits())
    observed = observe(ended)
    return Outcome(problems_of(example, observed, ended, check), observed, ended.nodes)


def recording_of(calls: Sequence[ExampleCall]) -> Recording:
    """Returns what the recorded calls of an example answer, those of earlier turns marked as past."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    serializer = JsonPlusSerializer()

    def stored(value: object) -> Stored:
        return Stored(*serializer.dumps_typed(revive(value)))

    entries = []
    for call in calls:
        data = call.result.get("data") if call.result else None
        if not isinstance(data, Mapping) or not isinstance(call.args, Mapping):
            continue
        entries.append(
            Recorded(
                name=call.name,
                args=call.args,
                id=call.id,
                ns=call.ns,
                pending_at=_EARLIER if call.before else _NOW,
                answered_at=_EARLIER if call.before else _NOW,
                content=data.get("content"),
                status=str(data.get("status") or "success"),
                artifact=data.get("artifact"),
                message=stored(call.result),
                kind=call.kind,
                writes=tuple((channel, stored(value)) for channel, value in call.writes),
                goto=call.goto,
                shared=call.shared,
            )
        )
    return Recording(tuple(entries))


def restore(example: Example, thread: str, url: str) -> None:
    """Puts the conversation and the state before the turn into a new thread; a first turn leaves it empty.

    They are stored as writes of no task on an empty checkpoint. LangGraph applies such writes when the next input
    comes, through each channel's own reducer, and they call for no node.

    Source: langgraph 1.2.24, pregel/_loop.py (`_first`).
    """
    writes = list(_earlier_writes(example))
    if not writes:
        return

    async def put() -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        async with open_saver(url) as saver:
            config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
            saved = await saver.aput(config, empty_checkpoint(), {"source": "update", "step": 0, "parents": {}}, {})
            await saver.aput_writes(saved, writes, NULL_TASK)

    in_event_loop(put())


def _earlier_writes(example: Example) -> list[tuple[str, Any]]:
    writes: list[tuple[str, Any]] = []
    messages = example.inputs.get("messages")
    if example.n_earlier and isinstance(messages, list):
        writes.append((example.channel, revive(messages[: example.n_earlier])))
    state = example.inputs.get("state")
    for channel, value in state.items() if isinstance(state, Mapping) else ():
        if channel.startswith("__") and channel != "__previous__":
            continue
        if isinstance(value, Mapping) and _WRITES in value:
            parts = [value[_SEED], *value[_WRITES]] if _SEED in value else value[_WRITES]
            writes += [(channel, revive(part)) for part in parts]
        else:
            writes.append((channel, revive(value)))
    return writes


def _payload(example: Example) -> Any:
    raw = example.inputs.get("input")
    if raw is not None:
        return revive(raw)
    messages = example.inputs.get("messages")
    if isinstance(messages, list) and len(messages) > example.n_earlier:
        return {example.channel: revive(messages[example.n_earlier :])}
    raise UsageError(
        f"example {example.id} does not hold what its graph was given", hint="its store did not keep the input"
    )


def _run(job: RunJob, graph: Pregel[Any, Any, Any, Any], url: str, desk: Desk, limits: Limits) -> Ended:
    (ended,) = run_all(
        [job],
        open_saver=lambda: open_saver(url),
        graph_for=lambda _: graph,
        desk_for=lambda _: desk,
        limits=limits,
    )
    return ended
