"""Whether the rows of a thread hold masked values, which its own metadata says."""

from __future__ import annotations

from agentctl.records.copies import MASKED
from agentctl.stores.base import Reader


def is_masked(reader: Reader, thread: str) -> bool:
    """Says whether a thread is a masked copy, or was made from one.

    The mark is on the newest row that was copied and on all that commands wrote after it, so on the head.
    """
    newest = [row.id for row in reader.rows(thread, metadata=False)[:1]]
    return any(MASKED in row.metadata for row in reader.rows(thread, ids=newest))
