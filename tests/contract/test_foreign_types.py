"""Types of an application: shown and copied without it, and never lost in silence when a graph runs from them."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import ormsgpack
import pytest
from langgraph._internal import _serde
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde import _msgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from pydantic import BaseModel, Field, SecretStr, computed_field, field_serializer
from pydantic.v1 import BaseModel as OldModel

from agentctl.errors import Refused
from agentctl.experiments.replay import replay
from agentctl.experiments.runs.revival import Revival, serializer_of
from agentctl.records.rows import Stored
from agentctl.sandbox.graph_copies import copied
from agentctl.stores.reading.state import read_values
from agentctl.testing import build_thread
from tests.support.experiments import about_to_run, experiment_on

SERDE = JsonPlusSerializer()


class Colour(enum.Enum):
    RED = "red"


class Order(BaseModel):
    id: str
    lines: list[int] = []


class Aliased(BaseModel):
    order_id: str = Field(alias="orderId")


class Old(OldModel):
    id: str


@dataclasses.dataclass
class Plan:
    steps: list[str]


class Point(NamedTuple):
    x: int
    y: int


class Outer:
    class Inner(BaseModel):
        a: int = 1


class DriverId(UUID):
    """As database drivers have their own."""


class Stamp(datetime):
    """As data frames have their own."""


class Line(BaseModel):
    price: float = 1.5
    n: int = 1


class Cart(BaseModel):
    """A field of every kind that is stored otherwise than it is held."""

    lines: list[Line]
    tags: set[str] = {"a", "b", "c"}
    pair: tuple[int, str] = (1, "x")
    by_number: dict[int, str] = {1: "a"}
    limit: float = float("nan")
    pin: SecretStr = SecretStr("s")
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    anything: Any = None

    @field_serializer("at")
    def _text_of(self, at: datetime) -> str:
        return at.isoformat()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def n_lines(self) -> int:
        return len(self.lines)


HERE = __name__
WHOLE = (
    Colour.RED,
    Order(id="o-1"),
    Aliased(orderId="o-1"),
    Old(id="o-1"),
    Plan(["a"]),
    Point(1, 2),
    SecretStr("s"),
    DriverId(int=5),
    Cart(lines=[Line(), Line.model_construct(price=2, n=1)], anything=Order(id="o-1")),
)


def _stored(value: object) -> Stored:
    return Stored(*SERDE.dumps_typed(value))


def _ext(code: int, *parts: object) -> Stored:
    return Stored("msgpack", ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(list(parts)))))


def _losses(stored: Stored, serde: Any = SERDE) -> list[tuple[str, str]]:
    return [(loss.type_name, loss.reason) for loss in Revival(serde).losses(stored)]


@pytest.mark.parametrize("value", WHOLE, ids=lambda value: type(value).__name__)
def test_a_type_that_is_loaded_as_it_was_is_no_loss(value: object) -> None:
    assert type(SERDE.loads_typed(SERDE.dumps_typed(value))) is type(value)
    assert _losses(_stored([{"inside": value}])) == []


@pytest.mark.parametrize("name", ["set", "frozenset"])
def test_a_set_that_was_stored_in_the_order_of_another_process_is_no_loss(name: str) -> None:
    assert _losses(_ext(0, "builtins", name, [1, 0])) == []


@pytest.mark.parametrize(
    ("stored", "name", "reason"),
    [
        (_ext(5, "gone_module.models", "Order", {"id": "1"}, "x"), "gone_module.models.Order", "no module gone_module"),
        (_ext(2, HERE, "Gone", {"id": "1"}), f"{HERE}.Gone", "has no Gone at its top"),
        (_stored(Outer.Inner()), f"{HERE}.Inner", "has no Inner at its top"),
        (_ext(0, HERE, "Colour", "blue"), f"{HERE}.Colour", "'blue' is not a valid Colour"),
        (_ext(2, HERE, "Plan", {"stages": []}), f"{HERE}.Plan", "unexpected keyword argument 'stages'"),
        (_ext(2, HERE, "Point", {"x": 1}), f"{HERE}.Point", "missing 1 required positional argument: 'y'"),
        (
            _ext(5, HERE, "Order", {"lines": [1]}, "x"),
            f"{HERE}.Order",
            "loaded unchecked: Order refuses what is stored",
        ),
        (_ext(4, HERE, "Old", {}), f"{HERE}.Old", "id: field required"),
        (_ext(5, HERE, "Order", {"id": "1", "gift": True}, "x"), f"{HERE}.Order", "loaded changed: gift is dropped"),
        (_ext(4, HERE, "Old", {"id": "1", "city": "Bonn"}), f"{HERE}.Old", "loaded changed: city is dropped"),
        (_ext(4, HERE, "Old", {"id": 1}), f"{HERE}.Old", "loaded changed: id is str, not int"),
        (_ext(5, HERE, "Order", {"id": "1", "lines": ["7"]}, "x"), f"{HERE}.Order", "lines[0] is int, not str"),
        (
            _ext(5, HERE, "Cart", {"lines": [{"price": 1, "n": True}]}, "x"),
            f"{HERE}.Cart",
            "lines[0].n is int, not bool",
        ),
        (_ext(5, HERE, "Cart", {"lines": [], "tags": ["a"]}, "x"), f"{HERE}.Cart", "tags is builtins.set, not list"),
        (_ext(5, HERE, "Cart", {"lines": [], "n_lines": 3}, "x"), f"{HERE}.Cart", "n_lines is another int"),
        (_stored(Stamp(2026, 1, 1)), f"{HERE}.Stamp", "LangGraph calls no method of Stamp"),
        (_ext(0, HERE, "HERE", 1), f"{HERE}.HERE", "is no class"),
        (_ext(1, "pathlib", "WindowsPath", ["C:/"]), "pathlib.WindowsPath", "refuses what is stored"),
        (_ext(99, "x"), "msgpack extension 99", "loaded as None"),
        (Stored("pickle", b"\x80\x04N."), "value of type pickle", "never loaded"),
        (Stored("msgpack", b"\xa3\xff"), "value of type msgpack", "damaged"),
        (Stored("json", b'{"lc":2,"type":"constructor","id":["Set"],"args":[["a"]]}'), "Set", "loaded as plain data"),
        (Stored("json", b'{"lc":2,"type":"undefined"}'), "undefined", "loaded as plain data"),
        (
            Stored("json", b'{"lc":1,"type":"constructor","id":["langchain","messages","HumanMessage"],"kwargs":{}}'),
            "langchain.messages.HumanMessage",
            "loading it raises ValueError",
        ),
    ],
)
def test_a_type_that_would_be_loaded_as_something_else_is_named_with_the_reason(
    stored: Stored, name: str, reason: str
) -> None:
    ((found, why),) = _losses(stored)
    assert found == name
    assert reason in why


def test_each_type_is_told_once_however_often_and_deep_it_stands() -> None:
    gone = ormsgpack.Ext(2, ormsgpack.packb([HERE, "Gone", {}]))
    plan = ormsgpack.Ext(2, ormsgpack.packb([HERE, "Plan", {"steps": [gone, gone]}]))
    assert [name for name, _ in _losses(Stored("msgpack", ormsgpack.packb([plan, gone])))] == [f"{HERE}.Gone"]


def test_a_constructor_in_json_that_langgraph_knows_is_no_loss() -> None:
    path = ["langchain_core", "messages", "HumanMessage"]
    row = {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": "x"}}
    assert _losses(Stored("json", json.dumps(row).encode())) == []


class State(TypedDict, total=False):
    order: Order
    plan: Any
    seen: str


def _graph(**filled: object) -> Any:
    graph = StateGraph(State)
    graph.add_node("fill", lambda state: filled)
    graph.add_node("use", lambda state: {"seen": type(state["order"]).__name__})
    graph.add_edge(START, "fill").add_edge("fill", "use")
    return graph.compile()


@contextmanager
def _strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LANGGRAPH_STRICT_MSGPACK, which LangGraph reads when it is imported."""
    with monkeypatch.context() as patched:
        for module in (_serde, _msgpack):
            patched.setattr(module, "STRICT_MSGPACK_ENABLED", True)
        patched.setattr(BaseCheckpointSaver, "serde", JsonPlusSerializer())
        yield


