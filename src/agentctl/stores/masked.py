"""Whether the rows of a thread hold masked values, which its own metadata says."""

from __future__ import annotations

from typing import Final

from agentctl.records.copies import MASKED
from agentctl.stores.base import Reader

_OURS: Final = "agentctl_"


def is_masked(reader: Reader, thread: str) -> bool:
    """Says whether a thread is a masked copy, or was made from one.

    The mark is on the newest row that was copied and on what experiments wrote after it. Behind rows that `resume`
    wrote it is looked for; a head without anything of agentctl's is an application's own.
    """
    newest = [row.id for row in reader.rows(thread, metadata=False)[:1]]
    head = next(iter(reader.rows(thread, ids=newest)), None)
    if head is None or not any(name.startswith(_OURS) for name in head.metadata):
        return False
    return MASKED in head.metadata or any(MASKED in row.metadata for row in reader.rows(thread))
