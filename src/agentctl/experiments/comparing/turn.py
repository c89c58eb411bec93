"""The user turn that a checkpoint belongs to: where it begins, and which recorded results it rests on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agentctl.errors import NotFound
from agentctl.experiments.judging.verdict import Untried
from agentctl.records.copies import command
from agentctl.records.messages import CallSite
from agentctl.records.rows import Lineage
from agentctl.stores.base import Reader
from agentctl.stores.reading.calls import read_calls
from agentctl.stores.reading.lineage import read_lineage

_MAX_RESULT_CHARS = 240


@dataclass(frozen=True, slots=True)
class Span:
    """The checkpoints of one turn: ids from `first` (the input) up to, not with, `end` (None where it is the last)."""

    first: str
    end: str | None

    def holds(self, checkpoint_id: str) -> bool:
        """Tells whether a checkpoint of any namespace was made in this turn; ids are time-ordered."""
        return self.first <= checkpoint_id and (self.end is None or checkpoint_id < self.end)


def turn_of(lineage: Lineage, checkpoint_id: str) -> Span:
    """Returns the turn of a checkpoint: from the newest input checkpoint at or before it to the next input."""
    inputs = [row.id for row in lineage.rows if row.source == "input"]
    before = [checkpoint for checkpoint in inputs if checkpoint <= checkpoint_id]
    after = [checkpoint for checkpoint in inputs if checkpoint > checkpoint_id]
    return Span(before[-1] if before else lineage.rows[0].id, after[0] if after else None)


def turn_start(reader: Reader, thread: str, tip: str | None = None) -> str:
    """Returns the checkpoint from which the last turn of a branch runs: the one after its input.

    Raises:
        NotFound: the branch has no checkpoint after an input.
    """
    lineage = read_lineage(reader, thread, tip=tip)
    first = turn_of(lineage, lineage.tip.id).first
    following = [row for row in lineage.rows if row.id > first]
    if not following:
        raise NotFound(
            f"no step was taken in the last turn of {thread}", hint=command("history", reader.info.target(thread))
        )
    return following[0].id


def recorded_results(reader: Reader, thread: str, tip: str | None, checkpoint_id: str) -> tuple[CallSite, ...]:
    """Returns the answered calls of the turn that a checkpoint belongs to, on the branch that ends at `tip`."""
    lineage = read_lineage(reader, thread, tip=tip)
    span = turn_of(lineage, checkpoint_id)
    return tuple(site for site in read_calls(reader, lineage) if site.answer and span.holds(site.pending_at))


def untried(
    sites: Sequence[CallSite], tried: Collection[str], *, thread: str, rest: Sequence[str]
) -> tuple[Untried, ...]:
    """Returns the recorded results that no fork has changed, each with a command that forks it.

    Args:
        sites: Answered calls of the turn.
        tried: Call ids that a fork has substituted.
        thread: The thread as a target without a revision.
        rest: The options that the next command has besides, such as `--check`.
    """
    return tuple(
        Untried(site.name, site.id, _command(site, thread, rest))
        for site in sites
        if site.id not in tried and site.answer is not None
    )


def _command(site: CallSite, thread: str, rest: Sequence[str]) -> str:
    """The recorded result stands in the command, to be edited; a long one is shown by another command first."""
    target = f"{thread}@{site.pending_at}"
    content = site.answer.content if site.answer else ""
    result = json.dumps(content, ensure_ascii=False)
    if len(result) > _MAX_RESULT_CHARS:
        return shlex.join(["agentctl", "show", target, "--call", site.id or site.name])
    return shlex.join(["agentctl", "diagnose", target, "--answer", f"{site.id or site.name}={result}", *rest])
