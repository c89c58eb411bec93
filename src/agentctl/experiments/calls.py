"""Which calls `--answer` and `--patch` name at a target, who owns them, and what becomes of their siblings.

Where a result stands tells how it is changed. A ToolNode's is a stored write, or becomes one. What code of a node got
from a tool is in no row by itself (the node worked with it, and may have stored the message too), so that task runs
again and asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from agentctl.codec.messages import messages_in, text_of
from agentctl.codec.values import decode
from agentctl.errors import Ambiguous, DecodeError, NotFound, Refused, UsageError
from agentctl.experiments.experiment import Target
from agentctl.experiments.forms import Answer, Forms, Patch
from agentctl.experiments.graph_parts import ToolUse
from agentctl.experiments.json_text import compact, patch_content
from agentctl.experiments.pairing import Pair, describe
from agentctl.experiments.point import OwnCall, Point, read_point
from agentctl.records.copies import command
from agentctl.records.messages import CallSite, Message, ToolCall
from agentctl.records.rows import WriteRow
from agentctl.records.threads import Task
from agentctl.sandbox.calls import Call
from agentctl.sandbox.recordings import Recording
from agentctl.stores.base import Reader
from agentctl.stores.reading.calls import read_calls
from agentctl.stores.reading.layout import TASKS, parse_task_path
from agentctl.stores.reading.lineage import read_lineage

Where = Literal["recorded", "pending", "answered", "made", "asked", "unstored"]

BY_THE_RUN: Final = frozenset({"made", "asked", "unstored"})
"""Calls that are answered while the fork runs: code of a node asks for them."""


class Place(NamedTuple):
    """One of `n` messages that share a call id, by position: calls without an id have nothing else to be told by."""

    index: int
    n: int


ONLY: Final = Place(0, 1)
"""The place of a message whose call id no other one shares."""


@dataclass(frozen=True, slots=True)
class NamedCall:
    """One call of the target and what a fork does with it.

    Attributes:
        pair: The call, and where its answer stands in the target's messages.
        where: Its result is a stored write of the target (`recorded`), is not there yet (`pending`), or already in the
            target's values (`answered`). Of calls that code of a node makes: a task of the step made it (`made`), a
            node is to answer it (`asked`), or no row holds it (`unstored`).
        content: The content that its ToolMessage is to have; None leaves it as it is.
        old: The content it has, None where it has none.
        forms: The forms that name it, none for a kept sibling.
        write: The stored write that holds the result, where it is recorded.
        owner: The task that owns it, where it is pending, or that made it.
        status: Status of the ToolMessage to be made, `success` or `error`.
        has_artifact: Whether its message carries an artifact, which a patch of the content leaves as it is.
        asked_id: Id of the AI message of a call that a task made.
        place: Where among the messages with its call id its message stands in the stored write.
    """

    pair: Pair
    where: Where
    content: object = None
    old: object = None
    forms: tuple[Answer | Patch, ...] = ()
    write: WriteRow | None = None
    owner: Task | None = None
    status: str = "success"
    has_artifact: bool = False
    asked_id: str | None = None
    place: Place = ONLY

    @property
    def name(self) -> str:
        """Tool name."""
        return self.pair.call.name

    @property
    def id(self) -> str:
        """Call id, '' where the model gave none."""
        return self.pair.call.id or ""

    @property
    def substituted(self) -> bool:
        """Whether the fork changes its result."""
        return bool(self.forms)

    @property
    def by_the_run(self) -> bool:
        """Whether it is answered while the fork runs."""
        return self.where in BY_THE_RUN


def name_calls(
    reader: Reader, point: Point, forms: Forms, recording: Recording, tools: ToolUse
) -> tuple[NamedCall, ...]:
    """Returns the calls that the forms change, then what is said of their siblings.

    Args:
        reader: Where the target lives.
        point: The target.
        forms: The fork's forms.
        recording: What the tools answered in the source thread, for siblings without a result at the target.
        tools: Which nodes answer calls, and which tools other code calls.

    Raises:
        NotFound: A form names a call that the target does not have.
        Ambiguous: A form names several calls.
        UsageError: A patch names a field that the result does not have.
        Refused: A call has no task that could own its result, or a sibling has no answer.
    """
    if not forms.calls:
        return ()
    named: dict[tuple[int, int], NamedCall] = {}
    given: tuple[Answer | Patch, ...] = (*forms.answers, *forms.patches)
    for form in given:
        located = _locate(reader, point, form.call, tools)
        key = (located.pair.at, located.pair.call.position)
        before = named.get(key, located)
        if before.forms and isinstance(form, Answer):
            raise UsageError(f"{describe(before.pair.call)} is given more than one result")
        named[key] = _with(before, form, recording)
    calls = tuple(named.values())
    if any(call.where in ("recorded", "pending") for call in calls):
        siblings = [pair for pair in point.open_pairs if (pair.at, pair.call.position) not in named]
        calls += tuple(_kept(reader, point, siblings, recording, tools))
    if any(call.where == "made" for call in calls):
        calls += tuple(_made(own, at) for at, own in _own_pairs(point) if (at, own.stored.call.position) not in named)
    return calls


def _locate(reader: Reader, point: Point, text: str, tools: ToolUse) -> NamedCall:
    """Returns the call that a name or id stands for: one of the target's step, else one just answered, else any."""
    in_step = [*_waiting(point), *(_made(own, at) for at, own in _own_pairs(point))]
    found = _one_of(point, in_step, text)
    if found is not None:
        return _owned(reader, point, found, tools)
    own = [site for site in _made_before(reader, point) if text in (site.name, site.id)]
    for pairs in (point.just_answered, [pair for pair in point.pairing.pairs if pair not in point.open_pairs]):
        calls = [_answered(point, pair) for pair in pairs]
        found = _one_of(point, [call for call in calls if not any(_is_site(point, call, site) for site in own)], text)
        if found is not None:
            return found
    if text in tools.direct and (point.unfinished or not own):
        return NamedCall(Pair(_UNSTORED_AT, ToolCall(text, None, {}, len(text)), ()), "unstored")
    if own:
        raise _worked_in(point, own)
    raise NotFound(
        f"no call {text} at {point.target.id}",
        hint="what waits there: " + command("show", point.target.place.target),
        candidates=[_shown(call) for call in in_step or [_answered(point, pair) for pair in point.pairing.pairs[-8:]]],
    )


