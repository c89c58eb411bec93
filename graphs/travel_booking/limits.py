"""How often each supplier may be asked: a bucket of calls each, refilled evenly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


class RateExceeded(RuntimeError):
    """A supplier would have to be waited for longer than is worth it."""


@dataclass(slots=True)
class SupplierLimits:
    """Spaces calls to each supplier out. Safe between threads.

    Attributes:
        per_minute: Calls of one supplier a minute.
        burst: Calls that may come at once.
        max_wait_s: Longest wait for a turn.
        clock: Returns seconds that only grow.
        sleep: Waits that many seconds.
    """

    per_minute: float = 60.0
    burst: int = 5
    max_wait_s: float = 5.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: dict[str, float] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def wait(self, supplier: str) -> None:
        """Waits until the supplier may be asked again.

        Raises:
            RateExceeded: that would take longer than `max_wait_s`; the turn is not taken.
        """
        interval = 60.0 / self.per_minute
        with self._lock:
            now = self.clock()
            # The time at which the bucket is full again, one interval later for each call taken.
            full_at = max(self._free_at.get(supplier, now), now) + interval
            wait_s = full_at - now - self.burst * interval
            if wait_s > self.max_wait_s:
                raise RateExceeded(f"{supplier} was asked {self.per_minute:g} times a minute already")
            self._free_at[supplier] = full_at
        if wait_s > 0:
            self.sleep(wait_s)
