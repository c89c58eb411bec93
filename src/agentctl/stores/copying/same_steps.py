"""Whether rows that were made say what the source stated: the step that runs from each checkpoint, task by task."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.errors import StoreError
from agentctl.records.threads import Task
from agentctl.stores.base import Reader, RowPick
from agentctl.stores.copying.picking import by_namespace
from agentctl.stores.copying.stated_rows import StatedRows
from agentctl.stores.reading.steps import StepReader

_Step = list[tuple[str, str, str | None, tuple[object, ...]]]


def same_steps(source: StatedRows, copy: Reader, thread: str, as_thread: str, picks: Sequence[RowPick]) -> None:
    """Compares tasks, their errors and their questions, of checkpoints that are copied with all their writes.

    Args:
        source: The rows that were made.
        copy: Where they were copied to.
        thread: Their thread.
        as_thread: The copy.
        picks: What was copied.

    Raises:
        StoreError: A step of the copy is another than the source states.
    """
    for ns, by_id in by_namespace(picks).items():
        whole = [id for id, pick in by_id.items() if _takes_all(pick)]
        stated = StepReader(source.source, thread, ns, results=False).tasks(whole)
        made = StepReader(copy, as_thread, ns, results=False).tasks(whole)
        for id in whole:
            expected, found = _step(stated.get(id, ())), _step(made.get(id, ()))
            if expected != found:
                raise StoreError(
                    f"the copy {as_thread} was taken back: checkpoint {id} would run {_words(found)}, and the source"
                    f" states {_words(expected)}",
                    hint="read the database that the server checkpoints into, if you can",
                )


def _takes_all(pick: RowPick) -> bool:
    return pick.writes == "all" and not pick.except_tasks and pick.channels is None and not pick.except_null_resume


def _step(tasks: Sequence[Task]) -> _Step:
    """Returns a step in no order of its tasks."""
    return sorted(
        (task.name, task.id, task.error, tuple((one.id, repr(one.value)) for one in task.interrupts)) for task in tasks
    )


def _words(step: _Step) -> str:
    return ", ".join(f"{name} ({id[-8:]})" for name, id, _, _ in step) or "nothing"
