"""Reports E: tool calls without a result, results without a call, and people who decide on calls."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from agentctl.testing import CliResult, run_cli
from tests.catalog import config_of, go
from tests.support import field_agents
from tests.support.copies import stock_saver
from tests.support.damage import Rows, postgres_rows, sqlite_rows
from tests.support.field_agents import (
    FILE,
    PAID,
    approving,
    approving_deeply,
    chatting,
    lookup,
    pay,
    team,
    with_sends,
    with_tool_node,
)
from tests.support.postgres import new_database
from tests.support.tools import agent, call, calling

ASKED = {"messages": [HumanMessage("where is A1?")]}
ON_BOTH = pytest.mark.parametrize("rows", ["sqlite", "postgres"], indirect=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Rows]]:
    """Stores by kind, the Postgres one made when it is first asked for."""
    stores: dict[str, Rows] = {}
    with ExitStack() as stack:

        def of(kind: str) -> Rows:
            if kind not in stores:
                if kind == "sqlite":
                    stores[kind] = stack.enter_context(sqlite_rows(tmp_path_factory.mktemp("calls")))
                else:
                    url = stack.enter_context(new_database(request.getfixturevalue("postgres_url")))
                    stores[kind] = stack.enter_context(postgres_rows(url))
            return stores[kind]

        yield of


@pytest.fixture
def rows(made: Callable[[str], Rows], request: pytest.FixtureRequest) -> Rows:
    """A store that the tests of this file share; SQLite unless a test says otherwise."""
    return made(getattr(request, "param", "sqlite"))


@pytest.fixture
def debug(tmp_path: Path) -> Path:
    """A debug store of the test's own."""
    return tmp_path / "debug.sqlite"


def doctor(rows: Rows, thread: str) -> tuple[CliResult, list[dict[str, Any]]]:
    """What `doctor` says of a thread."""
    found = run_cli("doctor", thread, "--store", rows.url, "--json")
    return found, found.json["items"]


def codes(items: Sequence[dict[str, Any]], severity: str = "fault") -> set[str]:
    return {item["code"] for item in items if item["severity"] == severity}


def pasted(items: Sequence[dict[str, Any]], graph: str, debug: Path) -> CliResult:
    """Runs the one fork that the findings give as their command."""
    (line,) = {item["command"] for item in items if item["command"].startswith("agentctl fork ")}
    words = shlex.split(line)[1:]
    return run_cli(*words, "--graph", f"{FILE}:{graph}", "--debug-store", debug, "--json")


def told(debug: Path, thread: str, graph: Any) -> list[Any]:
    """The messages that stock LangGraph loads of a debug thread."""
    with stock_saver(str(debug)) as saver:
        messages: list[Any] = graph.copy(update={"checkpointer": saver}).get_state(config_of(thread)).values["messages"]
        return messages


def failing(name: str, error: type[BaseException]) -> BaseTool:
    """A tool that never comes back."""

    @tool(name)
    def raising(order: str, amount: int = 120) -> str:
        """Pays money back."""
        raise error("the bank is down")

    return raising


AGENTS = {"node_agent": with_tool_node, "send_agent": with_sends}


@pytest.mark.parametrize(("rows", "graph"), [("sqlite", "node_agent"), ("postgres", "send_agent")], indirect=["rows"])
def test_e1_e2_e13_a_tool_that_raised_leaves_a_fault_and_the_command_that_answers_its_calls(
    rows: Rows, graph: str, debug: Path
) -> None:
    broken, thread = AGENTS[graph]([lookup, failing("pay", RuntimeError)], rows.saver), f"raised {graph}"
    with pytest.raises(RuntimeError):
        go(broken, thread, ASKED)

    at_once, items = doctor(rows, thread)

    assert at_once.code == 1
    assert (codes(items), codes(items, "warning")) == ({"call_failed"}, {"task_failed"})
    assert pasted(items, graph, debug).json["next"] == ["agent" if graph == "node_agent" else "model"]

    go(broken, thread, {"messages": [HumanMessage("hello?")]})
    later, items = doctor(rows, thread)

    assert (later.code, codes(items)) == (1, {"call_unanswered"})
    assert all(item["cause"].endswith("has no result, and a human message came after it") for item in items)
    assert pasted(items, graph, debug).code == 0
    messages = told(debug, f"{thread}.fork-2", getattr(field_agents, graph))
    assert [m.type for m in messages] == ["human", "ai", "tool", "tool", "human", "ai"]
    assert [m.tool_call_id for m in messages[2:4]] == ["look-1", "pay-1"]
    for fork in (f"{thread}.fork-1", f"{thread}.fork-2"):
        assert run_cli("doctor", fork, "--store", debug).code == 0


