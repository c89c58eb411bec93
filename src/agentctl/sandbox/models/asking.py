"""The task that calls a model now: where it is in its graph, and what it was given. LangGraph's private names are here.

`tests/contract/test_model_gate_contract.py` fails when a version changes what is relied on.

Source: prepare_single_task, local_read and task_path_str, langgraph/pregel/_algo.py; PregelScratchpad.resume,
langgraph/_internal/_scratchpad.py (langgraph 1.2.24); var_child_runnable_config, langchain_core/runnables/config.py
(langchain-core 1.8.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentctl.revisions.namespaces import node_path
from agentctl.sandbox.inert import inert
from agentctl.sandbox.models.given import SENT, Given, given
from agentctl.sandbox.models.recording import Place
from agentctl.stores.reading import layout

_READ: Final = "__pregel_read"
_SCRATCHPAD: Final = "__pregel_scratchpad"
_NS: Final = "checkpoint_ns"
_PATH: Final = "langgraph_path"


@dataclass(frozen=True, slots=True)
class Asking:
    """The task that calls a model.

    Attributes:
        place: Where it is in its graph.
        node: Its path as shown.
        task_id: Its id.
        given: What it was given.
    """

    place: Place
    node: str
    task_id: str
    given: Given


def asking() -> Asking | None:
    """Returns the task that this code belongs to, None where that cannot be told: code in a thread of its own."""
    from langchain_core.runnables.config import var_child_runnable_config
    from langgraph.pregel._algo import task_path_str

    config: Mapping[str, Any] = var_child_runnable_config.get() or {}
    configurable, metadata = config.get("configurable") or {}, config.get("metadata") or {}
    caller, path, read = configurable.get(_NS), metadata.get(_PATH), configurable.get(_READ)
    if not caller or not path or read is None:
        return None
    channels: Mapping[str, Any] = read.args[1]
    values = dict(_values(channels))
    if path[0] == layout.PUSH and isinstance(path[1], int):
        values[SENT] = inert(channels[layout.TASKS].get()[path[1]])
    resumed = [inert(answer) for answer in configurable[_SCRATCHPAD].resume]
    levels = str(caller).split(layout.NS_SEPARATOR)
    graph = layout.NS_SEPARATOR.join(levels[: len(levels) - _depth(path)])
    place = node_path(graph), task_path_str(tuple(path))
    return Asking(place, node_path(caller), levels[-1].rpartition(layout.NS_END)[2], given(values, resumed))


def _values(channels: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yields what a checkpoint would hold of channels, and what an entrypoint is given."""
    from langgraph.channels import UntrackedValue

    for name, channel in channels.items():
        if not layout.is_state_channel(name) and name not in (layout.START, layout.PREVIOUS):
            continue
        if not isinstance(channel, UntrackedValue) and channel.is_available():
            yield name, inert(channel.get())


def _depth(path: tuple[Any, ...]) -> int:
    """Returns how many levels of its namespace a task has in its own graph: a @task call lies below its caller."""
    return 1 + _depth(path[1]) if path[0] == layout.PUSH and isinstance(path[1], tuple) else 1
