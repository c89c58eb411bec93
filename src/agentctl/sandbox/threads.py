"""Carrying context variables into threads that a node starts, which Python (before 3.14) does not do."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Values = tuple[tuple[ContextVar[Any], Any], ...]


def carry(variables: tuple[ContextVar[Any], ...], *, ends_quietly: type[BaseException]) -> None:
    """Makes new threads and thread-pool tasks see the variables of whoever starts them, where any of them is set.

    Call it once a process. Where none of the variables is set, threads start exactly as before. Pool workers, which
    outlive the task that made them start, carry nothing themselves.

    Args:
        variables: Context variables with the default None.
        ends_quietly: Ends a thread (not a pool task) without the report of an unhandled exception.
    """
    ThreadPoolExecutor.submit = _carrying_submit(ThreadPoolExecutor.submit, variables)  # type: ignore[method-assign]
    started = _carrying_start(threading.Thread.start, variables, ends_quietly)
    threading.Thread.start = started  # type: ignore[method-assign, assignment]


def _carrying_submit(original: Callable[..., Any], variables: tuple[ContextVar[Any], ...]) -> Callable[..., Any]:
    @functools.wraps(original)
    def submit(self: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        values = _taken(variables)
        if not values:
            return original(self, function, *args, **kwargs)  # type: ignore[no-any-return]

        def carried(*args: Any, **kwargs: Any) -> Any:
            with _set(values):
                return function(*args, **kwargs)

        with _set(tuple((variable, None) for variable in variables)):
            return original(self, carried, *args, **kwargs)  # type: ignore[no-any-return]

    return submit


def _carrying_start(
    original: Callable[[threading.Thread], None],
    variables: tuple[ContextVar[Any], ...],
    ends_quietly: type[BaseException],
) -> Callable[[threading.Thread], None]:
    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        values = _taken(variables)
        if values:
            run = self.run

            def carried() -> None:
                with _set(values):
                    try:
                        run()
                    except ends_quietly:
                        return

            self.run = carried  # type: ignore[method-assign]
        original(self)

    return start


def _taken(variables: tuple[ContextVar[Any], ...]) -> Values:
    return tuple((variable, value) for variable in variables if (value := variable.get()) is not None)


@contextmanager
def _set(values: Values) -> Generator[None]:
    tokens = [(variable, variable.set(value)) for variable, value in values]
    try:
        yield
    finally:
        for variable, token in reversed(tokens):
            variable.reset(token)
