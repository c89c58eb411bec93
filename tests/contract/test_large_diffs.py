"""Values over a size are compared as they lie in a store, with the outcome that both have when they are read whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from agentctl.codec import large as codec_large
from agentctl.codec import parts as codec_parts
from agentctl.codec.values import decode
from agentctl.experiments.comparing import diff as comparing
from agentctl.experiments.comparing.diff import Tip, diff_tips
from agentctl.experiments.comparing.large import without_alike
from agentctl.records.copies import Place
from agentctl.records.rows import Large, Stored
from agentctl.stores.large import Chunks
from agentctl.testing import run_cli
from tests.contract.test_large_states import peak_bytes
from tests.support.stores import saver_at

N_MESSAGES = 1_500
PEAK_BYTES = 12_000_000
"""Read whole, both sides take four times as much."""

MESSAGES = st.lists(
    st.one_of(
        st.builds(HumanMessage, st.sampled_from(["a", "b", "é" * 60])),
        st.builds(AIMessage, st.sampled_from(["", "a", "no" * 50])),
        st.just(AIMessage("", tool_calls=[{"name": "look", "args": {"q": 1}, "id": "c1"}])),
        st.just(ToolMessage("found", tool_call_id="c1")),
    ),
    max_size=6,
)
OTHER = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["", "x" * 50, "é" * 30]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def stored(value: object) -> Stored:
    return Stored(*JsonPlusSerializer().dumps_typed(value))


def in_chunks(value: Stored) -> Large:
    return Large(value.type, Chunks(len(value.data), lambda start, n: value.data[start : start + n]))


def tip(value: object, **rest: Any) -> Tip:
    return Tip(Place("s", "t", "1"), ["1"], {"channel": value}, {}, **rest)


def named(messages: list[Any], change: Callable[[int], str]) -> list[Any]:
    return [message.model_copy(update={"id": change(i)}) for i, message in enumerate(messages)]


def check_equal_outcome(left: object, right: object) -> None:
    wholes = stored(left), stored(right)
    with patch.object(codec_parts, "HELD_BYTES", 40), patch.object(codec_large, "HELD_BYTES", 40):
        pair = without_alike(*map(in_chunks, wholes), is_cut=False)
    leading = {"channel": pair.leading}

    in_parts = diff_tips(tip(pair.left, leading=leading), tip(pair.right, leading=leading))

    assert in_parts == diff_tips(*(tip(decode(whole)) for whole in wholes))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])  # of making values, on a busy machine
@given(MESSAGES, MESSAGES, MESSAGES, st.booleans())
def test_conversations_differ_in_parts_as_they_do_whole(
    shared: list[Any], left: list[Any], right: list[Any], has_ids: bool
) -> None:
    sides = [shared + left, shared + right]
    if has_ids:
        sides = [named(side, lambda i: f"m{i}") for side in sides]
    check_equal_outcome(*sides)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(OTHER, OTHER, MESSAGES)
def test_other_values_differ_in_parts_as_they_do_whole(left: object, right: object, messages: list[Any]) -> None:
    check_equal_outcome(left, right)
    check_equal_outcome([*messages, left], [*messages, right])
    check_equal_outcome({"a": left, "b": messages}, {"b": messages, "a": right})


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    document: Any
    left: int


def write_conversation(url: str) -> None:
    """Writes a small checkpoint, one of 3 MB of messages and a document of 3 MB, and two more small steps."""
    graph: Any = StateGraph(State).add_node("edit", lambda state: {}).add_edge(START, "edit")
    said = [AIMessage("y" * 2_000, id=f"m{i}") for i in range(N_MESSAGES)]
    with saver_at(url) as saver:
        saver.setup()
        bound = graph.compile(checkpointer=saver)
        thread = {"configurable": {"thread_id": "large"}}
        for update in (
            {"messages": [HumanMessage("hello", id="first")], "document": "", "left": 2},
            {"messages": said, "document": b"z" * 3_000_000, "left": 1},
            {"messages": [HumanMessage("and now?", id="more")], "left": 0},
            {"messages": [AIMessage("Nothing.", id="last")]},
        ):
            bound.update_state(thread, update, as_node="edit")


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("large") / "large.sqlite")
    write_conversation(path)
    return path


@pytest.mark.parametrize("sides", [("large@head~1", "large"), ("large@root", "large"), ("large", "large@head~2")])
def test_a_diff_of_large_values_says_what_it_says_of_whole_ones(
    sides: tuple[str, str], large_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_parts = run_cli("diff", *sides, "--store", large_file, "--json")
    monkeypatch.setattr(comparing, "LARGE_BYTES", 1 << 40)
    whole = run_cli("diff", *sides, "--store", large_file, "--json")

    assert in_parts.code == whole.code == 0, in_parts.err
    assert in_parts.out == whole.out
    assert not in_parts.json["equal"]


def test_what_two_checkpoints_have_alike_is_not_held(large_file: str, fresh_postgres_url: str) -> None:
    write_conversation(fresh_postgres_url)
    for url in (large_file, fresh_postgres_url):
        run_cli("diff", "large@head~1", "large", "--store", url)  # what is imported is not counted

        assert peak_bytes(lambda url=url: run_cli("diff", "large@head~1", "large", "--store", url)) < PEAK_BYTES  # type: ignore[misc]


@pytest.mark.parametrize("form", [str, str.encode])
def test_what_is_long_and_differs_is_cut_on_a_terminal_alone(form: Callable[[str], Any], tmp_path: Path) -> None:
    url = str(tmp_path / "values.sqlite")
    graph: Any = StateGraph(State).add_node("edit", lambda state: {}).add_edge(START, "edit")
    with saver_at(url) as saver:
        saver.setup()
        bound = graph.compile(checkpointer=saver)
        for end in "ab":
            config = {"configurable": {"thread_id": "values"}}
            bound.update_state(config, {"document": form("x" * 1_200_000 + end), "left": 0}, as_node="edit")

    shown = run_cli("diff", "values@head~1", "values", "--store", url, terminal=True, width=20_000)
    piped = run_cli("diff", "values@head~1", "values", "--store", url)

    assert shown.out.count("document") == 2
    assert 20_000 < len(shown.out) < 30_000
    assert len(piped.out) > 2_400_000
