"""Running and resuming a workflow on a thread of its own."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import interrupt

from agentctl.errors import NotFound, Refused, UsageError
from agentctl.experiments.runs.answered import find_answerer
from agentctl.experiments.workflows.departures import Departure
from agentctl.experiments.workflows.runs import (
    Watch,
    Workflow,
    WorkflowStore,
    check_allowed,
    resume_workflow,
    run_workflow,
)
from agentctl.records.rows import MemoryItem
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.registry import ToolRegistry
from agentctl.stores.open import open_reader, open_writer

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


@dataclass
class Plan:
    """A type of the application that its next version does not have."""

    steps: int


def test_a_head_whose_types_are_gone_is_not_gone_on_with(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = debug(path)
    run_workflow(workflow, "t", {"log": [Plan(1)]})
    RAN.clear()
    monkeypatch.delattr(f"{__name__}.Plan")

    with pytest.raises(Refused, match=f"channel log of checkpoint .* holds {__name__}.Plan"):
        resume_workflow(workflow, "t", value=1)
    assert not RAN
    monkeypatch.undo()
    assert resume_workflow(workflow, "t", value=1).status == "done"


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
    open_writer(str(path)).setup()
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


def line(*nodes: tuple[str, Any], **compiled: Any) -> Any:
    return StateGraph(State).add_sequence(list(nodes)).add_edge(START, nodes[0][0]).compile(**compiled)


def nothing(state: State) -> State:
    return {"log": []}


def test_who_called_before_is_not_who_calls_now(path: Path) -> None:
    seen: list[object] = []

    def ask(state: State, config: RunnableConfig) -> State:
        seen.append({name: config["configurable"].get(name) for name in ("actor", "actor_role", "user_id")})
        return {"log": [interrupt("?")]}

    first = debug(path, configurable={"actor": "maria", "actor_role": "lead", "user_id": "u-1"})
    graph = line(("ask", ask), ("again", ask))
    run_workflow(replace(first, graph=graph), "t", {"log": []})
    resume_workflow(replace(first, graph=graph, configurable={}), "t", value=1)
    assert seen[0] == {"actor": "maria", "actor_role": "lead", "user_id": "u-1"}
    assert seen[-1] == {"actor": None, "actor_role": None, "user_id": "u-1"}


def test_rows_say_who_gave_the_command(path: Path) -> None:
    workflow = debug(path)
    run_workflow(workflow, "t", {"log": []}, watch=Watch("ana@host"))
    resume_workflow(workflow, "t", value=1, watch=Watch("zoe@host"))
    by = [row.metadata["agentctl_by"] for row in open_reader(str(path)).rows("t")]
    assert by == ["zoe@host", "zoe@host", "ana@host", "ana@host"]


def test_a_breakpoint_is_not_gone_past_by_new_input_unless_that_is_said(path: Path) -> None:
    graph = line(("first", nothing), ("second", nothing), interrupt_before=["second"])
    workflow = replace(debug(path), graph=graph, name="app")
    assert run_workflow(workflow, "t", {"log": []}).status == "interrupted"
    with pytest.raises(Refused, match="is stopped at second, and new input would discard that") as refused:
        run_workflow(workflow, "t", {"log": []})
    assert refused.value.hint == "go on: agentctl run app --thread t; or discard it: --discard-interrupt"
    assert run_workflow(workflow, "t", None).status == "done"


def test_a_step_whose_tasks_have_all_finished_goes_on(path: Path) -> None:
    ran: list[str] = []

    def node(name: str) -> Any:
        return lambda state: ran.append(name) or {"log": [name]}

    workflow = replace(debug(path), graph=line(*((name, node(name)) for name in ("a", "b", "c"))))
    run_workflow(workflow, "t", {"log": []})
    newest = [row.id for row in open_reader(str(path)).rows("t")][:2]
    with sqlite3.connect(path) as connection:
        for table in ("checkpoints", "writes"):
            connection.executemany(f"DELETE FROM {table} WHERE checkpoint_id = ?", [(id,) for id in newest])
    connection.close()
    ran.clear()
    told: list[Departure] = []

    def start(departure: Departure) -> dict[str, str]:
        told.append(departure)
        return {}

    assert run_workflow(workflow, "t", None, watch=Watch(on_start=start)).status == "done"
    assert ran == ["c"], "b had finished when the command was cut off"
    assert (told[0].nodes, told[0].finished) == ((), ("b",))


@pytest.mark.parametrize("verb", ["run", "resume"])
def test_a_thread_that_went_on_meanwhile_is_left_alone(path: Path, verb: str) -> None:
    workflow = debug(path)
    run_workflow(workflow, "t", {"log": []}, watch=Watch("ana@host"))
    RAN.clear()
    with pytest.raises(Refused, match=r"not what this command was given for any more: it was taken on by ana@host at"):
        if verb == "run":
            run_workflow(workflow, "t", {"log": []}, discard_interrupt=True, seen=None)
        else:
            resume_workflow(workflow, "t", value=1, seen="1f0")
    assert not RAN


def test_who_answered_first_is_named(path: Path) -> None:
    workflow = debug(path)
    asked = str(run_workflow(workflow, "t", {"log": []}).interrupts[0]["id"])
    resume_workflow(workflow, "t", value=1, watch=Watch("ana@host"))

    def answered(id: str) -> str | None:
        found = find_answerer(open_reader(str(path)), "t", id)
        return None if found is None else str(found)

    with pytest.raises(Refused, match=rf"question {asked} of t was answered by ana@host at 20.*; nothing was run"):
        resume_workflow(workflow, "t", by_id={asked: 2}, answered=answered)
    with pytest.raises(Refused, match="no question waiting for an answer; it was taken on by ana@host at 20"):
        resume_workflow(workflow, "t", value=2, answered=answered)
    assert answered("f" * 32) is None


def test_of_several_questions_the_one_who_took_the_thread_on_is_named_as_that(path: Path) -> None:
    workflow = debug(path, questions=2)
    first, second = (str(one["id"]) for one in run_workflow(workflow, "t", {"log": []}).interrupts)
    resume_workflow(workflow, "t", by_id={first: 1}, watch=Watch("ana@host"))
    assert str(find_answerer(open_reader(str(path)), "t", first)) == ""
    assert find_answerer(open_reader(str(path)), "t", second) is None
    resume_workflow(workflow, "t", by_id={second: 1}, watch=Watch("zoe@host"))
    assert str(find_answerer(open_reader(str(path)), "t", first)).startswith(", and the thread taken on by zoe@host at")


def test_tools_and_graphs_that_are_async_alone_work(path: Path) -> None:
    registry = ToolRegistry()

    @registry.register(effect="write")
    async def pay(amount: int) -> str:
        """Pays."""
        await asyncio.sleep(0)
        return "paid"

    async def work(state: State) -> State:
        return {"log": [await registry["pay"].ainvoke({"amount": 1})]}

    async def ask(state: State) -> State:
        return {"log": [interrupt("?")]}

    policy = Policy(mode="sandbox", registry=registry)
    workflow = replace(debug(path, policy=policy), graph=line(("ask", ask), ("work", work)))
    run_workflow(workflow, "t", {"log": []})
    done = resume_workflow(workflow, "t", value=1)
    assert (done.status, [call.result for call in done.tool_calls]) == ("done", ["paid"])


def production(url: str, graph: Any, **settings: Any) -> Workflow:
    return Workflow(graph, WorkflowStore(url, "prod", "write"), tools="production", **settings)


@pytest.fixture(params=["sqlite", "postgres"])
def live(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A production store with the tables of checkpoints."""
    if request.param == "postgres":
        url = str(request.getfixturevalue("fresh_postgres_url"))
    else:
        url = str(tmp_path / "prod.sqlite")
    open_writer(url).setup()
    return url


