"""Which of the questions that a thread's head shows were answered.

LangGraph keeps the row of a question after it was answered, until the step's checkpoint is saved; `get_state` shows it
all the while. Where the answer is kept, because what came after it failed, a second answer would be given to nobody, or
to the next question that the node asks.

Source: langgraph 1.2.24, types.py (`interrupt`: a question's id is made of its task's namespace and of how many answers
the task had then), pregel/_runner.py (`commit`: a task that fails stores the answers it took beside its error; one that
is killed or blocked stores nothing, and its question waits). `tests/contract/test_waiting.py` fails when that changes.
"""

from __future__ import annotations

from agentctl.codec.values import decode
from agentctl.records.threads import Task
from agentctl.stores.base import Reader
from agentctl.stores.reading.layout import INTERRUPT, RESUME
from agentctl.stores.reading.steps import StepReader


def find_answered(reader: Reader, thread: str) -> frozenset[str]:
    """Returns the ids of questions that a thread's head shows and that do not wait any more."""
    rows = reader.rows(thread, metadata=False)
    if not rows:
        return frozenset()
    shown, waiting = _look(reader, thread, "", rows[0].id)
    return shown - waiting


def _look(reader: Reader, thread: str, ns: str, head: str) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the ids of the questions that a checkpoint shows, and of those that wait."""
    shown: set[str] = set()
    waiting: set[str] = set()
    n_answers = _answers_kept(reader, thread, ns, head)
    for task in StepReader(reader, thread, ns).tasks([head]).get(head, ()):
        asked = {question.id for question in task.interrupts if question.id is not None}
        shown |= asked
        if asked:
            waiting |= asked - _answered_by(task, ns, n_answers.get(task.id, 0))
            waiting -= _gone_on_inside(reader, thread, task, asked)
    return frozenset(shown), frozenset(waiting)


def _answers_kept(reader: Reader, thread: str, ns: str, head: str) -> dict[str, int]:
    """Returns how many answers each task of a checkpoint has taken, by task id."""
    counts: dict[str, int] = {}
    for write in reader.writes(thread, ns, [head], channels=[RESUME]):
        answers = decode(write.value) if write.value is not None else None
        counts[write.task_id] = len(answers) if isinstance(answers, list) else 0
    return counts


def _answered_by(task: Task, ns: str, n_answers: int) -> set[str]:
    """Returns the ids of the questions that a task has asked by itself and got an answer to."""
    from langgraph.types import _interrupt_id

    own = "|".join(part for part in (ns, f"{task.name}:{task.id}") if part)
    return {_interrupt_id(own, before) for before in range(n_answers)}


def _gone_on_inside(reader: Reader, thread: str, task: Task, asked: set[str]) -> set[str]:
    """Returns those of a task's questions that the graph which it runs has asked and gone on from."""
    inner = reader.rows(thread, task.ns, metadata=False) if task.ns else ()
    if not task.ns or not inner:
        return set()
    asked_at = {write.checkpoint_id for write in reader.writes(thread, task.ns, channels=[INTERRUPT], value_bytes=0)}
    steps = StepReader(reader, thread, task.ns).tasks(sorted(asked_at)).values()
    inside = {question.id for tasks in steps for each in tasks for question in each.interrupts}
    _, waiting = _look(reader, thread, task.ns, inner[0].id)
    return (asked & inside) - waiting
