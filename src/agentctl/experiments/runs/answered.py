"""Who answered a question that does not wait any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from agentctl.experiments.workflows.callers import ACTOR, BY
from agentctl.stores.base import Reader
from agentctl.stores.reading.layout import INTERRUPT
from agentctl.stores.reading.steps import StepReader


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answered a question.

    Attributes:
        by: Who took the thread on from it, '' where the rows do not say.
        at: When, UTC; None where it has not gone on yet.
        is_alone: Whether it was the only question of its step, so that whoever took the thread on has answered it.
    """

    by: str = ""
    at: datetime | None = None
    is_alone: bool = True

    def __str__(self) -> str:
        by = f" by {self.by}" if self.by else ""
        when = f"{by} at {self.at:%Y-%m-%dT%H:%M:%SZ}" if self.at else by
        return when if self.is_alone or not when else f", and the thread taken on{when}"


def find_answerer(reader: Reader, thread: str, interrupt_id: str) -> Answerer | None:
    """Returns who answered a question of the root graph; None where it was never asked or not answered."""
    asked_at = sorted({write.checkpoint_id for write in reader.writes(thread, "", channels=[INTERRUPT], value_bytes=0)})
    for id, tasks in StepReader(reader, thread, "").tasks(asked_at).items():
        questions = [(asked, task) for task in tasks for asked in task.interrupts]
        asking = [task for asked, task in questions if asked.id == interrupt_id]
        if not asking:
            continue
        after = min((row for row in reader.rows(thread) if row.parent == id), key=lambda row: row.id, default=None)
        if after is not None:
            return replace(answerer_of(after.metadata, after.at), is_alone=len(questions) == 1)
        if any(task.finished for task in asking):
            return Answerer()
    return None


def answerer_of(metadata: Mapping[str, object], at: datetime | None) -> Answerer:
    """Returns who wrote a checkpoint, from its metadata."""
    return Answerer(str(metadata.get(BY) or metadata.get(ACTOR) or ""), at)
