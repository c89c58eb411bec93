"""What a copied checkpoint lacks to be run from, kept in its metadata, because its source did not state it.

Looking at such a checkpoint is right in all that it shows; a run would go on from something that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.errors import Refused
from agentctl.records.copies import command
from agentctl.records.rows import CheckpointRow
from agentctl.stores.base import Reader, StoreInfo

TO_REPLAY = "agentctl_lacks_to_replay"
"""Metadata: what is missing to execute the checkpoint's step again."""
TO_RESUME = "agentctl_lacks_to_resume"
"""Metadata: what is missing to go on with the step, its finished tasks taken as they are."""
MADE = "agentctl_made_from"
"""Metadata: what the row was made from, where it was not copied."""
STATES = "states of an Agent Server"


def is_made(row: CheckpointRow) -> bool:
    """Says whether a row was made from states, so that it lacks what they do not tell."""
    return row.metadata.get(MADE) == STATES


def require(info: StoreInfo, rows: Iterable[CheckpointRow], key: str) -> None:
    """Refuses to run from checkpoints that lack something.

    Args:
        info: The store they are in, for the hint.
        rows: Checkpoints with their metadata.
        key: `TO_REPLAY` or `TO_RESUME`.

    Raises:
        Refused: One lacks something; the message says what.
    """
    for row in rows:
        lack = row.metadata.get(key)
        if isinstance(lack, str) and lack:
            place = f"{info.target(row.thread)}@{row.parent}" if row.parent else f"{info.target(row.thread)}@root"
            raise Refused(
                f"checkpoint {row.id} came from an Agent Server, which does not state {lack}: it can be shown, not run",
                hint=f"start one step earlier: {command('replay', place)}; or read the server's database",
            )


def require_head(reader: Reader, thread: str) -> None:
    """Refuses to resume a thread itself where its newest checkpoints lack something.

    Raises:
        Refused: One of them lacks something; the message says what.
    """
    for ns in reader.namespaces(thread):
        newest = [row.id for row in reader.rows(thread, ns, metadata=False)[:1]]
        require(reader.info, reader.rows(thread, ns, ids=newest), TO_RESUME)
