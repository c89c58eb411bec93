"""A branch as dataset examples: one a user turn, whatever interrupts, retries and forks it went through.

A turn begins with an input checkpoint that brings a new human message (in threads without messages: with every input
checkpoint) and ends where the next begins, or at the tip. Answering an interrupt and forking bring no input, so they
add no turn.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentctl.codec.messages import is_message_list, messages_in
from agentctl.codec.values import decode
from agentctl.datasets.messages import message_dict, message_dicts
from agentctl.errors import DecodeError, NotFound
from agentctl.records.datasets import Example, ExampleCall, ExampleSource, Reference
from agentctl.records.messages import CallSite, Message
from agentctl.records.rows import CheckpointRow, Lineage
from agentctl.records.threads import UNKNOWN
from agentctl.stores.base import Reader
from agentctl.stores.reading.calls import read_calls
from agentctl.stores.reading.conversation import read_conversation
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.steps import StepReader

_NAMES = uuid.uuid5(uuid.NAMESPACE_URL, "agentctl:example")
START = "__start__"
_OWN_KEYS = ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map")
_METADATA_KEYS = frozenset(
    {"source", "step", "parents", "run_id", "thread_id", "writes", "score", "langgraph_version", "langgraph_api_url"}
)


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a thread: where it is read and its checkpoints, oldest first."""

    reader: Reader
    lineage: Lineage

    @property
    def thread(self) -> str:
        """Thread id."""
        return self.lineage.tip.thread

    @property
    def ns(self) -> str:
        """Namespace."""
        return self.lineage.tip.ns


@dataclass(frozen=True, slots=True)
class _Turn:
    """Message indexes [first, last) of one turn and the ids of its checkpoints; `first` is the human message."""

    number: int
    first: int
    last: int
    ids: tuple[str, ...]


def read_examples(branch: Branch, origin: Branch | None = None, *, split: str = "test") -> tuple[Example, ...]:
    """Returns the branch's user turns as examples, oldest first, without references.

    Args:
        branch: The branch that is exported: outputs, steps and calls are its own.
        origin: Where the branch was copied from, up to the copied checkpoint, for what a copy of one checkpoint does
            not hold: the input, the state before it and the steps until then.
        split: Split of every example.

    Raises:
        NotFound: the branch has neither messages nor an input checkpoint.
    """
    rows = _all_rows(branch, origin)
    values = read_values(branch.reader, branch.thread, branch.ns, branch.lineage.tip.id).values
    channel = next((name for name, value in values.items() if is_message_list(value)), None)
    messages = messages_in(values[channel]) if channel else ()
    first_held = _first_checkpoints(branch, origin) if channel else ()
    turns = _turns(rows, messages, first_held)
    if not turns:
        raise NotFound(f"no user turn in {branch.thread}", hint=f"agentctl history {branch.thread}")
    sites = _calls(branch, origin)
    steps = _steps(branch, origin)
    return tuple(_example(branch, origin, turn, rows, messages, channel, sites, steps, split) for turn in turns)


def example_id(thread: str, ns: str, input_checkpoint: str) -> str:
    """Returns the id of a turn: the same for the same turn, however often and from wherever it is exported."""
    return str(uuid.uuid5(_NAMES, f"{thread}\0{ns}\0{input_checkpoint}"))


def recorded_configurable(metadata: Mapping[str, object]) -> dict[str, object]:
    """Returns the scalar configuration that a checkpoint's metadata records; LangGraph's and our own keys left out."""
    return {
        key: value
        for key, value in metadata.items()
        if key not in _METADATA_KEYS
        and not key.startswith(("agentctl_", "langgraph_", "ls_", "lc_", "__"))
        and isinstance(value, str | int | float | bool)
    }


def _all_rows(branch: Branch, origin: Branch | None) -> dict[str, tuple[Branch, CheckpointRow]]:
    """Every checkpoint of the branch, oldest first, with where it is read; the branch's own copies win."""
    rows = {row.id: (origin, row) for row in origin.lineage.rows} if origin else {}
    return {**rows, **{row.id: (branch, row) for row in branch.lineage.rows}}


def _first_checkpoints(branch: Branch, origin: Branch | None) -> tuple[str, ...]:
    """Returns, for each message of the tip, the checkpoint that first held it."""
    own = [turn.checkpoint for turn in read_conversation(branch.reader, branch.lineage).turns]
    if origin is None:
        return tuple(own)
    earlier = [turn.checkpoint for turn in read_conversation(origin.reader, origin.lineage).turns]
    return tuple(earlier[: len(own)]) + tuple(own[len(earlier) :])


def _turns(
    rows: Mapping[str, tuple[Branch, CheckpointRow]], messages: Sequence[Message], first_held: Sequence[str]
) -> list[_Turn]:
    ids = list(rows)
    if not messages:
        starts = [i for i, (_, row) in enumerate(rows.values()) if row.source == "input"]
        ends = [*starts[1:], len(ids)]
        return [_Turn(n, 0, 0, tuple(ids[a:b])) for n, (a, b) in enumerate(zip(starts, ends, strict=True), 1)]
    heads = [i for i, message in enumerate(messages) if message.role == "human" and _opens_turn(messages, i)]
    position = {checkpoint: i for i, checkpoint in enumerate(ids)}
    begins = [max(0, position.get(first_held[i], 0) - _is_loop(rows, first_held[i])) for i in heads]
    begins = begins and [0, *begins[1:]]
    turns = []
    for n, head in enumerate(heads):
        last = heads[n + 1] if n + 1 < len(heads) else len(messages)
        until = begins[n + 1] if n + 1 < len(heads) else len(ids)
        turns.append(_Turn(n + 1, head, last, tuple(ids[begins[n] : until])))
    return turns


