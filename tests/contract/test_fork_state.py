"""Forks that change state, route, input or memory; each form's refusals; and that nothing of the source moves."""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

from agentctl.errors import Ambiguous, Refused, UsageError
from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import Forms, parse_forms
from agentctl.records.rows import MemoryItem
from agentctl.records.runs import ForkReport, RunReport
from agentctl.stores.reading.lineage import head_id
from tests.catalog import config_of
from tests.support.experiments import about_to_run, contents, experiment_on

RAN: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> Iterator[None]:
    RAN.clear()
    yield


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    amount: int
    trip: dict[str, Any]
    messages: Annotated[list[AnyMessage], add_messages]


def says(name: str) -> Callable[[State], State]:
    def node(state: State) -> State:
        RAN[name] += 1
        return {"log": [name]}

    return node


def tells(state: State) -> State:
    """Writes the amount it was given into the log."""
    RAN["tells"] += 1
    return {"log": [f"amount {state.get('amount')}"]}


def line(saver: Any, **nodes: Any) -> Any:
    builder = StateGraph(State)
    for before, name in zip((START, *nodes), nodes, strict=False):
        builder.add_node(name, nodes[name])
        builder.add_edge(before, name)
    return builder.compile(checkpointer=saver)


class Bench:
    """A source thread `t` that a graph really ran, and forks of it."""

    def __init__(self, folder: Path) -> None:
        (folder / "prod").mkdir()
        self.prod = folder / "prod" / "prod.sqlite"
        self.debug = folder / "debug" / "debug.sqlite"
        self.folder = folder
        self.graph: Any = None
        self.settings: dict[str, Any] = {}

    def ran(self, build: Callable[[Any], Any], *inputs: Any) -> None:
        with SqliteSaver.from_conn_string(str(self.prod)) as saver:
            for value in inputs:
                build(saver).invoke(value, config_of("t"), durability="sync")
        self.graph = build(None)
        RAN.clear()

    def fork(self, node: str | None, n: int = 1, *, visit: int = 0, run: bool = True, **given: Any) -> ForkReport:
        """Forks the checkpoint about to run `node`, or the head; the source must be byte for byte as before."""
        before = contents(self.prod)
        with experiment_on(self.prod, self.graph, self.debug, **self.settings) as experiment:
            target = self.target(experiment, node, visit)
            try:
                return fork(experiment, target, self.forms(**given), n, run=run)
            except Exception:
                assert not experiment.debug.writer.heads()
                raise
            finally:
                assert contents(self.prod) == before

    def target(self, experiment: Experiment, node: str | None, visit: int = 0) -> Target:
        if node is None:
            return Target("t", head_id(experiment.source, "t"), profile="prod")
        return about_to_run(experiment.source, "t", node, visit=visit)

    def forms(self, **given: Any) -> Forms:
        for name in ("update", "new_input"):
            if name in given:
                file = self.folder / f"{name}.json"
                file.write_text(json.dumps(given[name]))
                given[name] = str(file)
        return parse_forms(**given)

    def values(self, thread: str = "t.fork-1") -> Any:
        return self.state(thread).values

    def state(self, thread: str = "t.fork-1", id: str | None = None) -> Any:
        with SqliteSaver.from_conn_string(str(self.debug)) as saver:
            where = {"checkpoint_id": id} if id else {}
            return self.graph.copy(update={"checkpointer": saver}).get_state(config_of(thread, **where))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def only(report: ForkReport) -> RunReport:
    (run,) = report.group.runs
    return run


# --set


def test_set_replaces_a_plain_value_and_the_step_runs_with_it(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), tells=tells, end=says("end")), {"log": ["in"], "amount": 3})
    report = bench.fork("tells", 2, assign=["amount=5"])
    assert RAN == {"tells": 2, "end": 2}
    assert report.next == ("tells",)
    assert [run.nodes for run in report.group.runs] == [("tells", "end")] * 2
    assert bench.values() == {"log": ["in", "a", "amount 5", "end"], "amount": 5, "messages": []}