def _one_of(point: Point, calls: Sequence[NamedCall], text: str) -> NamedCall | None:
    """Returns the one of some calls that is meant, None where none is.

    Raises:
        Ambiguous: Several are.
    """
    found = _meant(point, calls, text)
    if len(found) > 1:
        raise Ambiguous(
            f"{text} names {len(found)} calls at {point.target.id}",
            hint="give the id of one, or fork a checkpoint that its number names: @call:NAME:K",
            candidates=[_shown(call) for call in found],
        )
    return found[0] if found else None


def _made_before(reader: Reader, point: Point) -> Sequence[CallSite]:
    """Returns the calls that nodes made by themselves in the steps before the target."""
    target = point.target
    sites = read_calls(reader, read_lineage(reader, target.thread, target.ns, target.id))
    return [site for site in sites if site.task and site.answered_at is not None]


def _worked_in(point: Point, sites: Sequence[CallSite]) -> Refused:
    """The refusal of a result that a node has already made other state from."""
    site = sites[-1]
    place = replace(point.target, id=site.pending_at, ns=site.ns).place.target
    return Refused(
        f"{site.name} ({site.id or 'no id'}) was called by a node, which has worked its result into the state that"
        f" {point.target.id} holds",
        hint=f"fork the checkpoint whose step made the call: {place}",
        candidates=[{"name": one.name, "call_id": one.id, "id": one.pending_at, "ns": one.ns} for one in sites],
    )


_UNSTORED_AT: Final = -1
"""Place of a call that no row holds; calls that nodes made have the places below it, those of messages are above."""


def _meant(point: Point, calls: Sequence[NamedCall], text: str) -> Sequence[NamedCall]:
    """Returns the calls with an id, else those with a name; the target's own call alone where that is one of them."""
    found = [call for call in calls if call.id == text] or [call for call in calls if call.name == text]
    site = point.target.call
    if site is not None and text in (site.name, site.id):
        return [call for call in found if _is_site(point, call, site)] or found
    return found


def _is_site(point: Point, call: NamedCall, site: CallSite) -> bool:
    if (call.pair.call.position, call.id) != (site.position, site.id):
        return False
    if call.where == "made":
        return call.owner is not None and call.owner.id == site.task and call.asked_id in (None, site.ai_message_id)
    return point.messages[call.pair.at].id == site.ai_message_id


def _shown(call: NamedCall) -> Mapping[str, object]:
    result = None if call.old is None else text_of(call.old)
    return {"name": call.name, "call_id": call.id, "args": call.pair.call.args, "result": result}


