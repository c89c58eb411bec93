"""Whether a graph takes an input, for every kind of state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, Field

from agentctl.errors import UsageError
from agentctl.experiments.workflows.graph_input import check_input, input_keys
from tests.strangers.graphs import deep_agent


class Input(TypedDict):
    question: str


class Whole(Input):
    answer: str


class Model(BaseModel):
    amount: int = Field(gt=0)
    currency: str = Field("EUR", alias="cur")


@dataclass
class Record:
    name: str = ""


def graph(state: Any, **schemas: Any) -> Any:
    return StateGraph(state, **schemas).add_node("a", lambda state: {}).add_edge(START, "a").compile()


@entrypoint()
def functional(value: object) -> object:
    return value


@pytest.mark.parametrize(
    ("app", "value"),
    [
        (graph(Whole), {"question": "?", "answer": ""}),
        (graph(Whole), {}),
        (graph(Whole, input_schema=Input), {"question": "?"}),
        (graph(MessagesState), {"messages": [["user", "hi"]]}),
        (graph(Model), {"amount": 3}),
        (graph(Model), {"amount": 3, "cur": "USD"}),
        (graph(Record), {"name": "x"}),
        (functional, [1, "any", None]),
        (deep_agent.make(), {"messages": [], "files": {}}),
    ],
)
def test_what_the_graph_takes_is_taken(app: Any, value: object) -> None:
    check_input(app, value)


@pytest.mark.parametrize(
    ("app", "value", "message"),
    [
        (graph(Whole), ["?"], "the input of app is an object, not a list"),
        (graph(Whole), "?", "not a text"),
        (graph(Whole), True, "not a truth value"),
        (graph(Whole), {"qestion": "?"}, "the input of app has no qestion"),
        (graph(Whole, input_schema=Input), {"question": "?", "answer": "!"}, "has no answer"),
        (graph(Model), {"amount": -1}, "amount: Input should be greater than 0"),
        (graph(Model), {}, "amount: Field required"),
        (graph(Record), {"nam": "x"}, "has no nam"),
        (deep_agent.make(), {"structured_response": {}}, "has no structured_response"),
    ],
)
def test_what_would_be_rejected_or_lost_without_a_word_is_refused(app: Any, value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        check_input(app, value, name="app")
    assert refused.value.exit_code == 2


def test_a_near_key_is_offered() -> None:
    with pytest.raises(UsageError) as refused:
        check_input(graph(Whole), {"qestion": "?"})
    assert refused.value.hint == "did you mean question? it takes: question, answer"


def test_langgraph_really_drops_what_is_refused() -> None:
    app = graph(Whole, input_schema=Input)
    assert app.invoke({"question": "?", "answer": "!"}) == {"question": "?"}
    assert input_keys(app) == ("question",)
