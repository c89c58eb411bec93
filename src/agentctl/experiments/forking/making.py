"""Making a fork: from a target and its forms to the rows that a copy consists of, checked before anything is written.

Three kinds of copy, by what a form changes:

- A result of the target's own step (`--answer`, `--patch`, `--update` as a task that runs there): `making_results`.
  Where code of a node asked for it, that node's task runs again and the run answers it: `making_reruns`.
- State at the target (`--set`, a result that is in the state already, `--memory`, nothing at all): `making_state`.
- A new checkpoint after it (`--goto`, `--as-node`): `making_update`.

A waiting question is answered, and new input given, on copies without a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from agentctl.errors import Refused
from agentctl.experiments.experiment import Experiment
from agentctl.experiments.forking.calls import name_calls
from agentctl.experiments.forking.forms import Forms, NewInput
from agentctl.experiments.forking.made import Given, Made
from agentctl.experiments.forking.making_results import from_results, from_returned, task_by_id, updated_task
from agentctl.experiments.forking.making_state import from_state
from agentctl.experiments.forking.making_update import from_update, refuse_lost_routes
from agentctl.experiments.forking.named_calls import NamedCall
from agentctl.experiments.forking.point import Point
from agentctl.experiments.forking.scratch import THREAD
from agentctl.experiments.runs.graph_parts import check_names, inner_graph, is_functional, nodes_of, tool_use
from agentctl.experiments.runs.running import node_path
from agentctl.stores.copying.selection import for_replay
from agentctl.stores.reading.layout import START


@contextmanager
def make_fork(experiment: Experiment, point: Point, forms: Forms) -> Iterator[Made]:
    """Makes a fork and checks it; nothing is written but to a scratch store, which is gone when the block ends.

    Raises:
        UsageError: A form names a node, channel or field that is not there.
        NotFound: A form names a call that is not there.
        Ambiguous: A form names several calls or tasks.
        Refused: The fork would not mean what it says.
        GraphFailed: A routing function or a reducer of the graph raised.
    """
    graph = inner_graph(experiment.graph, node_path(point.target.ns))
    task = None if graph is not None and forms.as_node in nodes_of(graph) else task_by_id(point, forms.as_node)
    if task is not None:
        forms = replace(forms, as_node=task.name)
    given = Given(experiment, point, forms, graph, task)
    if given.graph is None:
        _refuse_state_forms(given)
    else:
        check_names(given.graph, forms)
        refuse_lost_routes(given, given.graph)
    yield from _made(given)


def _made(given: Given) -> Iterator[Made]:
    forms, point, graph = given.forms, given.point, given.graph
    if forms.new_input is not None and not forms.assigns and not forms.calls:
        yield _from_input(given, forms.new_input)
        return
    if forms.calls and graph is not None and is_functional(graph) and not point.pairing.pairs:
        yield from_returned(given)
        return
    calls = _named(given) if forms.calls else ()
    in_step = tuple(call for call in calls if call.where != "answered")
    in_state = tuple(call for call in calls if call.where == "answered")
    task = updated_task(given)
    if in_step or task is not None:
        yield from_results(given, in_step, in_state, task)
    elif forms.goto is not None or forms.as_node is not None:
        yield from from_update(given, in_state)
    elif forms.resume and not forms.assigns and not in_state and given.waits:
        yield _from_answer(given)
    else:
        yield from_state(given, in_state)


def _named(given: Given) -> tuple[NamedCall, ...]:
    """Returns the calls that the forms name, with their siblings."""
    registry = given.experiment.policy.registry
    tools = tool_use(given.experiment.graph, registry.names if registry is not None else ())
    return name_calls(given.source, given.point, given.forms, given.experiment.recording, tools)


def _from_answer(given: Given) -> Made:
    """Returns a fork whose waiting question is answered; what had finished stays finished."""
    return Made(
        reader=given.source,
        plan=given.resume_plan(),
        id=given.target.id,
        next=given.going_on(given.point.unfinished),
    )


def _from_input(given: Given, new_input: NewInput) -> Made:
    """Returns a fork with new input: from the target, or in place of the input that the target holds."""
    target, row = given.target, given.point.row
    if target.ns:
        raise Refused("a namespace is given its input by the graph around it", hint="fork the root checkpoint")
    start = row.parent if row.source == "input" else target.id
    plan = for_replay(given.source, target.thread, "", start, THREAD) if start is not None else None
    return Made(
        reader=given.source,
        plan=plan,
        id=start,
        next=(START,),
        payload=new_input.value,
        warnings=(f"the question that waits at {target.id} is discarded",) if given.waits else (),
    )


def _refuse_state_forms(given: Given) -> None:
    """Refuses forms that need the graph of a namespace which the root graph does not declare.

    Raises:
        Refused: One is given.
    """
    forms = given.forms
    if forms.assigns or forms.update is not None or forms.as_node or forms.goto or forms.new_input:
        raise Refused(
            f"the graph of {given.target.ns} is run by a tool or a node and cannot be found from outside, so only "
            "results of calls can be changed in it",
            hint="use --answer or --patch, or fork the checkpoint around it",
        )
