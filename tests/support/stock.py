"""What stock LangGraph says of a thread, and how far our reading of its rows differs from that."""

from __future__ import annotations

from collections import Counter
from typing import Any

from langgraph.types import Interrupt as StockInterrupt
from langgraph.types import StateSnapshot

from agentctl.records.threads import Task
from agentctl.stores.base import Reader
from agentctl.stores.reading.steps import Step, StepReader
from tests.catalog import config_of


def stock_history(graph: Any, thread: str, ns: str = "") -> dict[str, StateSnapshot]:
    """Returns the snapshots of a namespace by checkpoint id, newest first; empty where stock cannot find its graph."""
    try:
        snapshots = list(graph.get_state_history(config_of(thread, checkpoint_ns=ns)))
    except ValueError as error:
        assert "Subgraph" in str(error), error
        return {}
    return {snapshot.config["configurable"]["checkpoint_id"]: snapshot for snapshot in snapshots}


def differences(reader: Reader, graph: Any, thread: str, ns: str = "") -> list[str]:
    """Compares every checkpoint of a namespace; returns one line a difference."""
    stock = stock_history(graph, thread, ns)
    if not stock:
        return []
    steps = StepReader(reader, thread, ns)
    found = {step.row.id: step for step in steps.steps(steps.tree.ids)}
    lines = [] if list(found) == list(stock) else [f"ids: {list(found)} != {list(stock)}"]
    for checkpoint_id, snapshot in stock.items():
        if checkpoint_id in found:
            lines += [f"{checkpoint_id} {line}" for line in _step_differences(found[checkpoint_id], snapshot)]
    return lines


def _step_differences(step: Step, snapshot: StateSnapshot) -> list[str]:
    lines: list[str] = []
    parent = snapshot.parent_config and snapshot.parent_config["configurable"]["checkpoint_id"]
    if step.row.parent != parent:
        lines.append(f"parent {step.row.parent} != {parent}")
    if Counter(step.next) != Counter(snapshot.next):
        lines.append(f"next {step.next} != {snapshot.next}")
    ours = sorted(map(_our_task, step.tasks), key=str)
    theirs = sorted(map(_stock_task, snapshot.tasks), key=str)
    if ours != theirs:
        lines.append(f"tasks {ours} != {theirs}")
    questions = sorted((i.id or "") for task in step.tasks for i in task.interrupts)
    stock_questions = sorted(i.id for i in snapshot.interrupts)
    if questions != stock_questions:
        lines.append(f"interrupts {questions} != {stock_questions}")
    return lines


def _our_task(task: Task) -> tuple[Any, ...]:
    return task.id, task.name, task.finished, task.error, len(task.interrupts)


def _stock_task(task: Any) -> tuple[Any, ...]:
    error = None if task.error is None else str(task.error)
    return task.id, task.name, task.result is not None, error, len(task.interrupts)


def is_question(value: object) -> bool:
    return isinstance(value, StockInterrupt)
