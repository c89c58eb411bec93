"""Which calls `--answer` and `--patch` name at a target, who owns them, and what becomes of their siblings.

Where a result stands tells how it is changed. A ToolNode's is a stored write, or becomes one. What code of a node got
from a tool is in no row by itself (the node worked with it, and may have stored the message too), so that task runs
again and asks again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agentctl.codec.messages import text_of
from agentctl.errors import Ambiguous, NotFound, Refused, UsageError
from agentctl.experiments.forking.forms import Answer, Forms, Patch
from agentctl.experiments.forking.json_text import compact, patch_content
from agentctl.experiments.forking.named_calls import (
    NamedCall,
    answered_call,
    made_calls,
    stored_answers,
    unstored_call,
    waiting_calls,
)
from agentctl.experiments.forking.pairing import Pair, describe
from agentctl.experiments.forking.point import Point
from agentctl.experiments.forking.sends import owner_of
from agentctl.experiments.runs.graph_parts import ToolUse
from agentctl.records.copies import command
from agentctl.records.messages import CallSite
from agentctl.sandbox.calls import Call
from agentctl.sandbox.recordings import Recording
from agentctl.stores.base import Reader
from agentctl.stores.reading.calls import read_calls
from agentctl.stores.reading.lineage import read_lineage


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
    named: dict[tuple[int, int, str], NamedCall] = {}
    given: tuple[Answer | Patch, ...] = (*forms.answers, *forms.patches)
    for form in given:
        located = _locate(reader, point, form.call, tools)
        before = named.get(_key(located.pair), located)
        if before.forms and isinstance(form, Answer):
            raise UsageError(f"{describe(before.pair.call)} is given more than one result")
        named[_key(located.pair)] = _with(before, form, recording)
    calls = tuple(named.values())
    if any(call.where in ("recorded", "pending") for call in calls):
        siblings = [pair for pair in point.open_pairs if _key(pair) not in named]
        calls += tuple(_kept(reader, point, siblings, recording, tools))
    _refuse_half_answered(point, calls)
    if any(call.where == "made" for call in calls):
        calls += tuple(one for one in made_calls(point) if _key(one.pair) not in named)
    return calls


def _key(pair: Pair) -> tuple[int, int, str]:
    return pair.at, pair.call.position, pair.call.name


def _locate(reader: Reader, point: Point, text: str, tools: ToolUse) -> NamedCall:
    """Returns the call that a name or id stands for: one of the target's step, else one just answered, else any."""
    in_step = [*waiting_calls(point), *made_calls(point)]
    found = _one_of(point, in_step, text)
    if found is not None:
        return _owned(reader, point, found, tools)
    own = [site for site in _made_before(reader, point) if text in (site.name, site.id)]
    for pairs in (point.just_answered, [pair for pair in point.pairing.pairs if pair not in point.open_pairs]):
        calls = [answered_call(point, pair) for pair in pairs]
        found = _one_of(point, [call for call in calls if not any(_is_site(point, call, site) for site in own)], text)
        if found is not None:
            return found
    if text in tools.direct and (point.unfinished or not own):
        return unstored_call(text)
    if own:
        raise _worked_in(point, own)
    raise NotFound(
        f"no call {text} at {point.target.id}",
        hint="what waits there: " + command("show", point.target.place.target),
        candidates=[
            _shown(call) for call in in_step or [answered_call(point, pair) for pair in point.pairing.pairs[-8:]]
        ],
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


def _owned(reader: Reader, point: Point, call: NamedCall, tools: ToolUse) -> NamedCall:
    """Returns a pending call with the task that is to answer it, any other as it is.

    Where no task will, because its step has passed, the result has its place in the state.

    Raises:
        Refused: No task of the step does, or its stored result cannot be told from another one's.
    """
    if call.where == "recorded" and call.write is None:
        n = len(stored_answers(point, call.pair))
        raise Refused(f"{describe(call.pair.call)} has {n} recorded results at {point.target.id}")
    if call.where != "pending":
        return call
    owner = owner_of(reader, point, call.pair, tools.nodes)
    if owner is not None:
        return replace(call, owner=owner)
    if call.name in tools.direct and point.unfinished:
        return replace(call, where="asked")
    if point.is_left_open(call.pair):
        return replace(call, where="answered")
    runs_next = ", ".join(dict.fromkeys(point.next))
    raise Refused(
        f"{describe(call.pair.call)} waits at {point.target.id}, but {runs_next} runs there and does not answer it",
        hint="fork the checkpoint right before its tool node, or answer a question first with --resume JSON",
    )


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
    for call in waiting_calls(point):
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
        raise _left_open(missing)
    yield from kept


def _refuse_half_answered(point: Point, calls: Sequence[NamedCall]) -> None:
    """Refuses to put the result of one call into the state, and none of another open call of its message.

    Raises:
        Refused: There is such another call.
    """
    put_in = {call.pair.at for call in calls if call.where == "answered" and not call.pair.answers}
    given = {_key(call.pair) for call in calls}
    missing = [pair for pair in point.pairing.open_calls() if pair.at in put_in and _key(pair) not in given]
    if missing:
        raise _left_open([answered_call(point, pair) for pair in missing])


def _left_open(missing: Sequence[NamedCall]) -> Refused:
    names = ", ".join(describe(call.pair.call) for call in missing)
    return Refused(
        f"{names} of the same message would stay unanswered, and a model refuses such a conversation",
        hint="answer every call of the message: "
        + " ".join(f"--answer {call.id or call.name}=JSON" for call in missing),
        candidates=[_shown(call) for call in missing],
    )
