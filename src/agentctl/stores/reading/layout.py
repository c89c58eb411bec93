"""LangGraph's private names, task paths and task ids: all that reading rows without the graph relies on.

Source: langgraph 1.2.24, _internal/_constants.py, pregel/_algo.py (`prepare_single_task`, `task_path_str`),
graph/state.py (`_CHANNEL_BRANCH_TO`, `attach_edge`); langgraph-checkpoint 4.3.2, checkpoint/base (`WRITES_IDX_MAP`).
tests/contract/test_rows_contract.py fails when a version changes one of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha1
from typing import Final, Literal
from uuid import UUID, uuid5

from xxhash import xxh3_128_hexdigest

INPUT: Final = "__input__"
START: Final = "__start__"
END: Final = "__end__"
PREVIOUS: Final = "__previous__"
RETURN: Final = "__return__"
TASKS: Final = "__pregel_tasks"
INTERRUPT: Final = "__interrupt__"
RESUME: Final = "__resume__"
ERROR: Final = "__error__"
ERROR_SOURCE_NODE: Final = "__error_source_node__"
NO_WRITES: Final = "__no_writes__"
SNAPSHOT_BUMPS: Final = "__snapshot_bumps__"

PULL: Final = "__pregel_pull"
PUSH: Final = "__pregel_push"
ERROR_HANDLER: Final = "node_error_handler"
ERROR_HANDLER_NODES: Final = ("__error_handler__", "__default_error_handler__")
"""Prefix of a node's own handler, and the name of the graph's default one."""

BRANCH: Final = "branch:to:"
JOIN: Final = "join:"
_ROUTES: Final = (BRANCH, JOIN)
NS_SEPARATOR: Final = "|"
NS_END: Final = ":"

CONTROL: Final = frozenset({ERROR, ERROR_SOURCE_NODE, INTERRUPT, RESUME})
"""Writes that say what happened to a task; every other write is output, and a task with output has finished."""

NOT_NODES: Final = frozenset({INPUT, INTERRUPT, SNAPSHOT_BUMPS})
"""Keys of `versions_seen` that are no node's name."""

_INTERNAL: Final = frozenset({START, TASKS, NO_WRITES, INPUT, END, PREVIOUS, RETURN, *CONTROL})


@lru_cache(maxsize=1024)
def is_state_channel(channel: str) -> bool:
    """Tells a channel of the graph's state from one that LangGraph keeps for routing and bookkeeping."""
    return not (channel in _INTERNAL or channel.startswith(_ROUTES))


def is_route(channel: str) -> bool:
    """Says whether a write to this channel can make a node run."""
    return channel == TASKS or channel.startswith(_ROUTES)


def triggered_node(channel: str, *, format: int = 4) -> str | None:
    """Returns the node that a trigger channel makes run, `__start__` for the input channel, or None for any other.

    Args:
        channel: Channel name.
        format: The checkpoint's `v`; before 3 triggers were named `start:NODE` and `branch:SOURCE:CONDITION:NODE`.
    """
    if channel == START:
        return START
    if channel.startswith(BRANCH):
        return channel[len(BRANCH) :]
    if channel.startswith(JOIN):
        return channel.rpartition(":")[2]
    if format < 3 and (channel.startswith("start:") or (channel.startswith("branch:") and channel.count(":") == 3)):
        return channel.rpartition(":")[2]
    return None


def join_is_complete(channel: str, arrived: Iterable[str]) -> bool:
    """Says whether every name of `join:a+b:c` is among `arrived` (names of that join, without repetition).

    Compared by length, because a node's name may itself hold a `+`.
    """
    names = list(arrived)
    waited_for = channel[len(JOIN) :].rpartition(":")[0]
    return bool(names) and len("+".join(names)) == len(waited_for)


TaskKind = Literal["pull", "send", "call", "handler", "update", "exit", "null", "unknown"]


@dataclass(frozen=True, slots=True)
class TaskPath:
    """A parsed `task_path`.

    `node` is the node of a pull task, or of the pull task that called or failed; `index` is the position of a Send
    among the pending Sends, of a @task call in its parent, or of an update.
    """

    kind: TaskKind
    node: str | None = None
    index: int | None = None


def parse_task_path(path: str | None) -> TaskPath:
    """Returns what a stored `task_path` says; kind `unknown` for a blank one (files older than that column).

    Forms: `~__pregel_pull, NODE`; `~__pregel_push, IDX, 0000000000` (a Send); `~__pregel_push, ~PARENT, I, 0000000001`
    (a @task call); `PATH, node_error_handler, 0000000000`; `~__interrupt__, I` (update_state); `~~STEP...` (a delta
    channel's writes under durability "exit").
    """
    if not path:
        return TaskPath("unknown")
    if path.startswith("~~"):
        return TaskPath("exit")
    parts = path[1:].split(", ") if path.startswith("~") else [path]
    head = parts[0]
    if head == PULL and len(parts) >= 2:
        if len(parts) >= 4 and parts[-2] == ERROR_HANDLER:
            return TaskPath("handler", ", ".join(parts[1:-2]))
        return TaskPath("pull", ", ".join(parts[1:]))
    if head == PUSH and len(parts) >= 3:
        if ERROR_HANDLER in parts[2:]:
            return TaskPath("handler", None, _number(parts[1]))
        if parts[1].startswith("~"):
            parent = parse_task_path(", ".join(parts[1:-2]))
            return TaskPath("call", parent.node, _number(parts[-2]))
        return TaskPath("send", None, _number(parts[1]))
    if head == INTERRUPT:
        return TaskPath("update", None, _number(parts[-1]))
    return TaskPath("unknown")


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def pull_path(node: str) -> str:
    """Returns the stored path of a node run by an edge."""
    return f"~{PULL}, {node}"


