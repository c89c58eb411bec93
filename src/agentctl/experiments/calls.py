"""Which calls `--answer` and `--patch` name at a target, who owns them, and what becomes of their siblings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentctl.codec.messages import messages_in
from agentctl.codec.values import decode
from agentctl.errors import Ambiguous, DecodeError, NotFound, Refused, UsageError
from agentctl.experiments.experiment import Target
from agentctl.experiments.forms import Answer, Forms, Patch
from agentctl.experiments.json_text import compact, patch_content
from agentctl.experiments.pairing import Pair, describe
from agentctl.experiments.point import Point, read_point
from agentctl.records.copies import command
from agentctl.records.messages import Message
from agentctl.records.rows import WriteRow
from agentctl.records.threads import Task
from agentctl.sandbox.calls import Call
from agentctl.sandbox.recordings import Recording
from agentctl.stores.base import Reader
from agentctl.stores.reading.layout import TASKS, parse_task_path

Where = Literal["recorded", "pending", "answered"]


@dataclass(frozen=True, slots=True)
class NamedCall:
    """One call of the target and what a fork does with it.

    Attributes:
        pair: The call, and where its answer stands in the target's messages.
        where: Its result is a stored write of the target (`recorded`), is not there yet (`pending`), or already in the
            target's values (`answered`).
        content: The content that its ToolMessage is to have; None leaves it as it is.
        old: The content it has, None where it has none.
        forms: The forms that name it, none for a kept sibling.
        write: The stored write that holds the result, where it is recorded.
        owner: The task that owns it, where it is pending.
        status: Status of the ToolMessage to be made, `success` or `error`.
        has_artifact: Whether its message carries an artifact, which a patch of the content leaves as it is.
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