def test_e12_a_cancelled_run_is_told_and_a_new_message_after_it_is_a_fault(rows: Rows, debug: Path) -> None:
    broken = with_tool_node([lookup, failing("pay", KeyboardInterrupt)], rows.saver)
    with pytest.raises(KeyboardInterrupt):
        go(broken, "cancelled", ASKED)

    found, items = doctor(rows, "cancelled")

    assert (found.code, codes(items, "info")) == (0, {"call_waiting"})
    assert {item["cause"].partition(":")[2] for item in items} == {" the thread stopped before tools"}
    answers = ("--answer", 'look-1="gone"', "--answer", 'pay-1="not paid"', "--graph", f"{FILE}:node_agent")
    forked = run_cli("fork", "cancelled", "--store", rows.url, "--debug-store", debug, *answers, "--json")
    assert (forked.code, forked.json["runs"][0]["reply"]) == (0, "done")

    go(broken, "cancelled", {"messages": [HumanMessage("hello?")]})
    found, items = doctor(rows, "cancelled")

    assert (found.code, codes(items)) == (1, {"call_unanswered"})


def test_e3_one_of_two_calls_is_not_answered_without_the_other(rows: Rows, debug: Path) -> None:
    graph = with_tool_node([lookup, pay], rows.saver, interrupt_before=["tools"])
    go(graph, "half", ASKED)
    stores = ("--store", rows.url, "--debug-store", debug, "--graph", f"{FILE}:node_agent")

    refused = run_cli("fork", "half", "--answer", 'look-1="gone"', *stores)

    assert refused.code == 5
    assert "pay (pay-1) of the same message would stay unanswered" in refused.err
    assert "hint: answer every call of the message: --answer pay-1=JSON" in refused.err

    answer = ToolMessage("gone", tool_call_id="look-1", name="lookup")
    graph.update_state(config_of("half"), {"messages": [answer]}, as_node="tools")
    found, items = doctor(rows, "half")

    assert (found.code, codes(items)) == (1, {"call_unanswered"})
    assert items[0]["cause"] == "pay (pay-1) has no result, and an edit answered only other calls of its message"
    assert pasted(items, "node_agent", debug).json["next"] == ["agent"]
    assert [m.type for m in told(debug, "half.fork-1", field_agents.node_agent)] == ["human", "ai", "tool", "tool"]

    go(graph, "half", None)
    went_on = run_cli("fork", "half", "--answer", 'pay-1="late"', "--no-run", *stores)
    assert went_on.code == 0, went_on.err


def test_e3_of_a_message_in_the_past_every_open_call_is_answered_or_none(rows: Rows, debug: Path) -> None:
    graph = with_tool_node([lookup, pay], rows.saver, interrupt_before=["tools"])
    go(graph, "past", ASKED)
    go(graph, "past", {"messages": [HumanMessage("hello?")]})
    stores = ("--store", rows.url, "--debug-store", debug, "--graph", f"{FILE}:node_agent")
    head = run_cli("resolve", "past", "--store", rows.url, "--json").json["id"]

    refused = run_cli("fork", f"past@{head}", "--answer", 'look-1="gone"', "--no-run", *stores)

    assert refused.code == 5
    assert "pay (pay-1) of the same message would stay unanswered" in refused.err


def test_e3_calls_of_a_conversation_in_another_channel_are_answered_too(rows: Rows, debug: Path) -> None:
    graph = chatting(rows.saver, interrupt_before=["tools"])
    for text in ("where is A1?", "hello?"):
        go(graph, "chat", {"chat": [HumanMessage(text)]})

    found, items = doctor(rows, "chat")

    assert (found.code, codes(items)) == (1, {"call_unanswered"})
    assert pasted(items, "chat_agent", debug).code == 0
    assert run_cli("doctor", "chat.fork-1", "--store", debug).code == 0


@ON_BOTH
def test_e4_a_result_after_a_later_message_is_misordered(rows: Rows) -> None:
    graph = agent([lookup], lambda m: _look(m, "c1"), checkpointer=rows.saver, interrupt_before=["tools"])
    go(graph, "late", ASKED)
    go(graph, "late", {"messages": [HumanMessage("hello?")]})
    late = ToolMessage("A1 was lost", tool_call_id="c1", name="lookup")
    graph.update_state(config_of("late"), {"messages": [late]}, as_node="tools")

    found, items = doctor(rows, "late")

    assert (found.code, codes(items)) == (1, {"call_misordered"})
    assert _cause(items, "call_misordered") == (
        "the result of lookup (c1) comes after a human message, not after its call"
    )