def test_set_replaces_whatever_the_reducer_is(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b")), {"log": ["in"]})
    bench.fork("b", assign=['log=["only"]'])
    assert bench.values()["log"] == ["only", "b"]


def test_set_replaces_a_conversation_with_a_shorter_one(bench: Bench) -> None:
    start = {"messages": [HumanMessage("one", id="1"), HumanMessage("two", id="2")]}
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b")), start)
    bench.fork("b", assign=['messages=[{"type": "human", "content": "other", "id": "3"}]'])
    (message,) = bench.values()["messages"]
    assert (type(message), message.content, message.id) == (HumanMessage, "other", "3")


def test_set_goes_into_a_value_by_path_and_keeps_the_rest(bench: Bench) -> None:
    trip = {"days": [{"city": "Oslo"}, {"city": "Bergen"}], "seats": 2}
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b")), {"trip": trip})
    bench.fork("b", assign=['trip.days[-1].city="Narvik"', "trip.seats=3"])
    assert bench.values()["trip"] == {"days": [{"city": "Oslo"}, {"city": "Narvik"}], "seats": 3}


def test_set_changes_one_message_in_place(bench: Bench) -> None:
    start = {"messages": [HumanMessage("one", id="1"), HumanMessage("two", id="2")]}
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b")), start)
    bench.fork("b", assign=['messages[0].content="other"'])
    assert [(m.id, m.content) for m in bench.values()["messages"]] == [("1", "other"), ("2", "two")]


def test_set_gives_a_channel_without_a_value_its_first(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), tells=tells), {"log": ["in"]})
    bench.fork("tells", assign=["amount=7"])
    assert bench.values()["log"] == ["in", "a", "amount 7"]


def test_two_channels_are_set_at_once(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), tells=tells), {"log": ["in"], "amount": 3})
    bench.fork("tells", assign=["amount=7", "log=[]"])
    assert bench.values()["log"] == ["amount 7"]


def test_set_at_a_half_done_step_runs_all_of_it_again_and_says_so(bench: Bench) -> None:
    def build(saver: Any) -> Any:
        builder = StateGraph(State).add_node("tells", tells).add_node("ask", lambda s: {"log": [interrupt("?")]})
        builder.add_node("end", says("end"))
        builder.add_edge(START, "tells").add_edge(START, "ask").add_edge(["tells", "ask"], "end")
        return builder.compile(checkpointer=saver)

    bench.ran(build, {"log": [], "amount": 1})
    report = bench.fork("ask", assign=["amount=2"], resume=['"yes"'])
    assert report.warnings == ("finished in the source, and run again here: tells",)
    assert bench.values()["log"] == ["yes", "amount 2", "end"]


def fan_out(saver: Any) -> Any:
    builder = StateGraph(State).add_node("plan", says("plan"))
    builder.add_node("w", lambda arg: {"log": [f"w{arg['trip']['n']}"]}).add_node("end", says("end"))
    builder.add_edge(START, "plan").add_edge("w", "end")
    builder.add_conditional_edges("plan", lambda s: [Send("w", {"trip": {"n": n}}) for n in range(3)], ["w"])
    return builder.compile(checkpointer=saver)


def test_set_of_what_pending_sends_carry_already_is_refused_and_others_may_be_set(bench: Bench) -> None:
    bench.ran(fan_out, {"log": [], "trip": {"n": 0}})
    with pytest.raises(Refused, match="carry trip already") as refused:
        bench.fork("w", assign=["trip.n=9"])
    assert "where they are made" in (refused.value.hint or "")
    report = bench.fork("w", assign=['log=["fresh"]'])
    assert report.next == ("w", "w", "w")
    assert bench.values()["log"] == ["fresh", "w0", "w1", "w2", "end"]


