"""What stock LangGraph says of a thread, and how far our reading of its rows differs from that."""

from __future__ import annotations

from collections import Counter
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import StateSnapshot

from agentctl.codec.values import decode
from agentctl.records.rows import Stored
from agentctl.records.threads import Task
from agentctl.stores.base import Reader
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.steps import Step, StepReader
from tests.catalog import config_of

_SERDE = JsonPlusSerializer()


def inert(value: object) -> object:
    """Returns a live value as our codec shows its stored form."""
    return decode(Stored(*_SERDE.dumps_typed(value)))


def stock_history(graph: Any, thread: str, ns: str = "") -> dict[str, StateSnapshot]:
    """Returns the snapshots of a namespace by checkpoint id, newest first; empty where stock cannot find its graph."""
    try:
        snapshots = list(graph.get_state_history(config_of(thread, checkpoint_ns=ns)))
    except ValueError as error:
        assert "Subgraph" in str(error), error
        return {}
    return {snapshot.config["configurable"]["checkpoint_id"]: snapshot for snapshot in snapshots}


def differences(reader: Reader, graph: Any, thread: str, ns: str = "", *, silent_ids: bool = True) -> list[str]:
    """Compares ids, parents, next, tasks, errors and interrupts of every checkpoint; returns one line a difference.

    Args:
        reader: Our side.
        graph: The stock side, on the same store.
        thread: Thread id.
        ns: Namespace.
        silent_ids: Compare the ids of tasks that have left no rows too. They cannot always be known: a join channel
            that never got a value is in no row, and the id is made of all triggers.
    """
    stock = stock_history(graph, thread, ns)
    if not stock:
        return []
    steps = StepReader(reader, thread, ns)
    found = {step.row.id: step for step in steps.steps(steps.tree.ids)}
    lines = [] if list(found) == list(stock) else [f"ids: {list(found)} != {list(stock)}"]
    for checkpoint_id, snapshot in stock.items():
        if checkpoint_id in found:
            lines += [
                f"{checkpoint_id} {line}" for line in _step_differences(found[checkpoint_id], snapshot, silent_ids)
            ]
    return lines


def value_differences(reader: Reader, graph: Any, thread: str) -> list[str]:
    """Compares the root graph's channel values at every checkpoint; channels that are noted as uncertain are left out.

    A loaded graph also shows the empty value of a reducer that has never been written. An entrypoint, which has no
    state, shows what it returned; we keep that under `__end__`.
    """
    lines: list[str] = []
    for checkpoint_id, snapshot in stock_history(graph, thread).items():
        read = read_values(reader, thread, "", checkpoint_id)
        expected: dict[str, Any] = {"__end__": snapshot.values} if "__end__" in read.values else snapshot.values or {}
        ours = {name: value for name, value in read.values.items() if name in expected and name not in read.notes}
        theirs = {name: inert(value) for name, value in expected.items() if name not in read.notes}
        if ours != {name: value for name, value in theirs.items() if name in ours or value}:
            lines.append(f"{checkpoint_id} values {ours} != {theirs}")
    return lines


def _step_differences(step: Step, snapshot: StateSnapshot, silent_ids: bool) -> list[str]:
    lines: list[str] = []
    parent = snapshot.parent_config and snapshot.parent_config["configurable"]["checkpoint_id"]
    if step.row.parent != parent:
        lines.append(f"parent {step.row.parent} != {parent}")
    if Counter(step.next) != Counter(snapshot.next):
        lines.append(f"next {step.next} != {snapshot.next}")
    ours = sorted((_our_task(task, silent_ids) for task in step.tasks), key=str)
    theirs = sorted((_stock_task(task, silent_ids) for task in snapshot.tasks), key=str)
    if ours != theirs:
        lines.append(f"tasks {ours} != {theirs}")
    questions = sorted((i.id or "", str(i.value)) for task in step.tasks for i in task.interrupts)
    stock_questions = sorted((i.id, str(inert(i.value))) for i in snapshot.interrupts)
    if questions != stock_questions:
        lines.append(f"interrupts {questions} != {stock_questions}")
    return lines


def _our_task(task: Task, silent_ids: bool) -> tuple[Any, ...]:
    left_rows = task.finished or task.error is not None or bool(task.interrupts)
    task_id = task.id if silent_ids or left_rows else ""
    return task_id, task.name, task.finished, task.error, len(task.interrupts)


def _stock_task(task: Any, silent_ids: bool) -> tuple[Any, ...]:
    left_rows = task.result is not None or task.error is not None or bool(task.interrupts)
    task_id = task.id if silent_ids or left_rows else ""
    error = None if task.error is None else str(task.error)
    return task_id, task.name, task.result is not None, error, len(task.interrupts)
