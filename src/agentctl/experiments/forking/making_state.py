"""Forks that change state at the target: a replay copy with writes of no task.

The step runs again with the new state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentctl.codec.messages import messages_in
from agentctl.errors import Refused
from agentctl.experiments.comparing.values_diff import same
from agentctl.experiments.forking.made import Given, Made, artifact_warnings, check_conversation, values_of
from agentctl.experiments.forking.named_calls import NamedCall
from agentctl.experiments.forking.pairing import describe
from agentctl.experiments.forking.results import answered_of, substitutes
from agentctl.experiments.forking.scratch import scratch_copy
from agentctl.experiments.forking.sends import mentions, pending_sends
from agentctl.experiments.forking.state_values import (
    answered_in,
    assigned,
    null_writes,
    refuse_without_conversation,
    verify_set,
)
from agentctl.records.copies import command
from agentctl.records.messages import Message
from agentctl.sandbox.inert import inert
from agentctl.stores.base import CopyPlan
from agentctl.stores.reading.layout import START
from agentctl.stores.reading.lineage import read_tree


def from_state(given: Given, in_state: Sequence[NamedCall]) -> Made:
    """Returns a fork with other state, with corrected results that are in the state already, or with no change."""
    _refuse_stale_sends(given)
    _refuse_under_input(given)
    plan = given.replay_plan()
    if given.forms.assigns or in_state:
        plan = with_null_writes(given, plan, in_state, rerun=True)
    done = [task.name for task in given.point.tasks if task.finished]
    again = done if given.point.unfinished else []
    return Made(
        reader=given.source,
        plan=plan,
        id=given.target.id,
        next=given.point.next,
        answered=tuple(answered_of(call) for call in in_state),
        substituted=substitutes(in_state),
        payload=given.forms.new_input.value if given.forms.new_input else None,
        warnings=(
            *(f"finished in the source, and run again here: {name}" for name in again),
            *artifact_warnings(in_state),
        ),
    )


def with_null_writes(given: Given, plan: CopyPlan, in_state: Sequence[NamedCall], *, rerun: bool = False) -> CopyPlan:
    """Returns a plan with writes that set the state, after checking on a copy that the channels then hold it.

    Args:
        given: What the fork is made from.
        plan: Its rows.
        in_state: Results that are in the state already, to be changed there.
        rerun: Whether the target's step runs again with that state.

    Raises:
        UsageError: A path leads nowhere.
        Refused: A channel would hold something else, a conversation would be broken, or a pending Send carries a call
            that the state would have otherwise.
    """
    if given.graph is None:
        refuse_without_conversation(in_state)
    graph, target = given.known_graph(), given.target
    with scratch_copy(given.source, plan, given.experiment.graph) as scratch:
        current = values_of(scratch.state(target.ns, target.id))
    wanted = wanted_values(given, current, in_state)
    edits, extra = null_writes(graph, target.ns, target.id, wanted, current, given.point.writes)
    plan = replace(plan, edits={**plan.edits, **edits}, extra_writes=(*plan.extra_writes, *extra))
    with scratch_copy(given.source, plan, given.experiment.graph) as scratch:
        values = values_of(scratch.state(target.ns, target.id))
    verify_set(wanted, values)
    check_conversation(given, values, changed=given.point.channel in wanted)
    if rerun and given.point.channel in wanted:
        _refuse_stale_calls(given, messages_in(inert(wanted[given.point.channel])))
    return plan


def wanted_values(given: Given, current: Mapping[str, Any], in_state: Sequence[NamedCall]) -> dict[str, Any]:
    """Returns what channels are to hold: what `--set` asks for, and the conversation with corrected results."""
    wanted = assigned(current, given.forms.assigns)
    channel = given.point.channel
    if in_state and channel is not None:
        wanted[channel] = answered_in(wanted.get(channel, current.get(channel, [])), in_state)
    return wanted


def _refuse_stale_sends(given: Given) -> None:
    """Refuses to set what pending Sends carry already: the nodes would be given the old value.

    Raises:
        Refused: A Send carries it.
    """
    sends = pending_sends(given.source, given.point) if given.forms.assigns else ()
    for assign in given.forms.assigns:
        old = given.point.values.get(assign.channel)
        if any(_carries(send, assign.channel, old) for send in sends):
            raise Refused(
                f"the Sends that run at {given.target.id} carry {assign.channel} already, with its old value",
                hint=f"set it where they are made: fork {given.point.row.parent or 'an earlier checkpoint'}",
            )


def _refuse_under_input(given: Given) -> None:
    """Refuses to set what the input, which is read next, writes too: the channel would hold something else.

    Raises:
        Refused: The input writes it, or it cannot be told what it writes.
    """
    taking_in = [task.id for task in given.point.tasks if task.name == START]
    written = {write.channel for write in given.point.writes if write.task_id in taking_in}
    for assign in given.forms.assigns if taking_in else ():
        if assign.channel in written or not written:
            raise Refused(
                f"the input that is read next at {given.target.id} writes {assign.channel} too",
                hint=f"set it after that, at {_after_input(given) or 'the next checkpoint'}, or change the input:"
                f" {command('fork', given.target.place.target, '--input', 'FILE')}",
            )


def _after_input(given: Given) -> str | None:
    """Returns the checkpoint that the input made, as a target."""
    target = given.target
    children = read_tree(given.source, target.thread, target.ns).children.get(target.id, ())
    rows = given.source.rows(target.thread, target.ns, ids=list(children)) if children else []
    made = next((row.id for row in rows if row.source == "loop"), None)
    return replace(target, id=made).place.target if made else None


def _refuse_stale_calls(given: Given, messages: Sequence[Message]) -> None:
    """Refuses to change a call that a pending Send carries already: the tool would be called as before.

    Raises:
        Refused: A Send carries it.
    """
    calls = [call for message in messages for call in message.tool_calls]
    sends = pending_sends(given.source, given.point)
    for pair in given.point.open_pairs:
        sent = any(mentions(send, pair.call.id) for send in sends)
        if sent and not any(
            (call.id, call.name, call.args) == (pair.call.id, pair.call.name, pair.call.args) for call in calls
        ):
            raise Refused(
                f"a Send that runs at {given.target.id} carries {describe(pair.call)} already, as it was",
                hint=f"change it where it is made: fork {given.point.row.parent or 'an earlier checkpoint'}",
            )


def _carries(send: object, channel: str, old: object) -> bool:
    """Returns whether a Send's argument is or has the value of a channel, or is an item of it.

    An agent sends each tool call together with its whole state.

    Source: `ToolCallWithContext` (langgraph-prebuilt 1.1.3, prebuilt/tool_node.py).
    """
    arg = send.get("arg", send) if isinstance(send, Mapping) else send
    state = arg.get("state") if isinstance(arg, Mapping) else None
    if any(isinstance(one, Mapping) and channel in one for one in (arg, state)):
        return True
    if same(arg, old):
        return True
    return isinstance(old, list) and any(same(arg, item) for item in old)