def test_in_strict_mode_a_copied_graph_allows_the_types_of_its_state_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with _strict(monkeypatch):
        graph = _graph()
        assert graph.copy()._serde_allowlist is None, "LangGraph keeps the list now: `copied` can go"
        serde = serializer_of(copied(graph), None)
        assert _losses(_stored(Order(id="1")), serde) == []
        ((name, reason),) = _losses(_stored(Plan([])), serde)
    assert (name, "LANGGRAPH_STRICT_MSGPACK" in reason) == (f"{HERE}.Plan", True)


@pytest.mark.parametrize("plan", [{}, {"plan": Plan(["a"])}], ids=["declared", "not declared"])
def test_in_strict_mode_a_replay_has_the_types_of_the_application_or_is_refused(
    plan: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _strict(monkeypatch):
        graph = _graph(order=Order(id="o-1"), **plan)
        build_thread(graph, tmp_path / "prod.sqlite", "t", {"seen": ""})
        with experiment_on(tmp_path / "prod.sqlite", graph, tmp_path / "debug.sqlite") as experiment:
            target = about_to_run(experiment.source, "t", "use")
            if plan:
                with pytest.raises(Refused, match=f"channel plan .* holds {HERE}.Plan"):
                    replay(experiment, target)
                assert not experiment.debug.writer.heads()
                return
            (run,) = replay(experiment, target).group.runs
            newest = experiment.debug.writer.rows("t.replay-1")[0].id
            seen = read_values(experiment.debug.writer, "t.replay-1", "", newest).values["seen"]
    assert (run.status, seen) == ("done", "Order")