def name_calls(
    reader: Reader, point: Point, forms: Forms, recording: Recording, tool_nodes: Collection[str]
) -> tuple[NamedCall, ...]:
    """Returns the calls that the forms change, then the kept siblings of those that wait.

    Args:
        reader: Where the target lives.
        point: The target.
        forms: The fork's forms.
        recording: What the tools answered in the source thread, for siblings without a result at the target.
        tool_nodes: Names of the nodes that answer calls.

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
        pair = _find(point, form.call)
        key = (pair.at, pair.call.position)
        before = named.get(key) or _located(reader, point, pair, tool_nodes)
        if before.forms and isinstance(form, Answer):
            raise UsageError(f"{describe(pair.call)} is given more than one result")
        named[key] = _with(before, form, recording)
    siblings = [pair for pair in point.open_pairs if (pair.at, pair.call.position) not in named]
    if not any(call.where != "answered" for call in named.values()):
        return tuple(named.values())
    return (*named.values(), *_kept(reader, point, siblings, recording, tool_nodes))


def _find(point: Point, text: str) -> Pair:
    """Returns the call that a name or id stands for: among those that wait, else those just answered, else all."""
    pairs = point.pairing.pairs
    for group in (point.open_pairs, point.just_answered, pairs):
        found = [pair for pair in group if pair.call.id == text] or [pair for pair in group if pair.call.name == text]
        if len(found) == 1:
            return found[0]
        if found:
            raise Ambiguous(
                f"{text} names {len(found)} calls at {point.target.id}",
                hint="give the id of one, or fork a checkpoint where only one of them waits",
                candidates=[_shown(point, pair) for pair in found],
            )
    raise NotFound(
        f"no call {text} at {point.target.id}",
        hint="what waits there: " + command("show", point.target.place.target),
        candidates=[_shown(point, pair) for pair in point.open_pairs or pairs[-8:]],
    )


def _shown(point: Point, pair: Pair) -> Mapping[str, object]:
    answer = point.messages[pair.answers[0]].text if pair.answers else None
    return {"name": pair.call.name, "id": pair.call.id, "args": pair.call.args, "result": answer}


def _located(reader: Reader, point: Point, pair: Pair, tool_nodes: Collection[str]) -> NamedCall:
    if pair.answers:
        message = point.messages[pair.answers[-1]]
        return _of_message(NamedCall(pair, "answered"), message)
    found = _stored_answer(point, pair)
    if found is not None:
        write, message = found
        return _of_message(NamedCall(pair, "recorded", write=write), message)
    if pair not in point.open_pairs:
        return NamedCall(pair, "answered")
    return NamedCall(pair, "pending", owner=_owner(reader, point, pair, tool_nodes))


def _of_message(call: NamedCall, message: Message) -> NamedCall:
    artifact = (message.raw or {}).get("artifact")
    status = message.status or "success"
    return replace(call, old=message.content, status=status, has_artifact=artifact is not None)


def _stored_answer(point: Point, pair: Pair) -> tuple[WriteRow, Message] | None:
    """Returns the write of the target that holds the call's result.

    Raises:
        Refused: Several do.
    """
    found = []
    for write in point.writes:
        for message in _tool_messages(write):
            if (message.tool_call_id or "") == (pair.call.id or "") and message.name in (None, pair.call.name):
                found.append((write, message))
    if len(found) > 1:
        raise Refused(f"{describe(pair.call)} has {len(found)} recorded results at {point.target.id}")
    return found[0] if found else None


def _tool_messages(write: WriteRow) -> Iterator[Message]:
    if write.value is None:
        return
    try:
        value = decode(write.value)
    except DecodeError:
        return
    yield from (message for message in messages_in(value) if message.role == "tool")


def _owner(reader: Reader, point: Point, pair: Pair, tool_nodes: Collection[str]) -> Task:
    """Returns the task that is to answer a pending call: the Send that carries it, or the tool node that runs next.

    Raises:
        Refused: No task of the step does.
    """
    sends = _sends(reader, point)
    for task in point.tasks:
        index = parse_task_path(task.path).index
        is_send = parse_task_path(task.path).kind == "send"
        if is_send and index is not None and index < len(sends) and _mentions(sends[index], pair.call.id):
            return task
    known = [task for task in point.unfinished if task.name in tool_nodes and parse_task_path(task.path).kind == "pull"]
    if len(known) == 1:
        return known[0]
    runs_next = ", ".join(dict.fromkeys(point.next)) or "nothing"
    raise Refused(
        f"{describe(pair.call)} waits at {point.target.id}, but {runs_next} runs there and does not answer it",
        hint="fork the checkpoint right before its tool node, or answer a question first with --resume JSON",
    )


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


def _mentions(value: object, call_id: str | None) -> bool:
    if isinstance(value, Mapping):
        is_call = bool(call_id) and value.get("id") == call_id and "args" in value
        return is_call or any(_mentions(inner, call_id) for inner in value.values())
    return isinstance(value, list) and any(_mentions(inner, call_id) for inner in value)


def _with(call: NamedCall, form: Answer | Patch, recording: Recording) -> NamedCall:
    """Returns the call with one more form applied."""
    if isinstance(form, Answer):
        content = form.content if form.as_blocks else compact(form.content)
        return replace(call, content=content, forms=(*call.forms, form), status="success")
    base = call.content if call.content is not None else call.old
    if base is None:
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
    reader: Reader, point: Point, siblings: Sequence[Pair], recording: Recording, tool_nodes: Collection[str]
) -> Iterator[NamedCall]:
    """Yields the siblings with their recorded answers.

    Raises:
        Refused: Some have none.
    """
    kept, missing = [], []
    for pair in siblings:
        call = _located(reader, point, pair, tool_nodes)
        if call.where == "pending":
            entry = _recorded_entry(pair, recording)
            if entry is None:
                missing.append(pair)
                continue
            call = replace(call, content=entry[0], status=entry[1])
        kept.append(call)
    if missing:
        names = ", ".join(describe(pair.call) for pair in missing)
        raise Refused(
            f"{names} of the same message would stay unanswered, and a model refuses such a conversation",
            hint="answer every call of the message: "
            + " ".join(f"--answer {pair.call.id or pair.call.name}=JSON" for pair in missing),
            candidates=[_shown(point, pair) for pair in missing],
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
        path, sends = parse_task_path(task.path), pending_sends(reader, point)
        if path.kind == "send" and path.index is not None and path.index < len(sends):
            sent = sends[path.index]
            found |= {pair.call.id or "" for pair in point.open_pairs if _mentions(sent, pair.call.id)}
        else:
            found |= {pair.call.id or "" for pair in point.open_pairs if is_state(pair.call.name)}
    return frozenset(found - {""})
