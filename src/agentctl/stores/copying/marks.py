"""What a copy into SQLite says of where it comes from, given to its newest row as that is inserted.

An UPDATE would hold the whole row, of which metadata is the last and least part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentctl.stores.base import CopyPlan, Reader
from agentctl.stores.sqlite.writer import CHECKPOINT_VALUES

_NS, _ID, _METADATA = (CHECKPOINT_VALUES.index(name) for name in ("checkpoint_ns", "checkpoint_id", "metadata"))


@dataclass(frozen=True, slots=True)
class Mark:
    """The metadata that one root checkpoint has in a copy."""

    id: str
    metadata: Mapping[str, object]

    @property
    def text(self) -> bytes:
        """The metadata as the stock saver stores it."""
        return json.dumps(dict(self.metadata), ensure_ascii=False).encode("utf-8", "surrogatepass")

    def on(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yields rows given as `CHECKPOINT_VALUES`, the one that is marked with this metadata."""
        for row in rows:
            if row[_ID] == self.id and row[_NS] == "":
                yield (*row[:_METADATA], self.text, *row[_METADATA + 1 :])
            else:
                yield row


def marked(rows: Iterable[tuple[Any, ...]], mark: Mark | None) -> Iterator[tuple[Any, ...]]:
    """Yields rows given as `CHECKPOINT_VALUES`, as they are where there is no mark."""
    return iter(rows) if mark is None else mark.on(rows)


def marks_of(source: Reader, plans: Sequence[CopyPlan]) -> dict[str, Mark]:
    """Returns the mark of each copy by its thread. Metadata that cannot be read is left as it is.

    Args:
        source: Has the rows.
        plans: What is copied.
    """
    marks: dict[str, Mark] = {}
    for plan in plans:
        newest = newest_root(plan)
        if plan.provenance and newest is not None:
            for row in source.rows(plan.thread, ids=[newest]):
                if row.metadata_error is None:
                    marks[plan.as_thread] = Mark(newest, {**row.metadata, **plan.provenance})
    return marks


def newest_root(plan: CopyPlan) -> str | None:
    """Returns the root checkpoint of a plan that becomes the head of the copy."""
    return max((pick.id for pick in plan.picks if pick.ns == ""), default=None)