def send_path(index: int) -> str:
    """Returns the stored path of the node that the pending Send at `index` runs."""
    return f"~{PUSH}, {index:010d}, {0:010d}"


def node_ns(ns: str, node: str) -> str:
    """Returns the namespace of a node inside a graph's namespace, without a task id."""
    return f"{ns}{NS_SEPARATOR}{node}" if ns else node


def task_ns(ns: str, node: str, task_id: str) -> str:
    """Returns the namespace in which a task's subgraph keeps its checkpoints."""
    return f"{node_ns(ns, node)}{NS_END}{task_id}"


def keeps_state(ns: str) -> bool:
    """Tells whether a namespace belongs to a subgraph compiled with `checkpointer=True`: it names no task.

    Source: `recast_checkpoint_ns` (langgraph 1.2.24, _internal/_config.py).
    """
    return ns != "" and NS_END not in ns


def pull_task_id(checkpoint_id: str, ns: str, step: int, node: str, triggers: Iterable[str], *, format: int = 4) -> str:
    """Returns the id of the task that an edge makes.

    Args:
        checkpoint_id: The checkpoint the task runs from.
        ns: That checkpoint's namespace.
        step: The step the task runs in: the checkpoint's step + 1.
        node: The node's name.
        triggers: All channels that can make the node run, not just the one that did.
        format: The checkpoint's `v`.
    """
    return _task_id(checkpoint_id, (node_ns(ns, node), str(step), node, PULL, *sorted(triggers)), format)


def send_task_id(checkpoint_id: str, ns: str, step: int, node: str, index: int, *, format: int = 4) -> str:
    """Returns the id of the task that the pending Send at `index` makes; the rest as in `pull_task_id`."""
    return _task_id(checkpoint_id, (node_ns(ns, node), str(step), node, PUSH, str(index)), format)


def javascript_task_id(checkpoint_id: str, ns: str, step: int, node: str, *rest: object) -> str:
    """Returns the id of a task that LangGraph.js made, '' where the checkpoint's own id is no UUID.

    Source: langgraphjs, libs/langgraph-core/src/pregel/algo.ts (`_prepareSingleTask`), libs/checkpoint/src/id.ts.

    Args:
        checkpoint_id: The checkpoint the task runs from.
        ns: That checkpoint's namespace.
        step: The step the task runs in: the checkpoint's step + 1.
        node: The node's name.
        rest: `PULL` and the list of the one channel that made it run, or `PUSH` and the position of the Send as text.
    """
    parts = [node_ns(ns, node), str(step), node, *rest]
    return derived_id(checkpoint_id, json.dumps(parts, ensure_ascii=False, separators=(",", ":")))


def call_task_id(
    checkpoint_id: str, caller_ns: str, step: int, name: str, task_path: str, *, format: int = 4
) -> str | None:
    """Returns the id of a @task call; None where `task_path` is not that of one.

    Args:
        checkpoint_id: The checkpoint the calling task runs from.
        caller_ns: The calling task's own namespace (`task_ns`).
        step: The step it runs in.
        name: The task's name, which no row holds.
        task_path: The call's stored path, `~__pregel_push, ~PARENT, I, 0000000001`.
        format: The checkpoint's `v`.
    """
    caller = caller_path(task_path)
    index = parse_task_path(task_path).index
    if caller is None or index is None:
        return None
    return _task_id(checkpoint_id, (node_ns(caller_ns, name), str(step), name, PUSH, caller, str(index)), format)


def caller_path(task_path: str) -> str | None:
    """Returns the path of the task that made a @task call, None where `task_path` is not that of one."""
    head, _, rest = task_path.partition(", ")
    caller = rest.rpartition(", ")[0].rpartition(", ")[0]
    return caller if head == f"~{PUSH}" and caller.startswith("~") else None


def handler_task_id(checkpoint_id: str, ns: str, step: int, handler: str, failed: str, *, format: int = 4) -> str:
    """Returns the id of the task in which node `handler` handles the error of task `failed`."""
    return _task_id(checkpoint_id, (node_ns(ns, handler), str(step), handler, PUSH, ERROR_HANDLER, failed), format)


def derived_id(checkpoint_id: str, name: str) -> str:
    """Returns the id of a task that is no node's: of an update (`__interrupt__`) or of delta input (`__input__`)."""
    try:
        return str(uuid5(UUID(checkpoint_id), name))
    except ValueError:
        return ""


def _task_id(checkpoint_id: str, parts: tuple[str, ...], format: int) -> str:
    """Returns a task's id, '' where the checkpoint's own id is not hexadecimal: LangGraph cannot run such a one."""
    try:
        namespace = bytes.fromhex(checkpoint_id.replace("-", ""))
    except ValueError:
        return ""
    data = namespace + "".join(parts).encode()
    digest = xxh3_128_hexdigest(data) if format > 1 else sha1(data, usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def newer_versions(
    left: Mapping[str, object], right: Mapping[str, object], *, format: int = 4, nodes: Collection[str] = ()
) -> tuple[str, ...]:
    """Returns the state channels whose version in `left` is not that in `right`, sorted.

    Args:
        left: Versions by channel.
        right: Versions to compare with.
        format: The checkpoint's `v`.
        nodes: Nodes that ran; before format 3 each had a channel of its name.
    """
    newer = (name for name, version in left.items() if right.get(name) != version)
    return tuple(sorted(name for name in newer if holds_state(name, format=format, nodes=nodes)))


def holds_state(channel: str, *, format: int = 4, nodes: Collection[str] = ()) -> bool:
    """Tells a channel of state as `is_state_channel` does, also in formats before 3; arguments as `newer_versions`."""
    if not is_state_channel(channel):
        return False
    return format >= 3 or (triggered_node(channel, format=format) is None and channel not in nodes)
