"""What a run streams, as events that say which node they come from.

Source: langgraph 1.2.24, pregel/main.py (`astream` with several modes and subgraphs gives (namespace, mode, data);
`stream_writer` gives custom data the namespace of the graph, not of the node), pregel/_loop.py (`output_writes`),
pregel/debug.py (payloads of `tasks` and `debug`), pregel/_messages.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agentctl.codec.secrets import hide_secrets_in, hide_secrets_in_texts
from agentctl.errors import UsageError
from agentctl.experiments.runs.running import node_path
from agentctl.records.streams import STREAM_MODES, StreamEvent, StreamMode
from agentctl.sandbox.inert import inert as inert_value
from agentctl.stores.reading.layout import INTERRUPT

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

CHECKPOINTS, TASKS = "checkpoints", "tasks"
_LAST = "last"
_CONFIGURATION = ("config", "parent_config", "metadata")


def parse_modes(texts: Sequence[str]) -> tuple[StreamMode, ...]:
    """Returns the modes of `--stream`, each once.

    Raises:
        UsageError: there is no such mode.
    """
    found: dict[StreamMode, None] = {}
    for text in texts:
        mode = next((known for known in STREAM_MODES if known == text), None)
        if mode is None:
            raise UsageError(f"--stream {text}: no such stream", hint=f"streams are: {', '.join(STREAM_MODES)}")
        found[mode] = None
    return tuple(found)


class Streamed:
    """Turns what LangGraph streams into events; the `Listener` of a run.

    Args:
        modes: What to tell.
        tell: Called with each event, as it happens.
        now: The clock, UTC.
    """

    def __init__(
        self,
        modes: Sequence[StreamMode],
        tell: Callable[[StreamEvent], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._wanted = tuple(modes)
        self._tell = tell
        self._now = now
        self._running: dict[str, dict[str, str]] = {}
        self._finished: dict[str, set[str]] = {}
        self._asked: set[str] = set()

    @property
    def modes(self) -> tuple[str, ...]:
        """The stream modes to run the graph with; steps and tasks are heard too where custom data needs its node."""
        return (*self._wanted, CHECKPOINTS, TASKS) if "custom" in self._wanted else self._wanted

    def hear(self, ns: tuple[str, ...], mode: str, data: Any) -> None:
        """Takes one part of the stream."""
        graph = "|".join(ns)
        if mode in (CHECKPOINTS, TASKS):
            (self._begin_step if mode == CHECKPOINTS else self._note_task)(graph, data)
            return
        match mode:
            case "updates":
                events = self._updates(graph, data)
            case "values":
                events = iter([self._event("values", graph, node_path(graph), _values(data))])
            case "messages":
                events = iter([self._message(graph, *data)])
            case "custom":
                events = iter([self._event("custom", graph, self._node_of_custom(graph), inert(data))])
            case _:
                events = iter([self._event("debug", graph, *_debugged(graph, data))])
        for event in events:
            self._tell(event)

    def _event(self, mode: StreamMode, ns: str, node: str, data: object) -> StreamEvent:
        return StreamEvent(mode, self._now(), ns, node, data)

    def _updates(self, graph: str, data: Mapping[str, Any]) -> Iterator[StreamEvent]:
        for node, update in data.items():
            if node == INTERRUPT:
                # A question inside a subgraph is told again by every graph around it.
                asked = [one for one in update if one.id not in self._asked]
                self._asked.update(one.id for one in asked)
                if asked:
                    yield self._event("updates", graph, node_path(graph), {INTERRUPT: _questions(asked)})
            elif not node.startswith("__"):
                yield self._event("updates", graph, _below(graph, node), inert(update))

    def _message(self, graph: str, message: BaseMessage, metadata: Mapping[str, Any]) -> StreamEvent:
        from langchain_core.messages import BaseMessageChunk

        node = _below(graph, str(metadata.get("langgraph_node") or ""))
        whole = not isinstance(message, BaseMessageChunk)
        last = whole or getattr(message, "chunk_position", None) == _LAST
        piece = "" if whole else str(message.id or "")
        return StreamEvent("messages", self._now(), graph, node, inert(message), piece, last)

    def _begin_step(self, graph: str, data: Mapping[str, Any]) -> None:
        """Forgets the tasks of the step before, and keeps which of the new ones have finished in an earlier run."""
        self._running[graph] = {}
        self._finished[graph] = {task["id"] for task in data["tasks"] if task.get("result")}

    def _note_task(self, graph: str, data: Mapping[str, Any]) -> None:
        """Keeps which tasks of a graph run: a payload with triggers starts one, any other ends it."""
        running = self._running.setdefault(graph, {})
        if data["id"] in self._finished.get(graph, ()):
            return
        if "triggers" in data:
            running[data["id"]] = data["name"]
        else:
            running.pop(data["id"], None)

    def _node_of_custom(self, graph: str) -> str:
        """Returns the node that wrote custom data: where several nodes of its graph run at once, the graph's path."""
        names = set(self._running.get(graph, {}).values())
        return _below(graph, names.pop()) if len(names) == 1 else node_path(graph)


def _values(data: Any) -> object:
    """Returns the state; questions, which LangGraph puts into it, in the form that updates have them in."""
    if not isinstance(data, Mapping) or INTERRUPT not in data:
        return inert(data)
    state = inert({key: value for key, value in data.items() if key != INTERRUPT})
    return {**(state if isinstance(state, dict) else {}), INTERRUPT: _questions(data[INTERRUPT])}


def _questions(asked: Sequence[Any]) -> list[dict[str, object]]:
    return [{"id": one.id, "value": inert(one.value)} for one in asked]


def inert(value: object) -> object:
    """Returns an application's value as events carry it: inert, well-known shapes of secrets hidden."""
    return hide_secrets_in_texts(inert_value(value))


def _below(graph: str, node: str) -> str:
    """Returns the path of a node of a graph."""
    return "|".join(part for part in (node_path(graph), node) if part)


def _debugged(graph: str, event: Mapping[str, Any]) -> tuple[str, object]:
    """Returns node and data of a debug event; secrets of the configuration are hidden."""
    payload = dict(event["payload"])
    node = _below(graph, str(payload.get("name") or ""))
    for name in _CONFIGURATION:
        if isinstance(payload.get(name), Mapping):
            payload[name] = hide_secrets_in(payload[name])
    data = {key: inert(value) for key, value in payload.items()}
    return node, {"type": event["type"], "step": event["step"], "payload": data}
