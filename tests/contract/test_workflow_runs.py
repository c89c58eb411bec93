"""Running and resuming a workflow on a thread of its own."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from agentctl.errors import NotFound, Refused, UsageError
from agentctl.experiments.workflow_runs import Workflow, WorkflowStore, check_allowed, resume_workflow, run_workflow
from agentctl.records.rows import MemoryItem
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.registry import ToolRegistry
from agentctl.stores.open import open_reader
from agentctl.stores.sqlite.writer import SqliteWriter

RAN: Counter[str] = Counter()
REAL = {"AGENTCTL_ENV": "production"}


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> Iterator[None]:
    RAN.clear()
    yield


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def tools(result: str) -> ToolRegistry:
    registry = ToolRegistry()

    @registry.register(effect="write")
    def pay(amount: int) -> str:
        """Pays."""
        RAN[f"pay {result}"] += 1
        return result

    return registry


def build(registry: ToolRegistry, *, questions: int = 1) -> Any:
    def ask(state: State) -> State:
        RAN["ask"] += 1
        return {"log": [interrupt({"question": "how much?"})]}

    def pay(state: State) -> State:
        return {"log": [registry["pay"].invoke({"amount": 3})]}

    builder = StateGraph(State).add_node("pay", pay)
    for number in range(questions):
        builder.add_node(f"ask{number}", ask).add_edge(START, f"ask{number}")
    return builder.add_edge([f"ask{number}" for number in range(questions)], "pay").compile()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debug" / "debug.sqlite"


def debug(path: Path, **settings: Any) -> Workflow:
    path.parent.mkdir(exist_ok=True)
    registry = tools("sandbox")
    graph = build(registry, questions=settings.pop("questions", 1))
    settings.setdefault("policy", Policy(mode="sandbox", registry=registry))
    return Workflow(graph, WorkflowStore(str(path), "debug", "write", is_debug=True), **settings)


def test_a_thread_starts_stops_at_its_question_and_goes_on_with_the_answer(path: Path) -> None:
    workflow = debug(path, configurable={"user_id": "u-1"}, metadata={"tenant": "acme"})
    started = run_workflow(workflow, "t", {"log": ["in"]})
    assert (started.status, started.interrupts[0]["node"]) == ("interrupted", "ask0")
    assert started.interrupts[0]["value"] == {"question": "how much?"}
    finished = resume_workflow(workflow, "t", value="three")
    assert (finished.status, finished.nodes) == ("done", ("ask0", "pay"))
    assert [(call.name, call.served_by) for call in finished.tool_calls] == [("pay", "stub")]
    with_user = [row.metadata.get("user_id") for row in open_reader(str(path)).rows("t")]
    assert set(with_user) == {"u-1"}
    assert open_reader(str(path)).rows("t")[0].metadata["tenant"] == "acme"


@pytest.mark.parametrize("answer", [None, False, 0, "", {}, []])
def test_any_json_value_is_an_answer(path: Path, answer: object) -> None:
    workflow = debug(path)
    run_workflow(workflow, "t", {"log": []})
    assert resume_workflow(workflow, "t", value=answer).status == "done"


def test_the_recorded_configuration_holds_for_the_resume(path: Path) -> None:
    run_workflow(debug(path, configurable={"user_id": "u-1"}), "t", {"log": []})
    resume_workflow(debug(path), "t", value=1)
    assert open_reader(str(path)).rows("t")[0].metadata["user_id"] == "u-1"


def test_several_questions_take_a_map_and_one_value_is_refused(path: Path) -> None:
    workflow = debug(path, questions=2)
    started = run_workflow(workflow, "t", {"log": []})
    first, second = (str(one["id"]) for one in started.interrupts)
    with pytest.raises(Refused, match="2 questions") as refused:
        resume_workflow(workflow, "t", value=1)
    assert [one["id"] for one in refused.value.candidates] == [first, second]
    assert refused.value.hint == f"give each an answer: --map {first}=JSON --map {second}=JSON"
    half = resume_workflow(workflow, "t", by_id={second: "b"})
    assert (half.status, [one["id"] for one in half.interrupts]) == ("interrupted", [first])
    assert resume_workflow(workflow, "t", by_id={first: None}).status == "done"


def test_an_id_that_does_not_wait_is_refused(path: Path) -> None:
    workflow = debug(path)
    run_workflow(workflow, "t", {"log": []})
    RAN.clear()
    with pytest.raises(UsageError, match=r"no waiting question f{32}"):
        resume_workflow(workflow, "t", by_id={"f" * 32: 1})
    with pytest.raises(UsageError, match="no answer is given"):
        resume_workflow(workflow, "t", by_id={})
    assert not RAN


def test_nothing_to_answer_and_nothing_to_go_on_with_are_said(path: Path) -> None:
    workflow = debug(path)
    run_workflow(workflow, "t", {"log": []})
    resume_workflow(workflow, "t", value=1)
    with pytest.raises(Refused, match="no question waiting"):
        resume_workflow(workflow, "t", value=1)
    with pytest.raises(NotFound, match="no thread other"):
        resume_workflow(workflow, "other", value=1)
    with pytest.raises(NotFound, match="nothing to go on with"):
        run_workflow(workflow, "t", None)


def test_plain_input_on_a_parked_thread_needs_to_say_that_the_question_goes(path: Path) -> None:
    workflow = debug(path)
    run_workflow(workflow, "t", {"log": ["one"]})
    with pytest.raises(Refused, match="would discard the question") as refused:
        run_workflow(workflow, "t", {"log": ["two"]})
    assert "--discard-interrupt" in (refused.value.hint or "")
    with pytest.raises(Refused, match="waits for an answer"):
        run_workflow(workflow, "t", None)
    again = run_workflow(workflow, "t", {"log": ["two"]}, discard_interrupt=True)
    assert again.status == "interrupted"


def test_a_run_that_failed_goes_on_where_it_stopped(path: Path) -> None:
    fail = [True]

    def build_failing() -> Any:
        def first(state: State) -> State:
            RAN["first"] += 1
            return {"log": ["first"]}

        def second(state: State) -> State:
            if fail:
                raise ConnectionError("down")
            return {"log": ["second"]}

        builder = StateGraph(State).add_node("first", first).add_node("second", second)
        return builder.add_edge(START, "first").add_edge("first", "second").compile()

    path.parent.mkdir()
    workflow = Workflow(build_failing(), WorkflowStore(str(path), "debug", is_debug=True))
    stopped = run_workflow(workflow, "t", {"log": []})
    assert (stopped.status, stopped.error) == ("error", "ConnectionError: down")
    fail.clear()
    assert run_workflow(workflow, "t", None).status == "done"
    assert RAN == {"first": 1}


def test_answers_given_along_are_used_on_the_way(path: Path) -> None:
    assert run_workflow(debug(path, answers=(None,)), "t", {"log": []}).status == "done"


def test_a_tool_that_the_sandbox_lacks_is_blocked(path: Path) -> None:
    workflow = debug(path, policy=Policy(mode="sandbox"), answers=(1,))
    blocked = run_workflow(workflow, "t", {"log": []})
    assert (blocked.status, blocked.blocked_hint) == ("blocked", "--stub pay='\"...\"'")
    assert RAN == {"ask": 2}


def test_a_sandboxed_run_sees_a_copy_of_the_memory_store(path: Path) -> None:
    from langgraph.config import get_store
    from langgraph.store.memory import InMemoryStore

    real = InMemoryStore()

    def recall(state: State) -> State:
        get_store().put(("u",), "seen", {"yes": 1})
        return {"log": [get_store().get(("u",), "name").value["is"]]}

    graph = StateGraph(State).add_node("recall", recall).add_edge(START, "recall").compile(store=real)
    path.parent.mkdir()
    store = WorkflowStore(str(path), "debug", is_debug=True)
    workflow = Workflow(graph, store, memory=(MemoryItem(("u",), "name", {"is": "Ada"}),))
    assert run_workflow(workflow, "t", {"log": []}).status == "done"
    assert real.search(("u",)) == []


def test_production_tools_run_on_a_writable_store_in_production(path: Path) -> None:
    SqliteWriter(path).setup()
    workflow = Workflow(build(tools("real")), WorkflowStore(str(path), "prod", "write"), tools="production")
    run_workflow(workflow, "t", {"log": []}, env=REAL)
    assert resume_workflow(workflow, "t", value=1, env=REAL).status == "done"
    assert RAN["pay real"] == 1


PROD = WorkflowStore("prod.sqlite", "prod", "write")
READ = WorkflowStore("prod.sqlite", "prod", "read")
DEBUG = WorkflowStore("debug.sqlite", "debug", "write", is_debug=True)


@pytest.mark.parametrize(
    ("store", "chosen", "env", "says"),
    [
        (PROD, "sandbox", REAL, "no debug store"),
        (READ, "sandbox", REAL, "no debug store"),
        (READ, "production", REAL, "access: read"),
        (PROD, "production", {}, "AGENTCTL_ENV is not set"),
        (PROD, "production", {"AGENTCTL_ENV": "staging"}, "AGENTCTL_ENV is staging"),
        (DEBUG, "production", REAL, "is a debug store"),
    ],
)
def test_all_three_things_are_needed_for_production(store: WorkflowStore, chosen: Any, env: Any, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        check_allowed(store, chosen, env)
    assert refused.value.exit_code == 5
    assert refused.value.hint


def test_a_refused_run_creates_no_file(tmp_path: Path) -> None:
    path = tmp_path / "prod.sqlite"
    workflow = Workflow(build(tools("real")), WorkflowStore(str(path), "prod", "write"))
    with pytest.raises(Refused):
        run_workflow(workflow, "t", {"log": []}, env={})
    assert list(tmp_path.iterdir()) == []
