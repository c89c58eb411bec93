"""Forks with a new checkpoint after the target: an update made on a scratch copy, and the copy taken from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentctl.errors import Blocked, GraphFailed, Refused
from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.forking.made import Given, Made, check_conversation, message_warnings, values_of
from agentctl.experiments.forking.making_state import wanted_values
from agentctl.experiments.forking.named_calls import NamedCall
from agentctl.experiments.forking.pairing import describe
from agentctl.experiments.forking.results import answered_of, substitutes
from agentctl.experiments.forking.scratch import THREAD, Scratch, scratch_copy
from agentctl.experiments.forking.state_values import replacement, verify_set
from agentctl.experiments.runs.graph_parts import command_ends, going_to, is_functional, nodes_of
from agentctl.stores.copying.selection import for_copy, for_replay
from agentctl.stores.reading.layout import END, START

if TYPE_CHECKING:
    from agentctl.experiments.runs.graph_parts import Graph


def from_update(given: Given, in_state: Sequence[NamedCall]) -> Iterator[Made]:
    """Yields a fork with an update as a node, or with another route; its rows are gone when the generator ends.

    Raises:
        Refused: It would not lead where it says.
    """
    target, forms, graph = given.target, given.forms, given.known_graph()
    with scratch_copy(given.source, given.replay_plan(), given.experiment.graph) as scratch:
        current = values_of(scratch.state(target.ns, target.id))
        wanted = wanted_values(given, current, in_state)
        made = _update(given, scratch, graph, wanted, current)
        state = scratch.state(target.ns, made)
        next_ = () if forms.goto == END else tuple(state.next)
        _refuse_other_routes(given, next_)
        if forms.update is None:
            verify_set(wanted, values_of(state))
        check_conversation(given, values_of(state), changed=given.point.channel in wanted)
        yield Made(
            reader=scratch.writer,
            plan=for_copy(scratch.writer, THREAD, target.ns, made, "all", THREAD),
            id=made,
            next=next_,
            as_node=forms.as_node,
            answered=tuple(answered_of(call) for call in in_state),
            substituted=substitutes(in_state),
            warnings=(*_left_behind(given), *message_warnings(given)),
        )


def refuse_lost_routes(given: Given, graph: Graph) -> None:
    """Refuses an update as a node that decides where to go, which a plain update does not say.

    Raises:
        Refused: The node routes by Command and no `--goto` is given.
    """
    node = given.forms.as_node
    ends = command_ends(graph, node) if node is not None and given.forms.goto is None else ()
    if ends:
        raise Refused(
            f"{node} says itself where to go, by Command, so an update as {node} leads nowhere",
            hint=f"say where: --goto {' | '.join(ends)}",
        )


def as_nodes_with_next(
    experiment: Experiment, target: Target, values: Mapping[str, Any]
) -> Mapping[str, Sequence[str]]:
    """Returns, for each node as which the target could be updated to go on, what would run next."""
    from langgraph.types import StateUpdate

    graph = experiment.graph
    if target.ns or is_functional(graph):
        return {}
    plan = for_replay(experiment.source, target.thread, "", target.id, THREAD)
    found: dict[str, Sequence[str]] = {}
    with scratch_copy(experiment.source, plan, graph) as scratch:
        for node in nodes_of(graph):
            try:
                made = scratch.update([StateUpdate(dict(values), node)], "", target.id)
            except (Refused, GraphFailed, Blocked):
                continue
            if then := tuple(scratch.state("", made).next):
                found[node] = then
    return found


def _update(given: Given, scratch: Scratch, graph: Graph, wanted: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """Makes the update and returns its checkpoint."""
    from langgraph.types import Command, StateUpdate

    forms, target = given.forms, given.target
    values = {name: replacement(graph, name, value, current) for name, value in wanted.items()}
    if forms.as_node is None:
        routed = going_to(graph, values, forms.goto)
        return scratch.update([StateUpdate(None, START)], target.ns, target.id, by=routed)
    values = {**(forms.update or {}), **values}
    update: Any = values if forms.goto is None else Command(update=values, goto=forms.goto)
    return scratch.update([StateUpdate(update, forms.as_node)], target.ns, target.id)


def _refuse_other_routes(given: Given, next_: tuple[str, ...]) -> None:
    """Refuses a `--goto` that does not lead to its node alone.

    Raises:
        Refused: It leads elsewhere too, or nowhere.
    """
    forms = given.forms
    if forms.goto not in (None, END) and next_ != (forms.goto,):
        raise Refused(
            f"{forms.as_node or given.target.id} does not lead to {forms.goto} alone: next would be "
            f"{', '.join(next_) or 'empty'}",
            hint="leave --as-node out" if forms.as_node else "choose another checkpoint",
        )


def _left_behind(given: Given) -> Iterator[str]:
    """Yields what a new checkpoint does not have: results of finished tasks, and of calls that wait."""
    as_node = given.forms.as_node
    done = [task.name for task in given.point.tasks if task.finished and task.name != as_node]
    if done and (as_node is not None or given.point.unfinished or START in done):
        yield f"recorded results at {given.target.id} are not in this branch: {', '.join(done)}"
    if given.forms.goto is not None and given.forms.goto not in given.point.next:
        for pair in given.point.open_pairs:
            yield f"{describe(pair.call)} has no result in this branch, and a model may refuse that"
