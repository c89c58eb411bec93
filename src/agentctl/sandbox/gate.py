"""The gate on every tool: while a run has a desk, no tool runs before the desk has let it.

It sits in the methods by which a tool is called (`BaseTool.run`, `arun`, and what subclasses put in their place), so it
also sees calls made directly in nodes, in tasks of the functional API, in subgraphs and of tools built on the spot. It
is put in once a process and does nothing where no run has a desk, which a context variable tells.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agentctl.revisions.namespaces import node_path
from agentctl.sandbox import threads
from agentctl.sandbox.answers import Desk, Ticket
from agentctl.sandbox.calls import Blocked, Call
from agentctl.sandbox.toolnodes import (
    caller_of,
    model_args,
    namespace_of,
    rejection,
    returns_command,
    with_injected,
)

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

_MARK: Final = "__agentctl_gate__"

StaticTargets: TypeAlias = Mapping[str, frozenset[str] | None]
"""By the path of each node of a graph, the nodes that plain edges lead to from it. See `Found`."""


@dataclass(slots=True)
class Frame:
    """What a ToolNode knows of the call that it is about to make; `used` once the gate has seen that call."""

    tool: BaseTool
    args: Mapping[str, object]
    id: str | None
    static_targets: frozenset[str] | None
    used: bool = False


_desk: ContextVar[Desk | None] = ContextVar("agentctl_desk", default=None)
_permit: ContextVar[BaseTool | None] = ContextVar("agentctl_permit", default=None)
_frame: ContextVar[Frame | None] = ContextVar("agentctl_frame", default=None)
_targets: ContextVar[StaticTargets | None] = ContextVar("agentctl_targets", default=None)


class _Process:
    """What is true of the whole process: whether the gate is in, which runs go on, which tools are their graphs'."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.installed = False
        self.desks: list[Desk] = []
        self.known: dict[int, int] = {}


_process: Final = _Process()


@contextmanager
def running(desk: Desk) -> Generator[Desk]:
    """Makes `desk` answer every tool call of the code inside, also in the tasks and threads that it starts.

    Runs may go on side by side, each in its own asyncio task or thread. When the block ends the desk is closed: what a
    left-over thread still calls is blocked.
    """
    install()
    token = _desk.set(desk)
    with _process.lock:
        _process.desks.append(desk)
    try:
        yield desk
    finally:
        desk.close()
        with _process.lock:
            _process.desks.remove(desk)
        _desk.reset(token)


@contextmanager
def known(tools: tuple[BaseTool, ...]) -> Generator[None]:
    """Counts tools as belonging to the graph of an experiment, so that a call which lost its run is stopped too."""
    with _process.lock:
        for tool in tools:
            _process.known[id(tool)] = _process.known.get(id(tool), 0) + 1
    try:
        yield
    finally:
        with _process.lock:
            for tool in tools:
                _process.known[id(tool)] -= 1
                if not _process.known[id(tool)]:
                    del _process.known[id(tool)]


@contextmanager
def framed(frame: Frame) -> Generator[None]:
    """Tells the gate, for the next call of the frame's tool, what the ToolNode knows of it."""
    token = _frame.set(frame)
    try:
        yield
    finally:
        _frame.reset(token)


@contextmanager
def routed(targets: StaticTargets) -> Generator[None]:
    """Tells the gate where the nodes of the graph lead that runs inside, for calls that no known ToolNode makes."""
    token = _targets.set(targets)
    try:
        yield
    finally:
        _targets.reset(token)


def current_desk() -> Desk | None:
    """Returns the desk of the run that this code belongs to, or None."""
    return _desk.get()


def desks_in_use() -> tuple[Desk, ...]:
    """Returns the desks of all runs that go on in this process."""
    with _process.lock:
        return tuple(_process.desks)


def install() -> None:
    """Puts the gate in, once a process, and into tool classes that came since. Cheap to call again."""
    from langchain_core.tools import BaseTool

    with _process.lock:
        if not _process.installed:
            _gate_method(BaseTool, "run")
            _gate_method(BaseTool, "arun")
            threads.carry((_desk, _permit, _targets), ends_quietly=Blocked)
            _process.installed = True
        for tool_class in _subclasses(BaseTool):
            if not tool_class.__module__.startswith("langchain_core."):
                for name in ("run", "arun", "invoke", "ainvoke"):
                    _gate_method(tool_class, name)
                for name in ("_run", "_arun"):
                    _guard_method(tool_class, name)


