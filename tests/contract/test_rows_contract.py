"""LangGraph's private names and layout that reading rows without the graph relies on.

A version that changes one of them fails here first; `agentctl.stores.reading.layout` is then the module to change.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from langgraph._internal import _constants as stock
from langgraph.channels.last_value import LastValueAfterFinish
from langgraph.channels.named_barrier_value import NamedBarrierValue, NamedBarrierValueAfterFinish
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.graph import START, StateGraph
from langgraph.graph.state import _CHANNEL_BRANCH_TO, _DEFAULT_ERROR_HANDLER_NODE
from langgraph.pregel._algo import _uuid5_str, _xxhash_str, task_path_str
from langgraph.pregel._task_status import CONTROL_WRITES
from langgraph.pregel.main import _update_task_id

from agentctl.records.rows import NULL_TASK
from agentctl.stores.open import open_reader
from agentctl.stores.reading import layout
from agentctl.stores.reading.layout import TaskPath, parse_task_path
from tests.catalog import CATALOG, config_of, sqlite_case

CHECKPOINT = "1f1ecc75-ef0f-6706-8001-d140a45e01d8"
NAMESPACE_BYTES = UUID(CHECKPOINT).bytes


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (layout.INPUT, stock.INPUT),
        (layout.TASKS, stock.TASKS),
        (layout.INTERRUPT, stock.INTERRUPT),
        (layout.RESUME, stock.RESUME),
        (layout.ERROR, stock.ERROR),
        (layout.ERROR_SOURCE_NODE, stock.ERROR_SOURCE_NODE),
        (layout.NO_WRITES, stock.NO_WRITES),
        (layout.RETURN, stock.RETURN),
        (layout.PREVIOUS, stock.PREVIOUS),
        (layout.SNAPSHOT_BUMPS, stock.SNAPSHOT_BUMPS),
        (layout.PULL, stock.PULL),
        (layout.PUSH, stock.PUSH),
        (layout.NS_SEPARATOR, stock.NS_SEP),
        (layout.NS_END, stock.NS_END),
        (layout.START, START),
        (layout.BRANCH + "x", _CHANNEL_BRANCH_TO.format("x")),
        (layout.ERROR_HANDLER_NODES[1], _DEFAULT_ERROR_HANDLER_NODE),
        (NULL_TASK, stock.NULL_TASK_ID),
    ],
)
def test_private_names_are_those_of_langgraph(ours: str, theirs: str) -> None:
    assert ours == theirs


def test_control_writes_and_their_numbers_are_those_of_langgraph() -> None:
    assert layout.CONTROL == CONTROL_WRITES
    assert {layout.ERROR: -1, layout.INTERRUPT: -3, layout.RESUME: -4}.items() <= WRITES_IDX_MAP.items()


@pytest.mark.parametrize(("format", "make"), [(4, _xxhash_str), (1, _uuid5_str)])
def test_task_ids_are_made_as_langgraph_makes_them(format: int, make: Any) -> None:
    pull = make(NAMESPACE_BYTES, "outer:1|node", "3", "node", stock.PULL, "branch:to:node", "join:a+b:node")
    assert pull == layout.pull_task_id(
        CHECKPOINT, "outer:1", 3, "node", {"join:a+b:node", "branch:to:node"}, format=format
    )
    send = make(NAMESPACE_BYTES, "node", "0", "node", stock.PUSH, "7")
    assert send == layout.send_task_id(CHECKPOINT, "", 0, "node", 7, format=format)
    handler = make(NAMESPACE_BYTES, "h", "0", "h", stock.PUSH, "node_error_handler", pull)
    assert handler == layout.handler_task_id(CHECKPOINT, "", 0, "h", pull, format=format)


@pytest.mark.parametrize("number", [0, 1, 5])
def test_update_ids_are_made_as_langgraph_makes_them(number: int) -> None:
    name = layout.INTERRUPT if number == 0 else f"{layout.INTERRUPT}:{number}"
    assert layout.derived_id(CHECKPOINT, name) == _update_task_id(CHECKPOINT, number)


@pytest.mark.parametrize(
    ("path", "meaning"),
    [
        ((stock.PULL, "node"), TaskPath("pull", "node")),
        ((stock.PULL, "odd, name"), TaskPath("pull", "odd, name")),
        ((stock.PUSH, 4, False), TaskPath("send", None, 4)),
        ((stock.PUSH, (stock.PULL, "flow"), 2, True), TaskPath("call", "flow", 2)),
        ((stock.PUSH, (stock.PUSH, (stock.PULL, "flow"), 2, True), 1, True), TaskPath("call", "flow", 1)),
        ((stock.PULL, "node", "node_error_handler", False), TaskPath("handler", "node")),
        ((stock.PUSH, 4, False, "node_error_handler", False), TaskPath("handler", None, 4)),
        ((stock.INTERRUPT, 3), TaskPath("update", None, 3)),
        (((1, stock.PULL),), TaskPath("exit")),
    ],
)
def test_stored_task_paths_are_understood(path: tuple[Any, ...], meaning: TaskPath) -> None:
    assert parse_task_path(task_path_str(path)) == meaning


def test_paths_that_we_make_are_those_that_langgraph_stores() -> None:
    assert layout.pull_path("node") == task_path_str((stock.PULL, "node"))
    assert layout.send_path(12) == task_path_str((stock.PUSH, 12, False))


@pytest.mark.parametrize("path", [None, "", "something else"])
def test_a_path_of_no_known_form_is_unknown(path: str | None) -> None:
    assert parse_task_path(path) == TaskPath("unknown")


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def test_trigger_channels_are_named_and_built_as_expected() -> None:
    graph = StateGraph(State)
    for name in ("a", "b", "end", "late"):
        graph.add_node(name, lambda state: None, defer=name == "late")
    graph.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "end").add_edge(["a", "b"], "late")
    compiled = graph.compile()
    assert set(compiled.nodes["end"].triggers) == {"branch:to:end", "join:a+b:end"}
    assert set(compiled.nodes["__start__"].triggers) == {START}
    assert isinstance(compiled.channels["join:a+b:end"], NamedBarrierValue)
    assert isinstance(compiled.channels["join:a+b:late"], NamedBarrierValueAfterFinish)
    assert isinstance(compiled.channels["branch:to:late"], LastValueAfterFinish)
    assert compiled.channels["join:a+b:end"].checkpoint() == set()
    assert compiled.channels["join:a+b:late"].checkpoint() == (set(), False)


@pytest.mark.parametrize(
    ("channel", "node"),
    [
        ("branch:to:x", "x"),
        ("branch:to:x:y", "x:y"),
        ("join:a+b:c", "c"),
        (START, START),
        ("messages", None),
        (stock.TASKS, None),
    ],
)
def test_the_node_that_a_channel_triggers(channel: str, node: str | None) -> None:
    assert layout.triggered_node(channel) == node


@pytest.mark.parametrize(
    ("channel", "node"), [("start:x", "x"), ("branch:a:route:x", "x"), ("branch:to:x", "x"), ("x", None)]
)
def test_triggers_of_formats_before_3(channel: str, node: str | None) -> None:
    assert layout.triggered_node(channel, format=2) == node


@pytest.mark.parametrize(
    ("arrived", "complete"), [((), False), (("a",), False), (("b+c", "a"), True), (("a", "b+c"), True)]
)
def test_a_join_is_complete_when_every_name_arrived_even_with_plus_in_it(
    arrived: tuple[str, ...], complete: bool
) -> None:
    assert layout.join_is_complete("join:a+b+c:end", arrived) is complete


def test_output_of_a_resumed_task_starts_after_its_answers(tmp_path: Path) -> None:
    """Gaps in idx are normal: output of a task that was resumed starts at 1."""
    case = CATALOG["interrupt answered"]
    with sqlite_case(tmp_path, case) as (path, _):
        reader = open_reader(str(path))
        review = [w for w in reader.writes(case.thread, "") if w.task_path == "~__pregel_pull, review"]
        assert sorted(w.idx for w in review) == [-4, -3, 1, 2]


def test_a_send_row_has_its_position_and_not_its_name(tmp_path: Path) -> None:
    case = CATALOG["fan out"]
    with sqlite_case(tmp_path, case) as (path, graph):
        reader = open_reader(str(path))
        paths = {
            w.task_path for w in reader.writes(case.thread, "") if (w.task_path or "").startswith("~__pregel_push")
        }
        assert paths == {layout.send_path(i) for i in range(3)}
        fan = next(s for s in graph.get_state_history(config_of(case.thread)) if "read" in s.next)
        assert [task.path for task in fan.tasks if task.name == "read"] == [(stock.PUSH, i, False) for i in range(3)]


def test_an_error_handler_has_the_path_of_the_task_that_failed(tmp_path: Path) -> None:
    case = CATALOG["handled error"]
    with sqlite_case(tmp_path, case) as (path, _):
        reader = open_reader(str(path))
        paths = {w.task_path for w in reader.writes(case.thread, "")}
        assert "~__pregel_pull, bureau, node_error_handler, 0000000000" in paths


def test_durability_exit_keeps_one_row_and_a_stub_before_delta_channels(tmp_path: Path) -> None:
    case = CATALOG["exit delta"]
    with sqlite_case(tmp_path, case) as (path, _):
        rows = open_reader(str(path)).rows(case.thread)
        assert [(row.step, row.source) for row in rows] == [(6, "loop"), (2, "loop"), (-2, "")]
