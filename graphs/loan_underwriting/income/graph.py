"""The income check as a graph, a node of the case's graph."""

from __future__ import annotations

from typing import Any, cast

from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import RetryPolicy

from graphs.loan_underwriting.income.nodes import IncomeNodes, after_fetch, after_request
from graphs.loan_underwriting.income.state import IncomeInput, IncomeOutput, IncomeState

IncomeGraph = CompiledStateGraph[IncomeState, None, IncomeInput, IncomeOutput]


def build_income_graph(nodes: IncomeNodes, retry: RetryPolicy) -> IncomeGraph:
    """Builds the check. It is given the keys of `IncomeInput` and returns those of `IncomeOutput`."""
    graph = StateGraph(IncomeState, input_schema=IncomeInput, output_schema=IncomeOutput)
    graph.add_node("fetch_statements", cast(Any, nodes.fetch_statements), retry_policy=retry)
    graph.add_node("request_statements", nodes.request_statements)
    graph.add_node("parse_statements", nodes.parse_statements)
    graph.add_node("match_payroll", cast(Any, nodes.match_payroll), retry_policy=retry)
    graph.add_edge(START, "fetch_statements")
    graph.add_conditional_edges("fetch_statements", after_fetch, ["request_statements", "parse_statements"])
    graph.add_conditional_edges(
        "request_statements", after_request, ["request_statements", "fetch_statements", "parse_statements"]
    )
    graph.add_edge("parse_statements", "match_payroll")
    return graph.compile()