def _opens_turn(messages: Sequence[Message], i: int) -> bool:
    """Several human messages in a row are one turn."""
    return i == 0 or messages[i - 1].role != "human"


def _is_loop(rows: Mapping[str, tuple[Branch, CheckpointRow]], checkpoint: str) -> int:
    """The input checkpoint is one before the first that holds the message, where the input is applied by a step."""
    return 1 if checkpoint in rows and rows[checkpoint][1].source == "loop" else 0


def _calls(branch: Branch, origin: Branch | None) -> tuple[CallSite, ...]:
    own = read_calls(branch.reader, branch.lineage)
    if origin is None:
        return own
    seen = {(site.ns, site.ai_message_id, site.position) for site in own}
    earlier = [
        site
        for site in read_calls(origin.reader, origin.lineage)
        if (site.ns, site.ai_message_id, site.position) not in seen
    ]
    return (*earlier, *own)


def _steps(branch: Branch, origin: Branch | None) -> dict[str, tuple[str, ...]]:
    """Returns the nodes that made each checkpoint, those of the namespaces below before the node that ran them."""
    made: dict[str, tuple[str, ...]] = {}
    for part in [part for part in (origin, branch) if part is not None]:
        ids = [row.id for row in part.lineage.rows]
        wrote = StepReader(part.reader, part.thread, part.ns).wrote(ids)
        inner = _inner_steps(part, ids)
        parent = {row.id: row.parent for row in part.lineage.rows}
        for checkpoint in ids:
            nodes = tuple(name for name in wrote.get(checkpoint, ()) if name != UNKNOWN)
            if nodes or checkpoint not in made:
                made[checkpoint] = (*inner.get(parent[checkpoint] or "", ()), *nodes)
    return made


def _inner_steps(part: Branch, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns, by the checkpoint of the branch that they ran from, the steps of every namespace below it."""
    found: dict[str, list[str]] = {}
    wanted = set(ids)
    for ns in part.reader.namespaces(part.thread):
        if ns == part.ns or not ns.startswith(part.ns):
            continue
        rows = part.reader.rows(part.thread, ns)
        reader = StepReader(part.reader, part.thread, ns)
        wrote = reader.wrote([row.id for row in rows])
        path = "|".join(piece.split(":", 1)[0] for piece in ns.removeprefix(part.ns).strip("|").split("|"))
        for row in reversed(rows):
            parents = row.metadata.get("parents")
            above = parents.get(part.ns) if isinstance(parents, Mapping) else None
            if isinstance(above, str) and above in wanted:
                found.setdefault(above, []).extend(f"{path}|{name}" for name in wrote[row.id] if name != UNKNOWN)
    return {checkpoint: tuple(names) for checkpoint, names in found.items()}


def _example(
    branch: Branch,
    origin: Branch | None,
    turn: _Turn,
    rows: Mapping[str, tuple[Branch, CheckpointRow]],
    messages: Sequence[Message],
    channel: str | None,
    sites: Sequence[CallSite],
    steps: Mapping[str, tuple[str, ...]],
    split: str,
) -> Example:
    owner, first = rows[turn.ids[0]]
    last_id = turn.ids[-1]
    raw_input, state = _beginning(owner, first, channel)
    whose = origin.lineage.tip if origin else branch.lineage.tip
    outputs: dict[str, object] = {"reply": _reply(messages[turn.first : turn.last])}
    inputs: dict[str, object] = {"input": raw_input, "state": state}
    if channel is not None:
        inputs["messages"] = message_dicts(messages[: turn.first + _n_human(messages, turn)])
        outputs["messages"] = message_dicts(messages[turn.first + _n_human(messages, turn) : turn.last])
    else:
        outputs["values"] = read_values(rows[last_id][0].reader, rows[last_id][0].thread, branch.ns, last_id).values
    return Example(
        id=example_id(whose.thread, whose.ns, turn.ids[0]),
        inputs=inputs,
        outputs=outputs,
        reference=Reference(),
        source=ExampleSource(branch.reader.info.url, branch.thread, last_id, branch.lineage.tip.id),
        steps=tuple(name for checkpoint in turn.ids for name in steps.get(checkpoint, ())),
        tool_calls=tuple(_call(site, turn) for site in sites if site.pending_at <= last_id),
        configurable=recorded_configurable(first.metadata),
        split=split,
        turn=turn.number,
    )


def _n_human(messages: Sequence[Message], turn: _Turn) -> int:
    n = 0
    while turn.first + n < turn.last and messages[turn.first + n].role == "human":
        n += 1
    return n


def _reply(messages: Sequence[Message]) -> str | None:
    return next((message.text for message in reversed(messages) if message.role == "ai" and message.text), None)


def _call(site: CallSite, turn: _Turn) -> ExampleCall:
    result = message_dict(site.answer) if site.answer else None
    return ExampleCall(site.name, site.args, site.id, site.ns, result, before=site.pending_at < turn.ids[0])


def _beginning(owner: Branch, first: CheckpointRow, channel: str | None) -> tuple[object, dict[str, object]]:
    """Returns what the graph was given, None where the store no longer has it, and the other values before it."""
    raw: object = None
    for stored in owner.reader.stored(first.thread, first.ns, [first.id], channels=[START]):
        if START in stored.values:
            try:
                raw = decode(stored.values[START])
            except DecodeError:
                raw = None
    values = read_values(owner.reader, first.thread, first.ns, first.id).values
    return raw, {name: value for name, value in values.items() if name != channel}