def guarded(function: Callable[..., Any], tool: BaseTool) -> Callable[..., Any]:
    """Returns a tool's function so that it stops when it is called past the tool itself (`tool.func(...)`)."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def entered_async(*args: Any, **kwargs: Any) -> Any:
            with _entered(entered_async, function, tool, args, kwargs):
                return await function(*args, **kwargs)

        return entered_async

    @functools.wraps(function)
    def entered(*args: Any, **kwargs: Any) -> Any:
        with _entered(entered, function, tool, args, kwargs):
            return function(*args, **kwargs)

    return entered


@contextmanager
def _entered(
    guard: Callable[..., Any],
    function: Callable[..., Any],
    tool: BaseTool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Generator[None]:
    """Lets a tool's function begin only where its tool was let through; calls made inside it are decided anew."""
    desk, permitted = _desk.get(), _permit.get()
    if desk is not None and not _runs(permitted, guard, tool):
        raise desk.refuse(Call(tool.name, model_args(tool, _bound(function, args, kwargs)), None, tool=tool))
    if desk is None:
        _lost(tool, _bound(function, args, kwargs), None)
    token = _permit.set(None)
    try:
        yield
    finally:
        _permit.reset(token)


def _runs(permitted: BaseTool | None, guard: Callable[..., Any], tool: BaseTool) -> bool:
    """Returns whether the tool that was let through is this one, or a copy of it that shares its function."""
    if permitted is None:
        return False
    return permitted is tool or guard in (getattr(permitted, "func", None), getattr(permitted, "coroutine", None))


def _bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        return dict(inspect.signature(function).bind_partial(*args, **kwargs).arguments)
    except TypeError:
        return dict(kwargs)


def _subclasses(base: type[Any]) -> Iterator[type[Any]]:
    for found in base.__subclasses__():
        yield found
        yield from _subclasses(found)


def _gate_method(tool_class: type, name: str) -> None:
    original = vars(tool_class).get(name)
    if original is None or hasattr(original, _MARK):
        return
    gated = _gated_async(original) if name.startswith("a") else _gated(original)
    setattr(gated, _MARK, True)
    setattr(tool_class, name, gated)


