"""From `path.py:attr` to a saver: running the file, calling what it names, entering what that gives.

Savers come from plain functions, coroutines and context managers of both kinds, and async ones need a running loop for
as long as they are used. So a loop runs in a thread of its own until the store is closed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from agentctl.errors import StoreError, is_of_called_code

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

T = TypeVar("T")

_PROJECT_FILE = "langgraph.json"


class LoopThread:
    """An event loop that runs in its own thread until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="agentctl-saver", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns the result of a coroutine that runs on the loop."""
        return asyncio.run_coroutine_threadsafe(_ending_alone(work), self._loop).result()

    def close(self) -> None:
        """Stops the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class OpenSaver:
    """A saver together with what must be left when it is no longer used.

    Args:
        file: A .py file; it is run.
        attribute: Dotted name in it: a saver, a function, a coroutine function or a context manager.

    Raises:
        StoreError: The file is missing, its code raised, or it leads to no saver.
    """

    def __init__(self, file: Path, attribute: str) -> None:
        made = load_attribute(file, attribute)
        self._loop: LoopThread | None = LoopThread()
        self._stack = ExitStack()
        self._async_stack = AsyncExitStack()
        try:
            self.saver = self._entered(made)
        except StoreError:
            self.close()
            raise
        except BaseException as error:
            self.close()
            if not is_of_called_code(error):
                raise
            raise _raised(f"{file}:{attribute}", error) from error

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns the result of a coroutine that runs on the saver's loop."""
        if self._loop is None:
            raise StoreError("the saver is closed")
        return self._loop.run(work)

    def close(self) -> None:
        """Leaves the context managers and stops the loop. Safe to call twice."""
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        self._stack.close()
        loop.run(self._async_stack.aclose())
        loop.close()

    def _entered(self, made: object) -> BaseCheckpointSaver[Any]:
        from langgraph.checkpoint.base import BaseCheckpointSaver

        if callable(made):
            made = self._called(made)
        if inspect.isawaitable(made):
            made = self.run(_awaited(made))
        if isinstance(made, BaseCheckpointSaver):  # some savers are context managers too, of their own resources
            return made
        if isinstance(made, AbstractAsyncContextManager):
            made = self.run(self._async_stack.enter_async_context(made))
        elif isinstance(made, AbstractContextManager):
            made = self._stack.enter_context(made)
        if not isinstance(made, BaseCheckpointSaver):
            raise StoreError(
                f"it gives something of type {type(made).__name__}, which is no BaseCheckpointSaver",
                hint="name a function or a context manager that returns the saver of the application",
            )
        return made

    def _called(self, function: Callable[[], object]) -> object:
        """Returns what a function gives; async savers made in a plain function want a running loop."""
        try:
            return function()
        except RuntimeError as error:
            if "running event loop" not in str(error):
                raise
        return self.run(_called_on_loop(function))


def load_attribute(file: Path, attribute: str) -> object:
    """Returns what a dotted name in a Python file is. The file is run; its project's folder goes on `sys.path`.

    Raises:
        StoreError: The file or the name is missing, or the file raised.
    """
    path = file.expanduser().resolve()
    if not path.is_file():
        raise StoreError(f"no such file: {path}", hint="check the path in --store PATH.py:ATTRIBUTE")
    folder = str(_project_folder(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"agentctl_store_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise StoreError(f"{path} cannot be imported", hint="check the path in --store PATH.py:ATTRIBUTE")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        if not is_of_called_code(error):
            raise
        raise _raised(str(path), error) from error
    found: object = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = ", ".join(sorted(public for public in vars(module) if not public.startswith("_")))
            raise StoreError(f"{path} has no {attribute}", hint=f"it has: {public}")
        found = getattr(found, part)
    return found


def _project_folder(path: Path) -> Path:
    """Returns the folder of the nearest langgraph.json above a file, else the file's own."""
    return next((folder for folder in path.parents if (folder / _PROJECT_FILE).is_file()), path.parent)


def _raised(what: str, error: BaseException) -> StoreError:
    if isinstance(error, ModuleNotFoundError):
        hint = f"install {error.name} in the environment agentctl runs in, or run agentctl from the application's"
    else:
        hint = "the file runs as your application's would: check its imports and environment variables"
    return StoreError(f"{what} raised {type(error).__name__}: {error}", hint=hint)


async def _ending_alone(work: Coroutine[Any, Any, T]) -> T:
    """Returns what a coroutine gives; an exit that it asks for ends the loop neither, nor whoever waits for it."""
    try:
        return await work
    except (KeyboardInterrupt, SystemExit) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


async def _awaited(made: Awaitable[object]) -> object:
    return await made


async def _called_on_loop(function: Callable[[], object]) -> object:
    made = function()
    return await made if inspect.isawaitable(made) else made
