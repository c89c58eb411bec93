"""What a child's runs left behind, brought into the debug store: whole threads, verified, under the names it was given.

The file is the child's, which has ended: it is read as any file of others, nothing is written to it, and no class is
built from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentctl.errors import Refused, ThreadExists
from agentctl.records.copies import CopyReport
from agentctl.stores.base import CopyPlan, Reader, RowPick, Writer
from agentctl.stores.copying.execute import copy
from agentctl.stores.sqlite.held import held
from agentctl.stores.sqlite.reader import SqliteReader


def bring_home(scratch: Path, names: Sequence[str], debug: Writer) -> tuple[CopyReport, ...]:
    """Copies the threads of these names that there are, all or none.

    Args:
        scratch: The file of the child's debug threads.
        names: The names that it was given.
        debug: The debug store.

    Raises:
        Refused: the debug store cannot hold a value exactly, or has one of the threads. Nothing was written.
        StoreError: reading or writing failed. Nothing was left behind.
    """
    if scratch.is_symlink() or not scratch.is_file():
        return ()
    with held(scratch) as file:
        reader = SqliteReader(scratch, file=file)
        plans = [_whole(reader, name) for name in names]
        try:
            return copy(reader, debug, [plan for plan in plans if plan.picks])
        except ThreadExists as error:
            raise Refused(
                f"{error.message}, made meanwhile by another command", hint="run the experiment again"
            ) from error


def _whole(reader: Reader, name: str) -> CopyPlan:
    picks = tuple(
        RowPick(ns, row.id) for ns in reader.namespaces(name) for row in reversed(reader.rows(name, ns, metadata=False))
    )
    return CopyPlan(name, name, picks)
