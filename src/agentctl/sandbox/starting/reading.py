"""The recordings of the threads that a starter registry takes its examples from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentctl.sandbox.recorder import record_thread
from agentctl.sandbox.recordings import Recording
from agentctl.stores.base import Reader
from agentctl.stores.copying.stated_rows import as_rows

MAX_THREADS: Final = 20


def read_recordings(reader: Reader, threads: Sequence[str]) -> dict[str, Recording]:
    """Returns recordings by thread, oldest first: those that are named, else those of the newest threads of a store.

    Raises:
        NotFound: no such thread.
    """
    names = list(dict.fromkeys(threads)) or [head.thread for head in reader.heads(metadata=False)][:MAX_THREADS][::-1]
    rows = as_rows(reader)
    return {name: record_thread(rows, name) for name in names}
