"""Threads for sync nodes: unlimited, and never waited for.

Sync nodes of a graph that runs on the async path go to the event loop's default executor. Its stock size (CPUs + 4)
makes 20 concurrent runs queue, and its shutdown waits for every call, so one node that never returns would keep the
whole program from ending after its run had timed out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(ThreadPoolExecutor):
    """An executor that starts one daemon thread a call; `shutdown` returns at once.

    A subclass of ThreadPoolExecutor because `loop.set_default_executor` takes nothing else.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Runs the call in a thread of its own."""
        future: Future[T] = Future()
        Thread(target=_settle, args=(future, lambda: fn(*args, **kwargs)), name="agentctl-node", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for nothing: daemon threads end with the process."""


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    """Runs `call` and puts its outcome into `future`, whatever kind of exception it is.

    A SystemExit, which would end the event loop with all its runs, becomes an error of the one run.
    """
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except SystemExit as error:
        future.set_exception(RuntimeError(f"SystemExit: {error.code}"))
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
