"""Debug threads of an experiment: names that no other thread has, and copies under those names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from agentctl.errors import ThreadExists
from agentctl.experiments.experiment import Experiment
from agentctl.records.copies import CopyReport
from agentctl.stores.base import CopyPlan, Reader, Writer
from agentctl.stores.copying.execute import copy

Kind = Literal["replay", "fork"]

_ATTEMPTS: Final = 20


def free_names(writer: Writer, thread: str, kind: str, n: int) -> tuple[str, ...]:
    """Returns the next `n` thread names `THREAD.KIND-K` that the store does not have, K rising from the highest."""
    pattern = re.compile(re.escape(f"{thread}.{kind}-") + r"(\d+)")
    taken = [int(match[1]) for head in writer.heads(metadata=False) if (match := pattern.fullmatch(head.thread))]
    first = max(taken, default=0) + 1
    return tuple(f"{thread}.{kind}-{number}" for number in range(first, first + n))


def make_copies(
    experiment: Experiment,
    reader: Reader,
    plan: CopyPlan | None,
    thread: str,
    kind: Kind,
    n: int,
    facts: Mapping[str, str],
) -> tuple[tuple[str, ...], tuple[CopyReport, ...]]:
    """Copies a plan into `n` new debug threads, in one transaction; returns their names and what was written.

    The threads are told of before they are made. Where another command takes one of the names meanwhile, the next
    free ones are taken.

    Args:
        experiment: The experiment.
        reader: The store that the plan picks rows of.
        plan: What each thread begins with; None for nothing.
        thread: The source thread, after which the new ones are named.
        kind: What they are for.
        n: How many.
        facts: Metadata that says where they come from.

    Raises:
        Refused: The debug store cannot hold a value exactly. Nothing was written.
        StoreError: Reading or writing failed. Nothing was left behind.
    """
    writer, given = experiment.debug.writer, experiment.debug.names
    for attempt in range(1, _ATTEMPTS + 1):
        names = given(kind, n) if given else free_names(writer, thread, kind, n)
        if plan is None:
            return names, ()
        if experiment.on_threads is not None:
            experiment.on_threads([experiment.debug.place(name) for name in names], kind)
        try:
            return names, copy(reader, writer, [replace(plan, as_thread=name, provenance=facts) for name in names])
        except ThreadExists:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")
