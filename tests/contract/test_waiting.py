"""Which questions wait after an answer was taken and something failed: in a node, in a subgraph."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from agentctl.errors import Refused
from agentctl.experiments.workflows.runs import Workflow, WorkflowStore, resume_workflow, run_workflow
from agentctl.experiments.workflows.waiting import find_answered
from agentctl.stores.open import open_reader
from agentctl.stores.reading.state import read_values

FAILS: set[str] = set()


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


@pytest.fixture(autouse=True)
def _nothing_fails_yet() -> Iterator[None]:
    FAILS.clear()
    yield


@pytest.fixture
def store(tmp_path: Path) -> WorkflowStore:
    return WorkflowStore(str(tmp_path / "debug.sqlite"), "debug", "write", is_debug=True)


def fail(name: str) -> None:
    if name in FAILS:
        raise ConnectionError(name)


def ask_and_work(state: State) -> State:
    answers = [interrupt("first?")]
    fail("between")
    if answers == ["more"]:
        answers.append(interrupt("second?"))
    fail("after")
    return {"log": answers}


def work(state: State) -> State:
    fail("work")
    return {"log": ["worked"]}


def ask(state: State) -> State:
    return {"log": [interrupt("first?")]}


def line(*nodes: tuple[str, Any]) -> Any:
    return StateGraph(State).add_sequence(list(nodes)).add_edge(START, nodes[0][0]).compile()


def around(inner: Any) -> Any:
    """A graph whose node calls another graph by itself: no subgraph that a look at the graph would find."""

    def call(state: State) -> State:
        return {"log": inner.invoke({"log": []})["log"]}

    return line(("call", call))


def answered(store: WorkflowStore) -> frozenset[str]:
    with closing(open_reader(store.url)) as reader:
        return find_answered(reader, "t")


@pytest.mark.parametrize("how", ["declared", "called"])
def test_a_question_that_its_subgraph_has_gone_on_from_waits_no_more(store: WorkflowStore, how: str) -> None:
    inner = line(("ask", ask), ("work", work))
    graph = line(("income", inner)) if how == "declared" else around(inner)
    workflow = Workflow(graph, store, name="app")
    asked = run_workflow(workflow, "t", {"log": []}).interrupts[0]["id"]
    assert answered(store) == frozenset()
    FAILS.add("work")
    failed = resume_workflow(workflow, "t", value=1)
    assert (failed.status, failed.interrupts) == ("error", ())
    assert answered(store) == {asked}
    with pytest.raises(Refused, match="no question waiting for an answer; it is stopped at") as refused:
        resume_workflow(workflow, "t", value=2)
    assert refused.value.hint == "go on: agentctl run app --thread t"
    FAILS.clear()
    assert run_workflow(workflow, "t", None).status == "done"


def test_a_node_that_failed_after_its_answer_keeps_it_and_goes_on_with_it(store: WorkflowStore) -> None:
    workflow = Workflow(line(("both", ask_and_work)), store, name="app")
    asked = str(run_workflow(workflow, "t", {"log": []}).interrupts[0]["id"])
    FAILS.add("after")
    failed = resume_workflow(workflow, "t", value="one")
    assert (failed.status, failed.interrupts) == ("error", ())
    assert answered(store) == {asked}
    with pytest.raises(Refused, match="no question waiting for an answer; it is stopped at both"):
        resume_workflow(workflow, "t", value="two")
    FAILS.clear()
    assert run_workflow(workflow, "t", None).status == "done"
    with closing(open_reader(store.url)) as reader:
        head = reader.rows("t")[0].id
        assert read_values(reader, "t", "", head).values == {"log": ["one"]}


def test_a_node_that_failed_and_then_asks_its_second_question_waits(store: WorkflowStore) -> None:
    workflow = Workflow(line(("both", ask_and_work)), store, name="app")
    run_workflow(workflow, "t", {"log": []})
    FAILS.add("between")
    assert resume_workflow(workflow, "t", value="more").status == "error"
    FAILS.clear()
    again = run_workflow(workflow, "t", None)
    assert (again.status, again.interrupts[0]["value"]) == ("interrupted", "second?")
    assert answered(store) == frozenset()
    assert resume_workflow(workflow, "t", value="x").status == "done"


def test_a_question_asked_after_a_failure_waits(store: WorkflowStore) -> None:
    def fail_then_ask(state: State) -> State:
        fail("before")
        return {"log": [interrupt("first?")]}

    workflow = Workflow(line(("asking", fail_then_ask)), store)
    FAILS.add("before")
    assert run_workflow(workflow, "t", {"log": []}).status == "error"
    FAILS.clear()
    assert run_workflow(workflow, "t", None).status == "interrupted"
    assert answered(store) == frozenset()
    assert resume_workflow(workflow, "t", value=1).status == "done"
