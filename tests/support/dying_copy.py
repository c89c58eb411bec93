"""A copy whose process is killed between two of its statements."""

from __future__ import annotations

import os
import signal
from contextlib import closing

from agentctl.stores.copying.execute import copy
from agentctl.stores.copying.selection import for_copy
from agentctl.stores.open import open_reader, open_writer


def main(source: str, target: str, thread: str) -> None:
    """Copies a whole thread and dies by SIGKILL once a few of its checkpoints are written."""
    with closing(open_reader(source)) as reader, closing(open_writer(target)) as writer:
        head = reader.rows(thread)[0].id
        plan = for_copy(reader, thread, "", head, "all", "c")
        copy(reader, writer, [plan], on_progress=_die)


def _die(n_done: int, n_total: int) -> None:
    if n_done > n_total // 2:
        os.kill(os.getpid(), signal.SIGKILL)