def _waiting(point: Point) -> Iterator[NamedCall]:
    """Yields the calls that wait at the target, with the stored writes that answer them."""
    for pair in point.open_pairs:
        found = _stored_answers(point, pair)
        alike = [one for one in point.open_pairs if (one.call.id or "", one.call.name) == _id_and_name(pair)]
        if not found:
            yield NamedCall(pair, "pending")
        elif len(found) == len(alike):
            order = alike.index(pair)
            write, message = found[order]
            same = [at for at, one in enumerate(found) if one[0] is write]
            call = NamedCall(pair, "recorded", write=write, place=Place(same.index(order), len(same)))
            yield _of_message(call, message)
        else:
            yield NamedCall(pair, "recorded")


def _id_and_name(pair: Pair) -> tuple[str, str]:
    return pair.call.id or "", pair.call.name


def _answered(point: Point, pair: Pair) -> NamedCall:
    call = NamedCall(pair, "answered")
    return _of_message(call, point.messages[pair.answers[-1]]) if pair.answers else call


def _own_pairs(point: Point) -> Iterator[tuple[int, OwnCall]]:
    return ((_UNSTORED_AT - 1 - at, own) for at, own in enumerate(point.made))


def _made(own: OwnCall, at: int) -> NamedCall:
    stored = own.stored
    call = NamedCall(Pair(at, stored.call, ()), "made", write=stored.write, owner=own.task, asked_id=stored.asked.id)
    return _of_message(call, stored.answer)


def _owned(reader: Reader, point: Point, call: NamedCall, tools: ToolUse) -> NamedCall:
    """Returns a pending call with the task that is to answer it, any other as it is.

    Raises:
        Refused: No task of the step does, or its stored result cannot be told from another one's.
    """
    if call.where == "recorded" and call.write is None:
        n = len(_stored_answers(point, call.pair))
        raise Refused(f"{describe(call.pair.call)} has {n} recorded results at {point.target.id}")
    if call.where != "pending":
        return call
    owner = _owner(reader, point, call.pair, tools.nodes)
    if owner is not None:
        return replace(call, owner=owner)
    if call.name in tools.direct and point.unfinished:
        return replace(call, where="asked")
    runs_next = ", ".join(dict.fromkeys(point.next)) or "nothing"
    raise Refused(
        f"{describe(call.pair.call)} waits at {point.target.id}, but {runs_next} runs there and does not answer it",
        hint="fork the checkpoint right before its tool node, or answer a question first with --resume JSON",
    )


def _of_message(call: NamedCall, message: Message) -> NamedCall:
    artifact = (message.raw or {}).get("artifact")
    status = message.status or "success"
    return replace(call, old=message.content, status=status, has_artifact=artifact is not None)


def _stored_answers(point: Point, pair: Pair) -> Sequence[tuple[WriteRow, Message]]:
    """Returns the writes of the target that may hold the call's result, in order: several where calls share an id."""
    call_id, name = _id_and_name(pair)
    return [
        (write, message)
        for write in point.writes
        for message in _tool_messages(write)
        if (message.tool_call_id or "") == call_id and message.name in (None, name)
    ]


def _tool_messages(write: WriteRow) -> Iterator[Message]:
    if write.value is None:
        return
    try:
        value = decode(write.value)
    except DecodeError:
        return
    yield from (message for message in messages_in(value) if message.role == "tool")


def _owner(reader: Reader, point: Point, pair: Pair, tool_nodes: Collection[str]) -> Task | None:
    """Returns the task that is to answer a pending call: the Send that carries it, or the tool node that runs next."""
    sends = _sends(reader, point)
    for task in point.tasks:
        index = parse_task_path(task.path).index
        is_send = parse_task_path(task.path).kind == "send"
        if is_send and index is not None and index < len(sends) and mentions(sends[index], pair.call.id):
            return task
    known = [task for task in point.unfinished if task.name in tool_nodes and parse_task_path(task.path).kind == "pull"]
    return known[0] if len(known) == 1 else None


def _sends(reader: Reader, point: Point) -> Sequence[object]:
    """Returns the inert arguments of the Sends that run from the target, by position."""
    target = point.target
    for stored in reader.stored(target.thread, target.ns, [target.id], channels=[TASKS]):
        value = stored.values.get(TASKS)
        if value is not None and value.type != "empty":
            sends = decode(value)
            return sends if isinstance(sends, list) else []
    return []