def test_set_that_breaks_the_conversation_is_refused(bench: Bench) -> None:
    call = {"name": "f", "args": {}, "id": "c1", "type": "tool_call"}
    start = {"messages": [HumanMessage("x", id="1"), AIMessage("", id="2", tool_calls=[call])]}
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b")), start)
    broken = '[{"type": "tool", "content": "x", "tool_call_id": "c9", "id": "3"}]'
    with pytest.raises(Refused, match="answers no call"):
        bench.fork("b", assign=[f"messages={broken}"])


@pytest.mark.parametrize(
    ("given", "says_"),
    [
        ({"assign": ["nope=1"]}, "no channel nope"),
        ({"assign": ["branch:to:b=1"]}, "no channel"),
        ({"assign": ["trip.nope=1"]}, "there is no trip.nope"),
        ({"assign": ["log[9]=1"]}, r"there is no log\[9\]"),
        ({"assign": ["amount.x=1"]}, "there is no amount.x"),
        ({"update": {"nope": 1}, "as_node": "a"}, "no channel nope"),
        ({"update": {"amount": 1}, "as_node": "nope"}, "no node nope"),
        ({"goto": "nope"}, "no node nope"),
    ],
)
def test_unknown_channels_nodes_and_places_are_refused_before_any_write(
    bench: Bench, given: dict[str, Any], says_: str
) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b")), {"log": ["in"], "amount": 1, "trip": {"n": 1}})
    with pytest.raises(UsageError, match=says_) as refused:
        bench.fork("b", **given)
    assert refused.value.exit_code == 2


# --goto