def _look(messages: Sequence[Any], id: str) -> AIMessage:
    return calling(call("lookup", id, order="A1")) if messages[-1].text == "where is A1?" else AIMessage("done")


def _cause(items: Sequence[dict[str, Any]], code: str) -> str:
    (cause,) = [item["cause"] for item in items if item["code"] == code]
    return str(cause)


@ON_BOTH
def test_e5_e9_a_result_whose_call_was_trimmed_names_the_checkpoint_that_lost_it(rows: Rows) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [_look(state["messages"], "c1")]})
    graph.add_node("tools", ToolNode([lookup]))
    graph.add_node("trim", lambda state: {"messages": [RemoveMessage(m.id) for m in state["messages"][:2]]})
    graph.add_node("reply", lambda state: {"messages": [AIMessage("done")]})
    graph.add_edge(START, "agent").add_edge("agent", "tools").add_edge("tools", "trim").add_edge("trim", "reply")
    go(graph.compile(checkpointer=rows.saver), "trimmed", ASKED)

    found, items = doctor(rows, "trimmed")

    assert (found.code, codes(items)) == (1, {"call_orphaned"})
    lost = run_cli("resolve", "trimmed@after:trim", "--store", rows.url, "--json").json["id"]
    assert _cause(items, "call_orphaned") == (
        f"a result of lookup (c1) answers no call before it; the first checkpoint without the call is {lost}"
    )
    assert run_cli(*shlex.split(items[0]["command"])[1:], "--json").json["wrote"] == ["trim"]


def test_e6_the_call_beside_a_hand_off_is_named_in_the_graph_and_in_the_agent_that_took_over(
    rows: Rows, debug: Path
) -> None:
    go(team([call("transfer_to_bob", "t1"), call("lookup", "t2", order="A1")], rows.saver), "handed", ASKED)

    found, items = doctor(rows, "handed")

    assert found.code == 1
    assert _places(items) == {("call_unanswered", ""), ("call_unanswered", "bob")}
    assert {item["cause"].partition(" has ")[0] for item in items} == {"lookup (t2)"}
    assert pasted(items, "alice_bob_carol", debug).code == 0
    assert run_cli("doctor", "handed.fork-1", "--store", debug).code == 0


def test_e7_of_two_hand_offs_at_once_the_one_that_was_left_behind_is_named(rows: Rows, debug: Path) -> None:
    go(team([call("transfer_to_bob", "bob"), call("transfer_to_carol", "carol")], rows.saver), "both", ASKED)

    found, items = doctor(rows, "both")

    assert found.code == 1
    (left,) = {item["cause"].partition(" has ")[0] for item in items}
    # Which of the two finishes last, and so takes over, is a race.
    took_over = {"transfer_to_bob (bob)": "carol", "transfer_to_carol (carol)": "bob"}[left]
    assert _places(items) == {("call_unanswered", ""), ("call_unanswered", took_over)}
    assert pasted(items, "alice_bob_carol", debug).code == 0
    assert run_cli("doctor", "both.fork-1", "--store", debug).code == 0


def _places(items: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(item["code"], item["ns"].partition(":")[0]) for item in items}


def test_e6_a_hand_off_that_is_answered_is_no_fault(rows: Rows) -> None:
    go(team([call("transfer_to_bob", "t1")], rows.saver), "handed well", ASKED)

    assert doctor(rows, "handed well")[1] == []


def test_e8_stored_messages_are_looked_at_whatever_the_next_run_was_given(rows: Rows) -> None:
    graph = with_tool_node([lookup, pay], rows.saver, interrupt_before=["tools"])
    go(graph, "cleaned", ASKED)
    cleaned = [HumanMessage("where is A1?"), AIMessage("I do not know."), HumanMessage("hello?")]
    go(graph, "cleaned", {"messages": cleaned})

    found, items = doctor(rows, "cleaned")

    assert (found.code, codes(items)) == (1, {"call_unanswered"})
    assert {item["cause"].split()[0] for item in items} == {"lookup", "pay"}


@ON_BOTH
def test_e10_a_malformed_call_needs_a_result_too_and_can_be_given_one(rows: Rows, debug: Path) -> None:
    bad = {"name": "pay", "id": "bad", "args": "{order", "error": "not JSON", "type": "invalid_tool_call"}
    graph = agent([pay], lambda messages: AIMessage("", invalid_tool_calls=[bad]), checkpointer=rows.saver)
    go(graph, "malformed", ASKED)

    found, items = doctor(rows, "malformed")

    assert (found.code, codes(items)) == (1, {"call_invalid"})
    assert items[0]["cause"] == "pay (bad) was malformed, has no result, and the thread ended there"
    assert pasted(items, "node_agent", debug).code == 0
    assert [m.type for m in told(debug, "malformed.fork-1", field_agents.node_agent)] == ["human", "ai", "tool"]
    assert run_cli("doctor", "malformed.fork-1", "--store", debug).code == 0