def pending_sends(reader: Reader, point: Point) -> Sequence[object]:
    """Returns the inert Sends that run from the target; empty where it has none."""
    return _sends(reader, point) if any(parse_task_path(t.path).kind == "send" for t in point.tasks) else []


def mentions(value: object, call_id: str | None) -> bool:
    """Returns whether an inert value holds a tool call with that id; never where there is none."""
    if isinstance(value, Mapping):
        is_call = bool(call_id) and value.get("id") == call_id and "args" in value
        return is_call or any(mentions(inner, call_id) for inner in value.values())
    return isinstance(value, list) and any(mentions(inner, call_id) for inner in value)


def _with(call: NamedCall, form: Answer | Patch, recording: Recording) -> NamedCall:
    """Returns the call with one more form applied."""
    if isinstance(form, Answer):
        content = form.content if form.as_blocks else compact(form.content)
        return replace(call, content=content, forms=(*call.forms, form), status="success")
    base = call.content if call.content is not None else call.old
    if base is None and call.where != "unstored":
        base = _recorded_content(call, recording)
    if base is None:
        raise UsageError(
            f"{describe(call.pair.call)} has no recorded result that a field of could be changed",
            hint=f"give it a whole one: --answer {call.name}=JSON",
        )
    content, _ = patch_content(base, form.path, form.value, name=call.name)
    return replace(call, content=content, old=call.old if call.old is not None else base, forms=(*call.forms, form))


def _recorded_content(call: NamedCall, recording: Recording) -> object:
    entry = _recorded_entry(call.pair, recording)
    return entry[0] if entry else None


def _recorded_entry(pair: Pair, recording: Recording) -> tuple[object, str] | None:
    """Returns content and status of the recorded answer to a call, its own by id before another with its arguments."""
    args = pair.call.args if isinstance(pair.call.args, Mapping) else {}
    entries = recording.answers(Call(pair.call.name, args, pair.call.id).key)
    plain = [entry for entry in entries if entry.kind == "message"]
    own = [entry for entry in plain if entry.id == pair.call.id] or plain
    return (own[-1].content, own[-1].status) if own else None


def _kept(
    reader: Reader, point: Point, siblings: Sequence[Pair], recording: Recording, tools: ToolUse
) -> Iterator[NamedCall]:
    """Yields the siblings with their recorded answers.

    Raises:
        Refused: Some have none.
    """
    kept, missing = [], []
    for call in _waiting(point):
        if call.pair not in siblings:
            continue
        if call.where == "pending":
            entry = _recorded_entry(call.pair, recording)
            if entry is None:
                missing.append(call)
                continue
            call = replace(call, content=entry[0], status=entry[1])
        kept.append(_owned(reader, point, call, tools))
    if missing:
        names = ", ".join(describe(call.pair.call) for call in missing)
        raise Refused(
            f"{names} of the same message would stay unanswered, and a model refuses such a conversation",
            hint="answer every call of the message: "
            + " ".join(f"--answer {call.id or call.name}=JSON" for call in missing),
            candidates=[_shown(call) for call in missing],
        )
    yield from kept


def enclosing_calls(reader: Reader, target: Target, is_state: Callable[[str], bool]) -> frozenset[str]:
    """Returns the ids of the tool calls inside which a target in a namespace lies.

    Where one task made several calls it cannot be told in which of them the namespace arose: then those count whose
    tool runs a graph.

    Args:
        reader: Where the thread lives.
        target: The target.
        is_state: Says of a tool name whether it touches graph state only or runs another graph.
    """
    row = next(iter(reader.rows(target.thread, target.ns, ids=[target.id])), None)
    parents = row.metadata.get("parents") if row is not None else None
    found: set[str] = set()
    for outer, id in parents.items() if isinstance(parents, Mapping) else ():
        inside = target.ns[len(outer) + 1 :] if outer else target.ns
        task_id = inside.partition("|")[0].rpartition(":")[2]
        point = read_point(reader, replace(target, ns=str(outer), id=str(id)))
        task = next((task for task in point.tasks if task.id == task_id), None)
        if task is None:
            continue
        found |= {own.stored.call.id or "" for own in point.made if own.task == task and is_state(own.stored.call.name)}
        path, sends = parse_task_path(task.path), pending_sends(reader, point)
        if path.kind == "send" and path.index is not None and path.index < len(sends):
            sent = sends[path.index]
            found |= {pair.call.id or "" for pair in point.open_pairs if mentions(sent, pair.call.id)}
        else:
            found |= {pair.call.id or "" for pair in point.open_pairs if is_state(pair.call.name)}
    return frozenset(found - {""})
