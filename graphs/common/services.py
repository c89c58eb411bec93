"""Calls to outside services: bounded retries on transient errors, a circuit breaker each, effects at most once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from graphs.common.outbound import OutboundLog


class ServiceUnavailable(RuntimeError):
    """The service did not answer usably within the retries; the run stops with its state saved and can be resumed."""


class CircuitOpen(ServiceUnavailable):
    """The service was not called: its circuit breaker is open. Trying again at once would not help."""


class ServiceRefused(RuntimeError):
    """The service refused the request (4xx): repeating it would not help."""

    def __init__(self, service: str, status: int, message: str) -> None:
        super().__init__(f"{service} refused: {message}")
        self.status = status


def is_transient(error: Exception) -> bool:
    """Tells whether a node may be tried again: the service did not answer, and its breaker still lets calls through."""
    return isinstance(error, ServiceUnavailable) and not isinstance(error, CircuitOpen)


class _Transient(Exception):
    """One attempt failed in a way that may pass."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a transient error is tried again.

    Attributes:
        max_attempts: Attempts in all.
        backoff_s: Pause before the second attempt; each further one doubles it.
        sleep: Waits that many seconds.
    """

    max_attempts: int = 3
    backoff_s: float = 0.05
    sleep: Callable[[float], None] = time.sleep

    def pause(self, attempt: int) -> None:
        """Waits before an attempt, counted from 0; not before the first."""
        if attempt:
            self.sleep(self.backoff_s * 2.0 ** (attempt - 1))


@dataclass(slots=True)
class CircuitBreaker:
    """Stops calling a service that keeps failing. Safe between threads.

    Attributes:
        threshold: Failures in a row that open it.
        cooldown_s: How long it stays open before one call may try again.
        clock: Returns seconds that only grow.
    """

    threshold: int = 5
    cooldown_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _failures: int = field(default=0, init=False)
    _opened_at: float | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def allows(self) -> bool:
        """Tells whether a call may be made; once the cooldown is over one caller gets to try."""
        with self._lock:
            if self._opened_at is None:
                return True
            if self.clock() - self._opened_at < self.cooldown_s:
                return False
            self._opened_at = self.clock()
            return True

    def record(self, *, ok: bool) -> None:
        """Counts an attempt."""
        with self._lock:
            self._failures = 0 if ok else self._failures + 1
            if ok:
                self._opened_at = None
            elif self._failures >= self.threshold:
                self._opened_at = self.clock()


@dataclass(frozen=True, slots=True)
class Service:
    """One outside service over HTTP.

    Attributes:
        name: For errors.
        http: The client, with base address, timeout and identity header.
        breaker: The service's own.
        retries: For transient errors: timeouts, lost connections, 5xx.
    """

    name: str
    http: httpx.Client
    breaker: CircuitBreaker
    retries: Retries

    def get(self, path: str, **query: str) -> Any:
        """Reads, with retries.

        Raises:
            ServiceUnavailable: retries ended, or the breaker is open.
            ServiceRefused: a 4xx.
        """
        return self._retried(lambda _: self._attempt("GET", path, params=query))

    def post(self, path: str, body: Mapping[str, Any], *, key: str, before_repeat: Callable[[], Any]) -> Any:
        """Causes an effect, with retries under one idempotency key.

        Args:
            path: Where.
            body: The request.
            key: The idempotency key.
            before_repeat: Looks the effect up before each repeat: the receiver may have forgotten the key.

        Raises:
            ServiceUnavailable: retries ended, or the breaker is open.
            ServiceRefused: a 4xx.
        """

        def attempt(number: int) -> Any:
            found = before_repeat() if number else None
            return found or self._attempt("POST", path, json=dict(body), headers={"Idempotency-Key": key})

        return self._retried(attempt)

    def _retried(self, attempt: Callable[[int], Any]) -> Any:
        problem: Exception | None = None
        for number in range(self.retries.max_attempts):
            self.retries.pause(number)
            if not self.breaker.allows():
                raise CircuitOpen(f"{self.name}: not called, its circuit breaker is open") from problem
            try:
                answer = attempt(number)
            except _Transient as error:
                problem = error
                self.breaker.record(ok=False)
                continue
            self.breaker.record(ok=True)
            return answer
        raise ServiceUnavailable(f"{self.name}: {problem} ({self.retries.max_attempts} attempts)") from problem

    def _attempt(self, method: str, path: str, **options: Any) -> Any:
        try:
            response = self.http.request(method, path, **options)
        except httpx.TransportError as error:
            raise _Transient(f"{type(error).__name__}: {error}") from error
        if response.status_code >= 500:
            raise _Transient(f"HTTP {response.status_code}")
        if response.status_code >= 400:
            self.breaker.record(ok=True)
            raise ServiceRefused(self.name, response.status_code, _message(response))
        return response.json()


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect to cause exactly once.

    Attributes:
        key: Derived from thread, operation and call; never random or timed.
        thread: The thread it belongs to.
        operation: Its name.
        path: Where it is posted.
        body: The request.
        look_up: Returns the receiver's record of this effect, None where it has none.
        note: Sent with the request without being part of it: two requests that differ in this are the same.
    """

    key: str
    thread: str
    operation: str
    path: str
    body: Mapping[str, Any]
    look_up: Callable[[], Mapping[str, Any] | None]
    note: Mapping[str, Any] = field(default_factory=dict)


def cause(effect: Effect, service: Service, log: OutboundLog) -> Mapping[str, Any]:
    """Causes an effect, or returns what it gave earlier.

    The row is written first. Where an earlier attempt left its outcome unknown, the receiver is asked for it before
    anything is repeated: it may have forgotten the key by now.

    Raises:
        ServiceUnavailable: the outcome is still unknown; the row says so, and the next attempt looks it up.
        ServiceRefused: the receiver refused.
    """
    entry = log.begin(effect.key, thread=effect.thread, operation=effect.operation, request=effect.body)
    if entry.response is not None:
        return entry.response
    found = None if entry.is_new else effect.look_up()
    try:
        sent = {**effect.body, **effect.note}
        answer = found or service.post(effect.path, sent, key=effect.key, before_repeat=effect.look_up)
    except ServiceRefused:
        log.refuse(effect.key)
        raise
    log.finish(effect.key, answer)
    return dict(answer)


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json().get("error", response.text))
    except (ValueError, AttributeError):
        return response.text[:200]