def test_e11_a_call_with_an_empty_id_is_paired_by_position_and_is_a_call(rows: Rows) -> None:
    graph = agent([lookup], lambda m: _look(m, ""), checkpointer=rows.saver)
    go(graph, "no id", ASKED)
    stopped = agent([lookup], lambda m: _look(m, ""), checkpointer=rows.saver, interrupt_before=["tools"])
    go(stopped, "no id, open", ASKED)
    go(stopped, "no id, open", {"messages": [HumanMessage("hello?")]})

    found, items = doctor(rows, "no id")
    still_open, open_items = doctor(rows, "no id, open")

    assert (found.code, codes(items), codes(items, "warning")) == (0, set(), {"call_without_id"})
    assert (still_open.code, codes(open_items)) == (1, {"call_unanswered"})
    assert _cause(open_items, "call_unanswered") == "lookup (no id) has no result, and a human message came after it"
    shown = run_cli("show", "no id", "--store", rows.url, "--call", "lookup", "--json").json
    assert shown["result"]["text"] == "A1 was delivered"


@ON_BOTH
def test_e14_a_second_result_of_one_call_is_a_fault_that_says_which_to_drop(rows: Rows) -> None:
    graph = agent([lookup], lambda m: _look(m, "c1"), checkpointer=rows.saver)
    go(graph, "twice", ASKED)
    late = ToolMessage("A1 was lost", tool_call_id="c1", name="lookup", id="late")
    state = graph.get_state_history(config_of("twice"))
    after_tools = next(one for one in state if one.next == ("agent",))
    graph.update_state(after_tools.config, {"messages": [late]}, as_node="tools")

    found, items = doctor(rows, "twice")

    assert (found.code, codes(items)) == (1, {"call_answered_twice"})
    assert _cause(items, "call_answered_twice") == "lookup (c1) has 2 results; drop message late, which came later"


DECISIONS = {
    "reject": {"type": "reject", "message": "not today"},
    "edit": {"type": "edit", "edited_action": {"name": "pay", "args": {"order": "A1", "amount": 5}}},
}


@pytest.fixture(scope="module")
def decided(made: Callable[[str], Rows]) -> Callable[[str, str], str]:
    """Threads on which a person decided about one of two calls, by agent and decision, made once."""
    rows, known = made("sqlite"), set[str]()
    builders = {"approving_agent": approving, "deep_agent": approving_deeply}

    def thread(graph: str, decision: str) -> str:
        name = f"{graph} {decision}"
        if name not in known:
            built = builders[graph](rows.saver)
            go(built, name, ASKED)
            go(built, name, Command(resume={"decisions": [DECISIONS[decision]]}))
            known.add(name)
        return name

    return thread


@pytest.mark.parametrize("graph", ["approving_agent", "deep_agent"])
def test_e15_e17_e18_a_rejected_call_has_its_result_its_sibling_too_and_never_runs(
    rows: Rows, decided: Callable[[str, str], str], graph: str, debug: Path
) -> None:
    thread = decided(graph, "reject")

    found, items = doctor(rows, thread)

    assert (found.code, items) == (0, [])
    shown = run_cli("show", thread, "--store", rows.url, "--messages", "--json").json["items"]
    results = {answer["name"]: answer["status"] for item in shown for answer in item["answers"]}
    assert results == {"lookup": "success", "pay": "error"}

    PAID.clear()
    stores = ("--store", rows.url, "--debug-store", debug, "--graph", f"{FILE}:{graph}")
    decision = '{"decisions": [{"type": "reject", "message": "not today"}]}'
    replayed = run_cli("replay", f"{thread}@before:model:1", "--resume", decision, *stores, "--json")

    assert replayed.code == 0, replayed.out
    (run,) = replayed.json["runs"]
    assert (run["status"], [one["name"] for one in run["tool_calls"]], PAID) == ("done", ["lookup"], [])


def test_e16_the_arguments_that_were_asked_for_and_those_that_ran_are_both_shown(
    rows: Rows, decided: Callable[[str, str], str]
) -> None:
    thread = decided("approving_agent", "edit")

    shown = run_cli("show", thread, "--store", rows.url, "--call", "pay", "--json").json

    assert shown["args"] == {"order": "A1"}
    assert 'arguments {"order": "A1", "amount": 5}' in shown["result"]["text"]
    assert shown["result"]["text"].endswith("paid 5")
