"""Threads of a graph whose nodes call tools themselves and keep each call as a pair of messages in `calls`.

Three documents fan out by Send; then one branch makes two calls while another is a subgraph that makes two more.
"""

from __future__ import annotations

import json
import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.calls import call_tool
from tests.catalog.case import Saver, case, go, go_failing

WORLD: Counter[str] = Counter()
"""How often each tool really ran."""

DOCUMENTS = ("pay-1", "pay-2", "bank-1")


class Application(TypedDict, total=False):
    person: str
    doc: str
    calls: Annotated[list[AnyMessage], add_messages]
    read: Annotated[list[dict[str, Any]], operator.add]
    audit: Annotated[list[str], operator.add]
    bureau: dict[str, Any]
    income: dict[str, Any]
    decision: str


class Income(TypedDict, total=False):
    """What the subgraph shares: nothing that would be added a second time when it returns."""

    person: str
    calls: Annotated[list[AnyMessage], add_messages]
    income: dict[str, Any]


def lender() -> ToolRegistry:
    """The tools; each answers with JSON text and counts itself in `WORLD`."""
    tools = ToolRegistry()

    def ran(name: str, **result: Any) -> str:
        WORLD[name] += 1
        return json.dumps(result)

    @tools.register(effect="read")
    def read_document(doc: str) -> str:
        """Reads a document."""
        return ran("read_document", doc=doc, amount=100 * (1 + DOCUMENTS.index(doc)))

    @tools.register(effect="write")
    def pull_bureau(person: str) -> str:
        """Pulls a credit file."""
        return ran("pull_bureau", score=512, file="f-1")

    @tools.register(effect="read")
    def check_sanctions(person: str, file: str) -> str:
        """Looks a person up in the sanctions lists."""
        return ran("check_sanctions", hits=0)

    @tools.register(effect="read")
    def fetch_statements(person: str) -> str:
        """Fetches bank statements."""
        return ran("fetch_statements", months=3, credits=[900, 900, 900])

    @tools.register(effect="read")
    def match_payroll(monthly: int) -> str:
        """Matches an income with a payroll."""
        return ran("match_payroll", employer="ACME", matches=monthly > 500)

    return tools


def underwriting(saver: Saver | None, tools: ToolRegistry, *, asks: bool = False, fails: bool = False) -> Any:
    """The graph: `plan -> read x3 -> merge -> bureau || income (fetch -> match) -> score`.

    Args:
        saver: Where its threads go.
        tools: The registry that its nodes call.
        asks: Whether `match` asks for the employer before it calls.
        fails: Whether `fetch` raises before it calls.
    """

    def read(state: Application, config: RunnableConfig) -> Application:
        doc = state["doc"]
        called = call_tool(tools, "read_document", {"doc": doc}, id=f"read_document:{doc}", config=config)
        return {"read": [called.content], "calls": called.messages}

    def bureau(state: Application, config: RunnableConfig) -> Application:
        person = state["person"]
        pulled = call_tool(tools, "pull_bureau", {"person": person}, id="bureau_pull:1", config=config)
        args = {"person": person, "file": pulled.content["file"]}
        checked = call_tool(tools, "check_sanctions", args, id="sanctions:1", config=config)
        return {
            "bureau": {**pulled.content, **checked.content},
            "calls": [*pulled.messages, *checked.messages],
            "audit": ["bureau"],
        }

    def fetch(state: Income, config: RunnableConfig) -> Income:
        if fails:
            raise ValueError("the bank is down")
        called = call_tool(tools, "fetch_statements", {"person": state["person"]}, id="statements:1", config=config)
        return {"income": {"monthly": max(called.content["credits"])}, "calls": called.messages}

    def match(state: Income, config: RunnableConfig) -> Income:
        employer = interrupt("which employer?") if asks else None
        args = {"monthly": state["income"]["monthly"]}
        called = call_tool(tools, "match_payroll", args, id="payroll:1", config=config)
        found = {**state["income"], **called.content, **({"employer": employer} if employer else {})}
        return {"income": found, "calls": called.messages}

    def score(state: Application) -> Application:
        total = sum(document["amount"] for document in state["read"])
        good = state["bureau"]["score"] >= 600 and state["income"]["matches"] and not state["bureau"]["hits"]
        return {"decision": f"{'approve' if good else 'decline'} {total} {state['income']['employer']}"}

    verify = StateGraph(Income).add_node("fetch", fetch).add_node("match", match)
    verify.add_edge(START, "fetch").add_edge("fetch", "match")
    graph = StateGraph(Application)
    graph.add_node("plan", lambda state: {"audit": ["plan"]})
    graph.add_node("read", read)
    graph.add_node("merge", lambda state: {"audit": ["merge"]})
    graph.add_node("bureau", bureau)
    graph.add_node("income", verify.compile())
    graph.add_node("score", score)
    graph.add_edge(START, "plan").add_edge("read", "merge")
    graph.add_conditional_edges("plan", lambda _: [Send("read", {"doc": doc}) for doc in DOCUMENTS], ["read"])
    graph.add_edge("merge", "bureau").add_edge("merge", "income").add_edge(["bureau", "income"], "score")
    return graph.compile(checkpointer=saver)


def _apply(graph: Any, thread: str) -> None:
    go(graph, thread, {"person": "p-1"})


def _apply_and_answer(graph: Any, thread: str) -> None:
    _apply(graph, thread)
    go(graph, thread, Command(resume="Initech"))


CASES = (
    case("own calls", lambda saver: underwriting(saver, lender()), _apply, "calls that nodes make, in every shape"),
    case(
        "own calls failing",
        lambda saver: underwriting(saver, lender(), fails=True),
        lambda graph, thread: go_failing(graph, thread, {"person": "p-1"}),
        "a branch that made calls beside one that raised",
    ),
    case(
        "own calls asking",
        lambda saver: underwriting(saver, lender(), asks=True),
        _apply,
        "a subgraph that asks after a call of its own, beside a finished branch",
    ),
    case(
        "own calls answered",
        lambda saver: underwriting(saver, lender(), asks=True),
        _apply_and_answer,
        "the same, answered",
    ),
)