def remembering() -> Any:
    def remember(state: State) -> State:
        store = get_store()
        store.put(("u-1",), "name", {"is": "Ada"})
        return {"log": [store.get(("u-1",), "name").value["is"]]}

    return line(("remember", remember))


def test_a_production_run_reads_and_writes_the_memory_store_of_its_database(live: str) -> None:
    if "://" in live:
        with PostgresStore.from_conn_string(live) as store:
            store.setup()
    else:
        with SqliteStore.from_conn_string(live) as store:
            store.setup()
    done = run_workflow(production(live, remembering()), "t", {"log": []}, env=REAL)
    assert done.status == "done", done.error
    with closing(open_reader(live)) as reader:
        kept = [(item.namespace, item.key, item.value) for item in reader.memory()]
    assert kept == [(("u-1",), "name", {"is": "Ada"})]


def test_a_production_database_gets_no_tables(live: str) -> None:
    tables = table_names(live)
    done = run_workflow(production(live, line(("work", nothing))), "t", {"log": []}, env=REAL)
    assert done.status == "done", done.error
    assert table_names(live) == tables
    assert "store" not in tables


def table_names(url: str) -> list[str]:
    if "://" in url:
        with psycopg.connect(url) as connection:
            return sorted(name for (name,) in connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r'"))
    with sqlite3.connect(url) as file:
        names = sorted(name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
    file.close()
    return names


def test_the_real_calls_of_a_production_run_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "prod.sqlite"
    open_writer(str(path)).setup()
    registry = tools("real")

    @registry.register(effect="read")
    def fail(why: str) -> str:
        """Fails."""
        raise ConnectionError(why)

    def call(state: State, config: RunnableConfig) -> State:
        registry["pay"].invoke({"name": "pay", "args": {"amount": 3}, "id": "c1", "type": "tool_call"}, config)
        return {"log": [registry["fail"].invoke({"why": "down"})]}

    ended = run_workflow(production(str(path), line(("call", call))), "t", {"log": []}, env=REAL)
    assert (ended.status, ended.error) == ("error", "ConnectionError: down")
    assert [(one.name, one.args, one.id, one.served_by, one.result) for one in ended.tool_calls] == [
        ("pay", {"amount": 3}, "c1", "live", "real"),
        ("fail", {"why": "down"}, "", "live", "ConnectionError: down"),
    ]


def test_the_applications_own_claim_of_an_answer_is_asked_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "prod.sqlite"
    open_writer(str(path)).setup()
    claimed: list[object] = []

    def claim(thread: str, interrupt_id: str, answer: object, configurable: Mapping[str, object]) -> None:
        if claimed:
            raise PermissionError(f"{thread} was answered by {claimed[0]}")
        claimed.append(configurable["actor"])

    workflow = production(str(path), build(tools("real")), claim=claim, configurable={"actor": "maria"})
    run_workflow(workflow, "t", {"log": []}, env=REAL)
    run_workflow(workflow, "u", {"log": []}, env=REAL)
    RAN.clear()
    assert resume_workflow(workflow, "t", value=3, env=REAL).status == "done"
    with pytest.raises(Refused, match=r"does not take the answer .* PermissionError: u was answered by maria"):
        resume_workflow(workflow, "u", value=3, env=REAL)
    assert RAN == {"ask": 1, "pay real": 1}
