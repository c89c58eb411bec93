"""Traffic to the web: a limit for each tool and tenant, and a short cache, so that parallel searches stay polite."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphs.common.services import ServiceUnavailable
from graphs.research_report.policy import Policy

_MAX_CACHED = 512


@dataclass(slots=True)
class RateLimit:
    """A token bucket: so many calls a minute, and as many at once. Safe between threads.

    Attributes:
        per_minute: Calls a minute.
        max_wait_s: How long a caller waits for its turn; beyond that it is refused at once.
        clock: Returns seconds that only grow.
        sleep: Waits that many seconds.
    """

    per_minute: int
    max_wait_s: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at_s: float | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def take(self) -> None:
        """Takes a turn, waiting for it where need be.

        Raises:
            ServiceUnavailable: the wait would be longer than allowed; no turn is taken.
        """
        apart_s = 60.0 / self.per_minute
        with self._lock:
            now_s = self.clock()
            # A bucket of a minute's calls: the schedule may lag behind the clock by that much, never further.
            free_at_s = max(now_s - 60.0 + apart_s, self._free_at_s if self._free_at_s is not None else now_s - 60.0)
            wait_s = free_at_s - now_s
            if wait_s > self.max_wait_s:
                raise ServiceUnavailable(f"over {self.per_minute} calls a minute: free in {wait_s:.0f} s")
            self._free_at_s = free_at_s + apart_s
        if wait_s > 0:
            self.sleep(wait_s)


@dataclass(slots=True)
class Cache:
    """Answers that are kept for a short while. Safe between threads.

    Attributes:
        keep_s: For how long.
        clock: Returns seconds that only grow.
    """

    keep_s: float
    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[str, tuple[float, str]] = field(default_factory=OrderedDict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def get(self, key: str) -> str | None:
        """Returns what is kept, None where nothing is or it is too old."""
        with self._lock:
            kept = self._kept.get(key)
        return kept[1] if kept is not None and self.clock() - kept[0] < self.keep_s else None

    def put(self, key: str, answer: str) -> None:
        """Keeps an answer; the oldest go where there are too many."""
        with self._lock:
            self._kept[key] = (self.clock(), answer)
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_CACHED:
                self._kept.popitem(last=False)


@dataclass(slots=True)
class Traffic:
    """What calls of all tenants go through: each tenant has its own limits and its own cache.

    Attributes:
        policy: Limits and times.
        clock: Returns seconds that only grow.
        sleep: Waits that many seconds.
    """

    policy: Policy
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _limits: dict[tuple[str, str], RateLimit] = field(default_factory=dict, init=False)
    _caches: dict[str, Cache] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def through(self, tenant: str, tool: str, args: Mapping[str, Any], ask: Callable[[], str]) -> str:
        """Answers from the tenant's cache, or asks when it is the call's turn.

        Raises:
            ServiceUnavailable: the tenant is over its limit, or the service failed.
        """
        cache, limit = self._of(tenant, tool)
        key = json.dumps([tool, dict(args)], sort_keys=True)
        if (kept := cache.get(key)) is not None:
            return kept
        limit.take()
        answer = ask()
        cache.put(key, answer)
        return answer

    def _of(self, tenant: str, tool: str) -> tuple[Cache, RateLimit]:
        with self._lock:
            cache = self._caches.setdefault(tenant, Cache(self.policy.cache_s, self.clock))
            limit = self._limits.get((tenant, tool))
            if limit is None:
                per_minute = self.policy.calls_per_minute[tool]
                limit = RateLimit(per_minute, self.policy.max_wait_s, self.clock, self.sleep)
                self._limits[tenant, tool] = limit
            return cache, limit