def _guard_method(tool_class: type, name: str) -> None:
    """Stops a tool's own method where it is called past the tool (`tool._run(...)`)."""
    original = vars(tool_class).get(name)
    if original is None or hasattr(original, _MARK):
        return

    def require_let_through(tool: BaseTool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        desk = _desk.get()
        if desk is not None and _permit.get() is not tool:
            _, *given = _bound(original, (tool, *args), kwargs).items()
            raise desk.refuse(Call(tool.name, model_args(tool, dict(given)), None, tool=tool))

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def entered(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
            require_let_through(self, args, kwargs)
            return await original(self, *args, **kwargs)
    else:

        @functools.wraps(original)
        def entered(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
            require_let_through(self, args, kwargs)
            return original(self, *args, **kwargs)

    setattr(entered, _MARK, True)
    setattr(tool_class, name, entered)


def _gated(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def gated(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        desk = _desk.get()
        if desk is None or _permit.get() is self:
            if desk is None:
                _lost(self, *_input_of(args, kwargs))
            return original(self, *args, **kwargs)
        tool_input, call_id = _input_of(args, kwargs)
        if (rejected := rejection(self, tool_input, call_id)) is not None:
            return rejected.reply
        call = _call(self, tool_input, call_id, kwargs)
        with _served(desk, call) as served:
            if served.ticket.tool is None:
                served.outcome = served.ticket.reply
            elif _async_only(served.ticket.tool):
                served.outcome = _run_in_thread(served.ticket.tool, call, tool_input, kwargs.get("config"))
            elif served.ticket.tool is self:
                served.outcome = original(self, *args, **kwargs)
            else:
                stand_in = served.ticket.tool
                served.outcome = stand_in.invoke(_stand_in_input(stand_in, call, tool_input), kwargs.get("config"))
        return served.outcome

    return gated


def _gated_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def gated(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        desk = _desk.get()
        if desk is None or _permit.get() is self:
            if desk is None:
                _lost(self, *_input_of(args, kwargs))
            return await original(self, *args, **kwargs)
        tool_input, call_id = _input_of(args, kwargs)
        if (rejected := rejection(self, tool_input, call_id)) is not None:
            return rejected.reply
        call = _call(self, tool_input, call_id, kwargs)
        with _served(desk, call) as served:
            if served.ticket.tool is None:
                served.outcome = served.ticket.reply
            elif served.ticket.tool is self:
                served.outcome = await original(self, *args, **kwargs)
            else:
                stand_in = served.ticket.tool
                given = _stand_in_input(stand_in, call, tool_input)
                served.outcome = await stand_in.ainvoke(given, kwargs.get("config"))
        return served.outcome

    return gated


@dataclass(slots=True)
class _Serving:
    ticket: Ticket
    outcome: Any = None


@contextmanager
def _served(desk: Desk, call: Call) -> Generator[_Serving]:
    """Admits a call, lets its tool run inside the block where there is one to run, and completes the ledger."""
    serving = _Serving(desk.admit(call))
    token = _permit.set(serving.ticket.tool)
    try:
        yield serving
    except BaseException as error:
        desk.settle(serving.ticket, error)
        raise
    finally:
        _permit.reset(token)
    desk.settle(serving.ticket, serving.outcome)


def _input_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[object, str | None]:
    """Returns a tool's input and the id of the call, from the arguments of `run` or of `invoke`."""
    given = args[0] if args else kwargs.get("tool_input", kwargs.get("input"))
    if isinstance(given, Mapping) and given.get("type") == "tool_call" and "args" in given:
        return given["args"], given.get("id")
    return given, kwargs.get("tool_call_id")


def _call(tool: BaseTool, tool_input: object, call_id: str | None, kwargs: Mapping[str, Any]) -> Call:
    config = kwargs.get("config")
    ns, caller = namespace_of(config), caller_of(config)
    frame = _frame.get()
    if frame is not None and frame.tool is tool and not frame.used:
        frame.used = True
        return Call(tool.name, frame.args, frame.id, ns, tool, True, frame.static_targets, caller)
    args, targets = model_args(tool, tool_input), (_targets.get() or {}).get(node_path(caller))
    return Call(tool.name, args, call_id, ns, tool, returns_command(tool), targets, caller)


def _lost(tool: BaseTool, tool_input: object, call_id: str | None) -> None:
    """Deals with a call that belongs to no run while runs go on: a thread that nothing was carried into.

    A tool of an experiment's graph is stopped. Of any other it cannot be told whose call it is, so it goes on; that
    it did is noted as an escape. Either way every run that goes on carries it: it may be anyone's.

    Raises:
        CallBlocked: the tool is one of an experiment's graph.
    """
    with _process.lock:
        desks, is_known = tuple(_process.desks), id(tool) in _process.known
    if not desks:
        return
    call = Call(tool.name, model_args(tool, tool_input), call_id, tool=tool)
    if is_known:
        first, *others = desks
        for desk in others:
            desk.refuse(call)
        raise first.refuse(call)
    for desk in desks:
        desk.escaped(call)


def _stand_in_input(stand_in: BaseTool, call: Call, tool_input: object) -> dict[str, Any]:
    args = with_injected(stand_in, call.args, tool_input)
    if call.id is None:
        return args
    return {"name": call.name, "args": args, "id": call.id, "type": "tool_call"}


def _async_only(tool: BaseTool) -> bool:
    return getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None


def _run_in_thread(tool: BaseTool, call: Call, tool_input: object, config: Any) -> Any:
    """Runs an async-only tool for a sync caller, in a thread with a loop of its own and the caller's context."""
    outcome: list[Any] = []
    given = _stand_in_input(tool, call, tool_input)
    context = contextvars.copy_context()

    def run() -> None:
        try:
            outcome.append((True, asyncio.run(tool.ainvoke(given, config))))
        except BaseException as error:
            outcome.append((False, error))

    thread = threading.Thread(target=context.run, args=(run,), name=f"agentctl-{tool.name}")
    thread.start()
    thread.join()
    done, value = outcome[0]
    if not done:
        raise value
    return value
