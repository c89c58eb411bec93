"""Runs at once on one saver: what starts, what stops them, what they leave."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, Send, interrupt

from agentctl.experiments.runs.running import Ended, Limits, RunJob, run_all
from agentctl.experiments.runs.savers import open_saver

QUICK = Limits(timeout_s=30, max_steps=20)


class State(TypedDict):
    log: Annotated[list[Any], operator.add]


def run(tmp_path: Path, graph: Any, *jobs: RunJob, limits: Limits = QUICK) -> tuple[Ended, ...]:
    return run_all(
        jobs,
        open_saver=lambda: open_saver(str(tmp_path / "debug.sqlite"), env={}),
        graph_for=lambda job: graph,
        desk_for=lambda job: None,
        limits=limits,
    )


def one(tmp_path: Path, graph: Any, job: RunJob, limits: Limits = QUICK) -> Ended:
    return run(tmp_path, graph, job, limits=limits)[0]


def line(**nodes: Callable[..., Any]) -> Any:
    """A graph of the nodes in a row."""
    builder = StateGraph(State)
    previous = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(previous, name)
        previous = name
    return builder.add_edge(previous, END).compile()


def test_a_run_to_its_end_reports_nodes_values_and_its_own_tip(tmp_path: Path) -> None:
    graph = line(a=lambda s: {"log": ["a"]}, b=lambda s: {"log": ["b"]})
    ended = one(tmp_path, graph, RunJob("t", payload={"log": []}))
    assert (ended.status, ended.nodes, ended.values) == ("done", ("a", "b"), {"log": ["a", "b"]})
    with SqliteSaver.from_conn_string(str(tmp_path / "debug.sqlite")) as saver:
        newest = saver.get_tuple({"configurable": {"thread_id": "t"}})
    assert newest is not None
    assert ended.head == newest.config["configurable"]["checkpoint_id"]


def test_twenty_runs_of_an_async_node_overlap(tmp_path: Path) -> None:
    here, all_here = [0], asyncio.Event()

    async def meet(state: State) -> dict[str, list[str]]:
        here[0] += 1
        if here[0] == 20:
            all_here.set()
        await all_here.wait()
        return {"log": ["met"]}

    ended = run(tmp_path, line(meet=meet), *(RunJob(f"t{n}", payload={"log": []}) for n in range(20)))
    assert [run.status for run in ended] == ["done"] * 20


def test_twenty_runs_of_a_sync_node_overlap(tmp_path: Path) -> None:
    barrier = threading.Barrier(20)

    def meet(state: State) -> dict[str, list[str]]:
        barrier.wait(timeout=30)
        return {"log": ["met"]}

    ended = run(tmp_path, line(meet=meet), *(RunJob(f"t{n}", payload={"log": []}) for n in range(20)))
    assert [run.status for run in ended] == ["done"] * 20


def test_a_run_that_never_ends_times_out_and_the_others_go_on(tmp_path: Path) -> None:
    async def wait(state: State) -> dict[str, list[str]]:
        if state["log"] == ["hang"]:
            await asyncio.Event().wait()
        return {"log": ["out"]}

    jobs = (RunJob("t1", payload={"log": ["hang"]}), RunJob("t2", payload={"log": ["go"]}))
    stuck, fine = run(tmp_path, line(wait=wait), *jobs, limits=Limits(timeout_s=1.0))
    assert (stuck.status, stuck.error, stuck.nodes) == ("timeout", "no end within 1 s", ("wait",))
    assert (fine.status, fine.values) == ("done", {"log": ["go", "out"]})


def test_a_sync_node_that_never_returns_does_not_keep_the_program(tmp_path: Path) -> None:
    never = threading.Event()
    ended = one(tmp_path, line(hang=lambda s: never.wait()), RunJob("t", payload={"log": []}), Limits(timeout_s=0.5))
    assert ended.status == "timeout"
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "agentctl-node")
    never.set()


def test_a_timeout_that_the_graph_raises_itself_is_an_error_of_the_graph(tmp_path: Path) -> None:
    def fail(state: State) -> None:
        raise TimeoutError("the bureau did not answer")

    ended = one(tmp_path, line(fail=fail), RunJob("t", payload={"log": []}))
    assert (ended.status, ended.error) == ("error", "TimeoutError: the bureau did not answer")


def test_what_a_node_raises_is_reported_with_the_frames_of_the_application_alone(tmp_path: Path) -> None:
    def fail(state: State) -> None:
        raise KeyError("amount")

    ended = one(tmp_path, line(fine=lambda s: {"log": ["a"]}, fail=fail), RunJob("t", payload={"log": []}))
    assert (ended.status, ended.error, ended.nodes) == ("error", "KeyError: 'amount'", ("fine", "fail"))
    assert ended.values == {"log": ["a"]}
    assert ended.error_traceback is not None
    assert "in fail" in ended.error_traceback
    assert "langgraph/pregel" not in ended.error_traceback


def test_a_loop_stops_at_the_step_limit(tmp_path: Path) -> None:
    builder = StateGraph(State).add_node("spin", lambda s: {"log": ["x"]}).add_edge(START, "spin")
    graph = builder.add_conditional_edges("spin", lambda s: "spin", ["spin"]).compile()
    ended = one(tmp_path, graph, RunJob("t", payload={"log": []}), Limits(timeout_s=30, max_steps=5))
    assert (ended.status, ended.error) == ("step_limit", "no end within 5 steps")


@pytest.mark.parametrize("max_steps", [3, 5])
def test_no_more_steps_run_than_were_allowed_however_a_run_begins(tmp_path: Path, max_steps: int) -> None:
    builder = StateGraph(State).add_node("spin", lambda s: {"log": ["x"]}).add_edge(START, "spin")
    graph = builder.add_conditional_edges("spin", lambda s: "spin", ["spin"]).compile()
    limits = Limits(timeout_s=30, max_steps=max_steps)
    first = one(tmp_path, graph, RunJob("t", payload={"log": []}), limits)
    with SqliteSaver.from_conn_string(str(tmp_path / "debug.sqlite")) as saver:
        bound = graph.copy(update={"checkpointer": saver})
        begin = list(bound.get_state_history({"configurable": {"thread_id": "t"}}))[-2].config["configurable"]
    again = one(tmp_path, graph, RunJob("t", start=begin["checkpoint_id"]), limits)
    on = one(tmp_path, graph, RunJob("t"), limits)
    assert [len(ended.nodes) for ended in (first, again, on)] == [max_steps] * 3
    assert {ended.status for ended in (first, again, on)} == {"step_limit"}


def test_an_interrupt_stops_the_run_and_is_reported(tmp_path: Path) -> None:
    ended = one(tmp_path, line(ask=lambda s: {"log": [interrupt("how much?")]}), RunJob("t", payload={"log": []}))
    assert (ended.status, ended.next) == ("interrupted", ("ask",))
    assert [(node, question.value) for node, question in ended.interrupts] == [("ask", "how much?")]


@pytest.mark.parametrize("answer", ["yes", None, 0, False, {"a": 1}, {}])
def test_answers_go_to_interrupts_as_they_come_whatever_they_are(tmp_path: Path, answer: object) -> None:
    graph = line(ask=lambda s: {"log": [interrupt("first"), interrupt("second")]}, end=lambda s: {"log": ["end"]})
    ended = one(tmp_path, graph, RunJob("t", payload={"log": []}, answers=(answer, "second answer")))
    assert (ended.status, ended.values) == ("done", {"log": [answer, "second answer", "end"]})
    assert ended.nodes == ("ask", "end")


def test_a_run_out_of_answers_stops_at_the_next_question(tmp_path: Path) -> None:
    graph = line(ask=lambda s: {"log": [interrupt("first"), interrupt("second")]})
    ended = one(tmp_path, graph, RunJob("t", payload={"log": []}, answers=("one",)))
    assert ended.status == "interrupted"
    assert [question.value for _, question in ended.interrupts] == ["second"]


def test_answers_by_node_reach_the_node_that_asks(tmp_path: Path) -> None:
    builder = StateGraph(State).add_node("a", lambda s: {"log": ["a" + interrupt("?")]})
    builder.add_node("b", lambda s: {"log": ["b" + interrupt("?")]}).add_edge(START, "a").add_edge(START, "b")
    ended = one(tmp_path, builder.compile(), RunJob("t", payload={"log": []}, answers={"b": "2", "a": "1"}))
    assert (ended.status, ended.values) == ("done", {"log": ["a1", "b2"]})


def test_two_questions_at_once_take_two_answers_in_order(tmp_path: Path) -> None:
    builder = StateGraph(State).add_node("a", lambda s: {"log": ["a" + interrupt("?")]})
    builder.add_node("b", lambda s: {"log": ["b" + interrupt("?")]}).add_edge(START, "a").add_edge(START, "b")
    ended = one(tmp_path, builder.compile(), RunJob("t", payload={"log": []}, answers=("1", "2")))
    assert (ended.status, ended.values) == ("done", {"log": ["a1", "b2"]})


def test_a_breakpoint_stops_a_run_and_an_answer_takes_it_past(tmp_path: Path) -> None:
    builder = StateGraph(State).add_node("a", lambda s: {"log": ["a"]}).add_node("b", lambda s: {"log": ["b"]})
    graph = builder.add_edge(START, "a").add_edge("a", "b").compile(interrupt_before=["b"])
    stopped, passed = run(
        tmp_path,
        graph,
        RunJob("t1", payload={"log": []}, expected=("a",)),
        RunJob("t2", payload={"log": []}, answers=(None,)),
    )
    assert (stopped.status, stopped.next, stopped.interrupts) == ("interrupted", ("b",), ())
    assert (passed.status, passed.nodes) == ("done", ("a", "b"))


def test_a_planned_node_that_did_not_start_makes_the_run_no_evidence(tmp_path: Path) -> None:
    graph = line(a=lambda s: {"log": ["a"]})
    ended = one(tmp_path, graph, RunJob("t", payload={"log": []}, expected=("a", "a", "b")))
    assert (ended.status, ended.error) == ("not_run", "did not start: a, b")


def test_a_node_cache_is_not_used(tmp_path: Path) -> None:
    from langgraph.cache.memory import InMemoryCache

    ran: list[int] = []

    def count(state: State) -> dict[str, list[str]]:
        ran.append(1)
        return {"log": ["x"]}

    builder = StateGraph(State).add_node("count", count, cache_policy=CachePolicy()).add_edge(START, "count")
    graph = builder.compile(cache=InMemoryCache())
    for thread in ("t1", "t2"):
        assert one(tmp_path, graph, RunJob(thread, payload={"log": []}, expected=("count",))).status == "done"
    assert len(ran) == 2


def test_inner_nodes_are_reported_with_their_path_and_sends_with_multiplicity(tmp_path: Path) -> None:
    inner = StateGraph(State).add_node("step", lambda s: {"log": ["s"]}).add_edge(START, "step").compile()
    builder = StateGraph(State).add_node("sub", inner).add_node("w", lambda s: {"log": ["w"]})
    builder.add_conditional_edges(START, lambda s: [Send("w", s), Send("w", s), Send("sub", {"log": []})])
    ended = one(tmp_path, builder.compile(), RunJob("t", payload={"log": []}))
    assert sorted(ended.nodes) == ["sub", "sub|step", "w", "w"]


def test_the_functional_api_reports_its_tasks_and_its_result(tmp_path: Path) -> None:
    @task
    def double(value: int) -> int:
        return 2 * value

    @entrypoint()
    def flow(value: int) -> int:
        return double(value).result() + 1

    ended = one(tmp_path, flow, RunJob("t", payload=4))
    assert (ended.status, ended.nodes, ended.values) == ("done", ("flow", "flow|double"), {"__end__": 9})


def test_model_calls_and_tokens_are_counted_for_each_run_alone(tmp_path: Path) -> None:
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}

    def answer(state: State) -> dict[str, list[str]]:
        model = GenericFakeChatModel(messages=iter([AIMessage("hi", usage_metadata=usage)]))
        return {"log": [model.invoke("hello").content]}

    first, second = run(
        tmp_path,
        line(a=answer, b=answer),
        RunJob("t1", payload={"log": []}),
        RunJob("t2", payload={"log": []}),
    )
    for ended in (first, second):
        assert (ended.usage.model_calls, ended.usage.input_tokens, ended.usage.output_tokens) == (2, 14, 6)


def test_ctrl_c_cancels_the_runs_and_comes_out(tmp_path: Path) -> None:
    import signal

    cancelled: list[bool] = []

    async def hang(state: State) -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            one(tmp_path, line(hang=hang), RunJob("t", payload={"log": []}))
    finally:
        signal.signal(signal.SIGINT, usual)
    assert cancelled == [True]


def test_a_node_that_exits_the_process_ends_its_own_run_alone(tmp_path: Path) -> None:
    import sys

    def leave(state: State) -> State:
        if state["log"] == ["leave"]:
            sys.exit(3)
        return {"log": ["stayed"]}

    jobs = (RunJob("t1", payload={"log": ["leave"]}), RunJob("t2", payload={"log": ["go"]}))
    left, stayed = run(tmp_path, line(leave=leave), *jobs)
    assert (left.status, left.error) == ("error", "RuntimeError: SystemExit: 3")
    assert stayed.status == "done"


def test_a_cancellation_that_a_node_raises_itself_ends_its_own_run_alone(tmp_path: Path) -> None:
    async def cancel(state: State) -> State:
        if state["log"] == ["cancel"]:
            raise asyncio.CancelledError
        return {"log": ["stayed"]}

    jobs = (RunJob("t1", payload={"log": ["cancel"]}), RunJob("t2", payload={"log": ["go"]}))
    cancelled, stayed = run(tmp_path, line(cancel=cancel), *jobs)
    assert (cancelled.status, stayed.status) == ("error", "done")


def test_state_that_cannot_be_read_back_is_an_error_of_its_run(tmp_path: Path) -> None:
    class Odd:
        """What the serializer does not know."""

        __slots__ = ("lock",)

        def __init__(self) -> None:
            self.lock = threading.Lock()

    ended = one(tmp_path, line(a=lambda s: {"log": [Odd()]}), RunJob("t", payload={"log": []}))
    assert ended.status == "error"
    assert ended.error is not None


@pytest.mark.parametrize(("is_scratch", "synchronous"), [(False, 2), (True, 0)])
def test_commits_wait_for_the_disk_but_in_a_scratch_file(tmp_path: Path, is_scratch: bool, synchronous: int) -> None:
    async def level() -> Any:
        async with open_saver(str(tmp_path / "runs.sqlite"), is_scratch=is_scratch) as saver:
            found: Any = saver
            async with found.conn.execute("PRAGMA synchronous") as cursor:
                return await cursor.fetchone()

    assert asyncio.run(level()) == (synchronous,)
