"""The desk that decides, call by call, what answers: one a run, after one policy for the whole experiment."""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from agentctl.codec import jsontext
from agentctl.codec.messages import text_of
from agentctl.records.runs import Effect, ServedBy, SideEffects, ToolCallReport
from agentctl.sandbox.calls import Blocked, Call, CallBlocked, CallKey, as_text
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.models.desk import ModelBlocked, ModelDesk, no_answer
from agentctl.sandbox.models.recording import Place
from agentctl.sandbox.recordings import Cursor, Given, Recorded, Recording
from agentctl.sandbox.registry import ToolRegistry
from agentctl.sandbox.replies import (
    StepAnswer,
    Substitute,
    extra_targets,
    recorded_reply,
    reply_text,
    stub_reply,
    substituted_reply,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool

    from agentctl.sandbox.models.asking import Asking
    from agentctl.sandbox.models.recording import ModelAnswer

ToolsMode = Literal["recorded", "sandbox"]

MAX_RESULT_BYTES: Final = 64 * 1024
_MAX_EXAMPLE_CHARS: Final = 2000
_AS_RECORDED: Final = ("recorded", "state", "blocked")
"""How a call is served where the code that made it is told what was recorded, or nothing more."""

_KEY_ARGUMENTS: Final = ("idempotency_key", "idempotencyKey")


@dataclass(frozen=True, slots=True)
class Policy:
    """Where answers may come from, for every run of an experiment.

    Attributes:
        mode: `recorded` asks the recording first; `sandbox` leaves it out.
        substituted: Answers of a fork, by call; they hold for every later call with the same tool and arguments.
        in_step: Answers of a fork to what tasks of the step where it starts ask, whatever the arguments; they come
            first, and hold for every later call with the same tool and arguments too.
        other_state: Whether the runs start from another state, or by another route, than was recorded.
        retold: Places of tasks whose code finds a changed result of a call that it made: no recorded model answer is
            for what they ask.
        stubs: Values given by `--stub`, by tool name.
        registry: The workflow's sandbox tools, or None.
        effects: The effects in force.
        live_reads: Whether a `read` without another answer may really run.
        live: Registry whose tools a live read runs; None runs the tool that the graph calls.
        enclosing: Ids or names of calls in which the target lies; the recording never answers them, or the run would
            not get to the target.
    """

    mode: ToolsMode = "recorded"
    substituted: Mapping[CallKey, Substitute] = field(default_factory=dict)
    stubs: Mapping[str, object] = field(default_factory=dict)
    registry: ToolRegistry | None = None
    effects: Effects = field(default_factory=Effects)
    live_reads: bool = False
    live: ToolRegistry | None = None
    enclosing: frozenset[str] = frozenset()
    in_step: tuple[StepAnswer, ...] = ()
    other_state: bool = False
    retold: frozenset[Place] = frozenset()

    @property
    def goes_another_way(self) -> bool:
        """Whether runs differ from what was recorded before they ask for anything."""
        return bool(self.substituted or self.in_step or self.other_state)

    def substitutes(self, name: str) -> bool:
        """Tells whether a fork gives an answer to calls of a tool."""
        return any(name == key[0] for key in self.substituted) or any(name == one.name for one in self.in_step)

    def effect(self, call: Call) -> Effect | None:
        """Returns the effect of the tool that a call names, or None where nothing tells it."""
        return self.effects.of(call.name, call.tool)

    def live_tool(self, call: Call) -> BaseTool | None:
        """Returns the tool that a live read would run, or None where the call may not run live."""
        if not self.live_reads or self.effect(call) != "read":
            return None
        if self.live is not None:
            return _registered(self.live, call.name)
        return None if call.tool is _registered(self.registry, call.name) else call.tool


@dataclass(frozen=True, slots=True)
class Ticket:
    """A call that may go on: `reply` answers it, or `tool` is to be run for it. `slot` is its place in the ledger."""

    slot: int
    served_by: ServedBy
    started_s: float
    reply: object = None
    tool: BaseTool | None = None


class Desk:
    """One run's desk: decides each call and keeps the ledger. Safe to use from many threads.

    Args:
        policy: Where answers may come from.
        cursor: The run's place in the recording; None where there is no recording.
        models: The recorded model answers that stand for every model of the run; None lets models run.
        clock: Monotonic seconds, for durations.
    """

    def __init__(
        self,
        policy: Policy,
        cursor: Cursor | None = None,
        *,
        models: ModelDesk | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.policy = policy
        self.models = models
        self._cursor = cursor if cursor is not None else Recording().cursor()
        self._clock = clock
        self._ledger: list[ToolCallReport] = []
        self._blocked: Blocked | None = None
        self._strayed: set[str] = set()
        self._from_step: dict[CallKey, Substitute] = {}
        self._has_diverged = policy.goes_another_way
        self._closed = False
        self._lock = threading.Lock()

    @property
    def calls(self) -> tuple[ToolCallReport, ...]:
        """Every call so far, in the order they were made."""
        with self._lock:
            return tuple(self._ledger)

    @property
    def blocked(self) -> Blocked | None:
        """The first call that was blocked, of a tool or of a model, or None."""
        return self._blocked

    @property
    def side_effects(self) -> SideEffects:
        """How the calls so far were served."""
        return side_effects(self.calls)

    def admit(self, call: Call) -> Ticket:
        """Decides one call.

        Raises:
            CallBlocked: nothing may answer it, or the run is over. The tool must not run.
        """
        started_s = self._clock()
        if self._closed:
            raise self.refuse(call)
        decided = self._decide(call)
        if decided is None:
            raise self.refuse(call)
        served_by, reply, tool = decided
        slot = self._note(call, served_by)
        return Ticket(slot, served_by, started_s, reply, tool)

    def answer_only(self, call: Call) -> object:
        """Returns the reply to a call that has no tool, or None where there is none; never blocks."""
        started_s = self._clock()
        decided = None if self._closed else self._decide(call)
        if decided is None or decided[2] is not None:
            return None
        served_by, reply, _ = decided
        slot = self._note(call, served_by)
        self.settle(Ticket(slot, served_by, started_s), reply)
        return reply

    def settle(self, ticket: Ticket, outcome: object) -> None:
        """Completes the ledger's entry of an admitted call with what came of it: a reply, or what it raised."""
        text = f"{type(outcome).__name__}: {outcome}" if isinstance(outcome, BaseException) else reply_text(outcome)
        duration_ms = round((self._clock() - ticket.started_s) * 1000, 3)
        with self._lock:
            entry = self._ledger[ticket.slot]
            self._ledger[ticket.slot] = replace(entry, duration_ms=duration_ms, result=cut_result(text))

    def refuse(self, call: Call) -> CallBlocked:
        """Notes a call as blocked and returns the exception that stops the run."""
        report = _report(call, "blocked")
        blocked = CallBlocked(report, None if self._closed else self.stub_hint(call.name))
        with self._lock:
            self._ledger.append(report)
            if self._blocked is None:
                self._blocked = blocked
        return blocked

    def escaped(self, call: Call) -> None:
        """Notes a call that ran for real although nobody let it."""
        self._note(call, "escaped")

    def model_answer(
        self, asking: Asking | None, messages: Sequence[BaseMessage], options: Mapping[str, object]
    ) -> ModelAnswer:
        """Returns the recorded answer to a model call. See `ModelDesk.answer`.

        Raises:
            ModelBlocked: there is none that is known to be its own, or the run is over.
        """
        if self.models is None or self._closed:
            raise self.refuse_model(no_answer("the run that it belongs to is over"))
        with self._lock:
            strayed = frozenset(self._strayed)
        try:
            return self.models.answer(asking, messages, options, strayed)
        except ModelBlocked as reason:
            raise self.refuse_model(reason) from None

    def refuse_model(self, reason: ModelBlocked) -> ModelBlocked:
        """Notes that a model call stops the run, and returns the exception that does so."""
        with self._lock:
            if self._blocked is None:
                self._blocked = reason
        return reason

    def close(self) -> None:
        """Ends the run: calls that come later, from threads that outlive it, are blocked."""
        self._closed = True

    def stub_hint(self, name: str) -> str:
        """Returns the `--stub` option that would answer a tool, shaped like its latest recorded result."""
        example = self._cursor.recording.example(name)
        return f"--stub {shlex.quote(name)}={shlex.quote(_example_json(example))}"

    def _note(self, call: Call, served_by: ServedBy) -> int:
        """Adds a call to the ledger, and returns its place there."""
        with self._lock:
            self._ledger.append(_report(call, served_by))
            if served_by not in _AS_RECORDED:
                self._strayed |= call.tasks
            return len(self._ledger) - 1

    def _decide(self, call: Call) -> tuple[ServedBy, object, BaseTool | None] | None:
        policy = self.policy
        enclosing = bool({call.id, call.name} & policy.enclosing)
        effect = policy.effect(call)
        if not enclosing:
            if (answer := self._substituted(call)) is not None:
                return "answered", substituted_reply(answer, call), None
            if not self._depends_on_state(call, effect):
                if (given := self._recorded(call, effect)) is not None:
                    return "recorded_again" if given.again else "recorded", recorded_reply(given, call), None
                self._has_diverged = True
        if call.name in policy.stubs:
            return "stub", stub_reply(policy.stubs[call.name], call), None
        if policy.registry is not None and policy.registry.answers(call.name):
            return "state" if effect == "state" else "stub", None, policy.registry[call.name]
        if effect == "state" and call.tool is not None:
            return "state", None, call.tool
        if (live := policy.live_tool(call)) is not None:
            return "live", None, live
        return None

    def _substituted(self, call: Call) -> Substitute | None:
        for one in self.policy.in_step:
            if one.is_for(call):
                with self._lock:
                    self._from_step[call.key] = one.answer
                return one.answer
        with self._lock:
            asked_before = self._from_step.get(call.key)
        return asked_before or self.policy.substituted.get(call.key)

    def _depends_on_state(self, call: Call, effect: Effect | None) -> bool:
        """Tells whether a tool has to run on the state that this run has come to.

        A file that is read, a subagent that checks files: what the recording holds is true of the recorded state. Once
        the run has been told or has asked something else, the state is another; what these tools ask for outside is
        answered as ever.
        """
        return self._has_diverged and effect == "state" and call.tool is not None

    def _recorded(self, call: Call, effect: Effect | None) -> Given | None:
        if self.policy.mode != "recorded":
            return None
        given = self._cursor.take(call, repeat=effect == "read")
        if given is None or not usable(given.entry, call):
            return None
        if given.entry.kind == "handoff" and self._has_diverged:
            return None  # it passes on the conversation as it was recorded
        return given


def _registered(registry: ToolRegistry | None, name: str) -> BaseTool | None:
    return registry[name] if registry is not None and name in registry else None


def usable(entry: Recorded, call: Call) -> bool:
    """Returns whether a recorded answer is all of what the tool gave.

    It is not where one task answered several calls and wrote more than their messages, or led further than the plain
    edges do: it cannot be told which of the calls did that. Code that calls a tool itself writes the rest itself.
    """
    if not call.by_tool_node:
        return True
    return entry.kind != "partial" and not (entry.shared and extra_targets(entry, call))


def side_effects(calls: Collection[ToolCallReport]) -> SideEffects:
    """Returns calls counted by how they were served."""

    def count(*served_by: ServedBy) -> int:
        return sum(call.served_by in served_by for call in calls)

    return SideEffects(
        recorded=count("answered", "recorded", "recorded_again"),
        stubbed=count("stub"),
        live=count("live"),
        blocked=count("blocked"),
        escaped=count("escaped"),
    )


def _report(call: Call, served_by: ServedBy) -> ToolCallReport:
    key = next((call.args[name] for name in _KEY_ARGUMENTS if name in call.args), None)
    return ToolCallReport(
        name=call.name,
        args=dict(call.args),
        id=call.id or "",
        served_by=served_by,
        ns=call.ns,
        idempotency_key=None if key is None else str(key),
    )


def cut_result(text: str) -> str:
    """Returns a result as reports keep it: at most `MAX_RESULT_BYTES` of it."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= MAX_RESULT_BYTES else data[:MAX_RESULT_BYTES].decode("utf-8", "ignore")


def _example_json(example: Recorded | None) -> str:
    """Returns the JSON value that, given as a stub, reads like a recorded result; `"..."` where none would do."""
    if example is None:
        return '"..."'
    text = text_of(example.content)
    try:
        value = jsontext.parse(text)
    except ValueError:
        value = text
    if isinstance(value, str):
        value = text
    shaped = as_text(value) if not isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shaped if len(shaped) <= _MAX_EXAMPLE_CHARS else '"..."'
