"""An outbound log that kills its process between an effect and its checkpoint."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from graphs.common.database import Database
from graphs.common.outbound import OutboundLog


class DyingLog(OutboundLog):
    """Kills its process with SIGKILL as the answer to a request has come in.

    Args:
        database: The application's database.
        when: `before-row` (the outbound row is not closed yet) or `after-row` (it is, the checkpoint is not written).
        is_last: Tells by its key whether a request is the one to die at.
    """

    def __init__(self, database: Database, when: str, *, is_last: Callable[[str], bool]) -> None:
        super().__init__(database)
        self._when = when
        self._is_last = is_last

    def finish(self, key: str, response: Mapping[str, Any]) -> None:
        is_last = self._is_last(key)
        if not is_last or self._when == "after-row":
            super().finish(key, response)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