def test_goto_starts_a_branch_with_the_values_and_nothing_of_the_old_route(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b"), c=says("c")), {"log": ["in"]})
    report = bench.fork("b", goto="c", run=True)
    assert report.next == ("c",)
    assert RAN == {"c": 1}
    assert bench.values()["log"] == ["in", "a", "c"]
    assert bench.state(id=report.target.id).metadata["source"] == "update"
    assert bench.state(id=report.target.id).values["log"] == ["in", "a"]


def test_goto_leaves_finished_siblings_and_pending_sends_behind(bench: Bench) -> None:
    bench.ran(fan_out, {"log": []})
    report = bench.fork("w", goto="end")
    assert (report.next, RAN) == (("end",), {"end": 1})
    assert bench.values()["log"] == ["plan", "end"]


def test_goto_takes_set_values_along(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b"), tells=tells), {"log": ["in"], "amount": 1})
    bench.fork("b", goto="tells", assign=["amount=9", 'log=["x"]'])
    assert bench.values()["log"] == ["x", "amount 9"]


def test_goto_back_from_the_end_runs_the_node_again(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b")), {"log": ["in"]})
    report = bench.fork(None, goto="b")
    assert (report.next, bench.values()["log"]) == (("b",), ["in", "a", "b", "b"])


def route(state: State) -> Command[Literal["x", "y"]]:
    RAN["route"] += 1
    return Command(goto="x", update={"log": ["route"]})


def router(saver: Any) -> Any:
    builder = StateGraph(State).add_node("route", route).add_node("x", says("x")).add_node("y", says("y"))
    return builder.add_edge(START, "route").compile(checkpointer=saver)


def test_a_command_routing_node_needs_goto(bench: Bench) -> None:
    bench.ran(router, {"log": ["in"]})
    with pytest.raises(Refused, match="by Command") as refused:
        bench.fork("route", update={"log": ["other"]}, as_node="route")
    assert refused.value.hint == "say where: --goto x | y"
    report = bench.fork("route", update={"log": ["other"]}, as_node="route", goto="y")
    assert (report.as_node, report.next, RAN) == ("route", ("y",), {"y": 1})
    assert bench.values()["log"] == ["in", "other", "y"]


def test_goto_beside_a_plain_edge_is_refused(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b"), c=says("c")), {"log": ["in"]})
    with pytest.raises(Refused, match="does not lead to c alone"):
        bench.fork("a", update={"log": ["x"]}, as_node="a", goto="c")


def test_goto_the_end_leaves_nothing_to_run(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b")), {"log": ["in"]})
    with pytest.raises(Refused, match="next is empty"):
        bench.fork("b", goto="__end__")
    assert bench.fork("b", goto="__end__", run=False).next == ()


# --update and --as-node


def test_an_update_as_the_node_that_runs_next_stands_for_its_result(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b"), c=says("c")), {"log": ["in"]})
    report = bench.fork("b", update={"log": ["corrected"]}, as_node="b")
    assert (report.as_node, report.next, RAN) == ("b", ("c",), {"c": 1})
    assert bench.values()["log"] == ["in", "a", "corrected", "c"]
    metadata = bench.state(id=report.target.id).metadata
    assert (metadata["agentctl_op"], metadata["agentctl_as_node"]) == ("update", "b")


def test_set_as_a_node_replaces_and_goes_on_after_it(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b"), c=says("c")), {"log": ["in"]})
    report = bench.fork("b", assign=['log=["only"]'], as_node="b")
    assert (report.next, bench.values()["log"]) == (("c",), ["only", "c"])


def test_an_update_from_which_nothing_runs_names_those_that_go_on(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b"), c=says("c")), {"log": ["in"]})
    with pytest.raises(Refused, match="next is empty after c") as refused:
        bench.fork(None, update={"log": ["x"]}, as_node="c")
    hint = refused.value.hint or ""
    assert hint.startswith("next would be, with --as-node a: b; --as-node b: c; say where c leads: --goto NODE")
    assert list(refused.value.candidates) == [{"as_node": "a", "next": ["b"]}, {"as_node": "b", "next": ["c"]}]
    assert bench.fork(None, update={"log": ["x"]}, as_node="c", run=False).next == ()


def half_done(saver: Any) -> Any:
    builder = StateGraph(State).add_node("a", says("a")).add_node("b", lambda s: {"log": [interrupt("?")]})
    builder.add_node("end", says("end"))
    builder.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "end")
    return builder.compile(checkpointer=saver)


def test_an_update_as_one_task_of_a_parallel_step_keeps_its_finished_sibling(bench: Bench) -> None:
    bench.ran(half_done, {"log": ["in"]})
    report = bench.fork("b", update={"log": ["by hand"]}, as_node="b")
    assert (report.next, RAN) == (("end",), {"end": 1})
    assert bench.values()["log"] == ["in", "a", "by hand", "end"]


def test_an_update_as_a_finished_task_of_a_parallel_step_replaces_its_result(bench: Bench) -> None:
    bench.ran(half_done, {"log": ["in"]})
    report = bench.fork("b", update={"log": ["other"]}, as_node="a", resume=['"yes"'])
    assert (report.next, RAN) == (("b",), {"end": 1})
    assert bench.values()["log"] == ["in", "other", "yes", "end"]


def test_an_update_as_one_of_several_sends_is_ambiguous(bench: Bench) -> None:
    bench.ran(fan_out, {"log": []})
    with pytest.raises(Ambiguous, match="3 tasks of w"):
        bench.fork("w", update={"log": ["x"]}, as_node="w")


def test_an_update_as_another_node_says_what_it_leaves_behind(bench: Bench) -> None:
    bench.ran(half_done, {"log": ["in"]})
    report = bench.fork("b", update={"log": ["x"]}, as_node="end", run=False)
    assert "recorded results" in report.warnings[0]
    assert report.warnings[0].endswith("are not in this branch: a")


# --resume, --input, --memory, nothing


def test_resume_answers_the_waiting_question_and_finished_siblings_stay(bench: Bench) -> None:
    bench.ran(half_done, {"log": ["in"]})
    report = bench.fork("b", 2, resume=["null"])
    assert (report.next, RAN) == (("b",), {"end": 2})
    assert bench.values()["log"] == ["in", "a", None, "end"]


def test_new_input_in_place_of_the_first_holds_only_the_new_input(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a")), {"log": ["first"]})
    report = bench.fork("__start__", new_input={"log": ["other"]})
    assert bench.values()["log"] == ["other", "a"]
    assert (report.copies, report.target.id) == ((), None)
    assert bench.state().metadata["agentctl_op"] == "input"


def test_new_input_in_place_of_a_later_one_keeps_the_turns_before(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a")), {"log": ["first"]}, {"log": ["second"]})
    bench.fork("__start__", visit=1, new_input={"log": ["other"]})
    assert bench.values()["log"] == ["first", "a", "other", "a"]


def test_new_input_at_the_end_is_one_more_turn(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a")), {"log": ["first"]})
    report = bench.fork(None, 2, new_input={"log": ["next"]})
    assert [run.status for run in report.group.runs] == ["done", "done"]
    assert bench.values("t.fork-2")["log"] == ["first", "a", "next", "a"]


def test_new_input_at_a_question_says_that_it_is_discarded(bench: Bench) -> None:
    bench.ran(half_done, {"log": ["in"]})
    report = bench.fork("b", new_input={"log": ["again"]})
    assert "is discarded" in report.warnings[0]
    assert only(report).status == "interrupted"


def test_memory_is_a_copy_with_the_given_item_in_it(bench: Bench) -> None:
    from langgraph.config import get_store

    def recall(state: State) -> State:
        item = get_store().get(("users", "u-1"), "prefs")
        other = get_store().get(("users", "u-1"), "name")
        get_store().put(("users", "u-1"), "seen", {"yes": True})
        return {"log": [item.value["seat"], other.value["is"]]}

    def build(saver: Any) -> Any:
        from langgraph.store.memory import InMemoryStore

        store = InMemoryStore()
        store.put(("users", "u-1"), "prefs", {"seat": "window"})
        store.put(("users", "u-1"), "name", {"is": "Ada"})
        builder = StateGraph(State).add_node("recall", recall).add_edge(START, "recall")
        return builder.compile(checkpointer=saver, store=store)

    bench.ran(build, {"log": []})
    bench.settings["memory"] = (
        MemoryItem(("users", "u-1"), "prefs", {"seat": "window"}),
        MemoryItem(("users", "u-1"), "name", {"is": "Ada"}),
    )
    bench.fork("recall", memory=['users/u-1/prefs={"seat": "aisle"}'])
    assert bench.values()["log"] == ["aisle", "Ada"]
    assert bench.graph.store.get(("users", "u-1"), "seen") is None


def test_a_fork_without_a_form_runs_the_step_again(bench: Bench) -> None:
    bench.ran(lambda saver: line(saver, a=says("a"), b=says("b")), {"log": ["in"]})
    report = bench.fork("b")
    assert (RAN, report.next) == ({"b": 1}, ("b",))
    assert bench.state().metadata["agentctl_op"] == "rerun"


def test_state_inside_a_declared_subgraph_can_be_set(bench: Bench) -> None:
    def build(saver: Any) -> Any:
        return line(saver, pre=says("pre"), sub=line(None, fetch=says("fetch"), tells=tells), post=says("post"))

    bench.ran(build, {"log": ["in"], "amount": 1})
    with experiment_on(bench.prod, bench.graph, bench.debug) as experiment:
        (ns,) = [ns for ns in experiment.source.namespaces("t") if ns]
        target = about_to_run(experiment.source, "t", "tells", ns)
        report = fork(experiment, target, bench.forms(assign=["amount=4"]))
    assert RAN == {"tells": 1, "post": 1}
    assert only(report).nodes == ("sub", "sub|tells", "post")
    assert "amount 4" in bench.values()["log"]
