"""The desk: in which order answers are looked for, and what the ledger holds of each call."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from agentctl.records.rows import Stored
from agentctl.sandbox.answers import MAX_RESULT_BYTES, Desk, Policy
from agentctl.sandbox.calls import Call, CallBlocked
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recordings import Recorded, Recording
from agentctl.sandbox.registry import ToolRegistry
from agentctl.sandbox.replies import Substitute
from tests.support.tools import World, answered

A1 = {"order_id": "A1"}


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 0.25
        return self.now_s


def lookup(**changes: Any) -> Call:
    return replace(Call("lookup_order", A1, "c1", tool=World().lookup(), by_tool_node=True), **changes)


def recorded(*contents: str) -> Recording:
    return Recording.of([answered("lookup_order", content, A1, call_id=f"r{i}") for i, content in enumerate(contents)])


def registry(*, effect: Any = "read", answers: bool = True) -> ToolRegistry:
    tools = ToolRegistry()
    tools.register(World().lookup(), effect=effect, answers=answers)
    return tools


def reads() -> Effects:
    return Effects(said={"lookup_order": "read"})


def served(desk: Desk, call: Call) -> str:
    return desk.admit(call).served_by


def test_a_substituted_answer_comes_before_everything_and_holds_for_every_later_call() -> None:
    fork = {lookup().key: Substitute("lost")}
    policy = Policy(substituted=fork, stubs={"lookup_order": "stub"}, registry=registry(), effects=reads())
    desk = Desk(policy, recorded("delivered").cursor())
    assert [served(desk, lookup(id=f"c{i}")) for i in range(3)] == ["answered"] * 3
    reply = desk.admit(lookup(id="c9")).reply
    assert isinstance(reply, ToolMessage)
    assert (reply.content, reply.tool_call_id, reply.name, reply.status) == ("lost", "c9", "lookup_order", "success")


def test_a_substituted_answer_is_for_the_same_arguments_only() -> None:
    desk = Desk(Policy(substituted={lookup().key: Substitute("lost")}))
    with pytest.raises(CallBlocked):
        desk.admit(lookup(args={"order_id": "B2"}))


@pytest.mark.parametrize("way", ["told something else", "asked something else"])
def test_a_tool_that_touches_state_alone_runs_once_the_run_has_gone_another_way(way: str) -> None:
    effects = Effects(said={"lookup_order": "state", "other": "read"})
    told = {Call("other", {}, None).key: Substitute("x")} if way == "told something else" else {}
    desk = Desk(Policy(effects=effects, substituted=told, stubs={"other": "y"}), recorded("delivered").cursor())
    if not told:
        assert served(desk, lookup()) == "recorded"
        desk.admit(Call("other", {}, "c2"))
    assert served(desk, lookup(id="c3")) == "state"


def test_a_read_stays_recorded_where_the_run_has_gone_another_way() -> None:
    policy = Policy(effects=reads(), substituted={Call("other", {}, None).key: Substitute("x")})
    assert served(Desk(policy, recorded("delivered").cursor()), lookup()) == "recorded"


def test_the_recording_comes_before_stubs_and_the_registry() -> None:
    policy = Policy(stubs={"lookup_order": "stub"}, registry=registry(), effects=reads())
    desk = Desk(policy, recorded("delivered").cursor())
    ticket = desk.admit(lookup(id="new"))
    assert (ticket.served_by, ticket.tool) == ("recorded", None)
    assert isinstance(ticket.reply, ToolMessage)
    assert (ticket.reply.content, ticket.reply.tool_call_id, ticket.reply.id) == ("delivered", "new", None)


def test_a_read_beyond_the_recording_is_recorded_again_and_a_write_is_not() -> None:
    desk = Desk(Policy(effects=reads()), recorded("delivered").cursor())
    assert [served(desk, lookup()), served(desk, lookup())] == ["recorded", "recorded_again"]
    desk = Desk(Policy(effects=Effects(said={"lookup_order": "write"})), recorded("delivered").cursor())
    assert served(desk, lookup()) == "recorded"
    with pytest.raises(CallBlocked):
        desk.admit(lookup())


def test_sandbox_mode_leaves_the_recording_out() -> None:
    desk = Desk(Policy(mode="sandbox", registry=registry()), recorded("delivered").cursor())
    ticket = desk.admit(lookup())
    assert ticket.served_by == "stub"
    assert ticket.tool is not None


def test_a_given_stub_comes_before_the_registry() -> None:
    desk = Desk(Policy(stubs={"lookup_order": {"status": "lost"}}, registry=registry()))
    ticket = desk.admit(lookup())
    assert isinstance(ticket.reply, ToolMessage)
    assert (ticket.served_by, ticket.reply.content) == ("stub", '{"status":"lost"}')


def test_a_string_stub_is_content_as_it_is() -> None:
    reply = Desk(Policy(stubs={"lookup_order": "lost"})).admit(lookup()).reply
    assert isinstance(reply, ToolMessage)
    assert reply.content == "lost"


def test_a_stub_for_a_direct_call_is_the_value_itself() -> None:
    desk = Desk(Policy(stubs={"lookup_order": {"status": "lost"}}))
    assert desk.admit(lookup(id=None, by_tool_node=False)).reply == {"status": "lost"}


def test_a_state_tool_runs_and_one_that_only_a_person_knows_too() -> None:
    call = lookup()
    for effects in (Effects(said={"lookup_order": "state"}), Effects(registries=(registry(effect="state"),))):
        ticket = Desk(Policy(effects=effects)).admit(call)
        assert (ticket.served_by, ticket.tool) == ("state", call.tool)


def test_a_read_runs_live_only_where_that_is_asked_for() -> None:
    call = lookup()
    ticket = Desk(Policy(effects=reads(), live_reads=True)).admit(call)
    assert (ticket.served_by, ticket.tool) == ("live", call.tool)
    with pytest.raises(CallBlocked):
        Desk(Policy(effects=reads())).admit(call)
    with pytest.raises(CallBlocked):
        Desk(Policy(live_reads=True)).admit(call)


def test_a_live_read_runs_the_production_tool_where_the_graph_holds_a_sandbox_one() -> None:
    sandbox, production = registry(answers=False), registry()
    call = lookup(tool=sandbox["lookup_order"])
    effects = Effects(registries=(sandbox,))
    policy = Policy(registry=sandbox, effects=effects, live_reads=True, live=production)
    assert Desk(policy).admit(call).tool is production["lookup_order"]
    with pytest.raises(CallBlocked):
        Desk(replace(policy, live=None)).admit(call)


def test_a_sandbox_tool_without_an_answer_blocks() -> None:
    with pytest.raises(CallBlocked):
        Desk(Policy(registry=registry(answers=False))).admit(lookup())


def test_an_unknown_tool_counts_as_a_write_and_is_blocked() -> None:
    desk = Desk(Policy(live_reads=True))
    with pytest.raises(CallBlocked) as caught:
        desk.admit(lookup())
    assert caught.value is desk.blocked
    assert [report.served_by for report in desk.calls] == ["blocked"]
    assert "lookup_order" in str(caught.value)


def test_a_call_in_which_the_target_lies_is_never_answered_from_the_recording() -> None:
    effects = Effects(said={"lookup_order": "state"})
    for enclosing in ("c1", "lookup_order"):
        desk = Desk(Policy(effects=effects, enclosing=frozenset({enclosing})), recorded("delivered").cursor())
        assert served(desk, lookup()) == "state"


def test_the_hint_is_a_stub_shaped_like_an_earlier_result() -> None:
    source = Recording.of([answered("lookup_order", '{"status": "it\'s lost"}', {"order_id": "Z"})])
    hint = Desk(Policy(), source.cursor()).refuse(lookup()).hint
    assert hint is not None
    assert shlex.split(hint) == ["--stub", 'lookup_order={"status":"it\'s lost"}']
    value = json.loads(shlex.split(hint)[1].partition("=")[2])
    reply = Desk(Policy(stubs={"lookup_order": value})).admit(lookup()).reply
    assert isinstance(reply, ToolMessage)
    assert json.loads(reply.text) == {"status": "it's lost"}


@pytest.mark.parametrize(
    ("content", "stub"),
    [("Delivered.", '"Delivered."'), ("120", "120"), ([{"type": "text", "text": "hi"}], '"hi"'), ("x" * 9000, '"..."')],
)
def test_the_hint_fits_every_kind_of_result(content: object, stub: str) -> None:
    source = Recording.of([answered("lookup_order", content, {"order_id": "Z"})])
    hint = Desk(Policy(), source.cursor()).stub_hint("lookup_order")
    assert shlex.split(hint)[1] == f"lookup_order={stub}"


def test_the_hint_without_an_earlier_result_leaves_a_gap_to_fill() -> None:
    assert shlex.split(Desk(Policy()).stub_hint("pay"))[1] == 'pay="..."'


def test_the_ledger_holds_arguments_duration_key_and_result() -> None:
    desk = Desk(Policy(stubs={"lookup_order": "lost"}), clock=Clock())
    ticket = desk.admit(lookup(args={"order_id": "A1", "idempotency_key": "T:refund"}, ns="sub:1"))
    desk.settle(ticket, ticket.reply)
    (report,) = desk.calls
    assert (report.name, report.id, report.ns, report.served_by) == ("lookup_order", "c1", "sub:1", "stub")
    assert report.args == {"order_id": "A1", "idempotency_key": "T:refund"}
    assert (report.duration_ms, report.idempotency_key, report.result) == (250.0, "T:refund", "lost")


def test_a_long_result_is_cut_in_the_ledger_at_a_whole_character() -> None:
    desk = Desk(Policy(stubs={"lookup_order": "é" * MAX_RESULT_BYTES}))
    ticket = desk.admit(lookup())
    desk.settle(ticket, ticket.reply)
    result = desk.calls[0].result
    assert result is not None
    assert len(result.encode()) <= MAX_RESULT_BYTES
    assert set(result) == {"é"}


def test_after_the_run_every_call_is_blocked_without_a_stub_to_give() -> None:
    desk = Desk(Policy(stubs={"lookup_order": "lost"}))
    desk.close()
    with pytest.raises(CallBlocked) as caught:
        desk.admit(lookup())
    assert caught.value.hint is None


def test_side_effects_count_the_calls_by_how_they_were_served() -> None:
    desk = Desk(Policy(stubs={"pay": "ok"}, effects=reads()), recorded("a").cursor())
    for call in (lookup(), lookup(), Call("pay", {}, "p")):
        desk.admit(call)
    desk.refuse(Call("mail", {}, "m"))
    desk.escaped(Call("x", {}, None))
    counted = desk.side_effects
    assert (counted.recorded, counted.stubbed, counted.live, counted.blocked, counted.escaped) == (2, 1, 0, 1, 1)


def entry(**changes: Any) -> Recording:
    base = Recorded("lookup_order", A1, "r1", "", "2", "3", "delivered")
    return Recording((replace(base, **changes),))


def test_a_recorded_error_comes_back_as_an_error() -> None:
    reply = Desk(Policy(), entry(status="error").cursor()).admit(lookup()).reply
    assert isinstance(reply, ToolMessage)
    assert (reply.status, reply.content) == ("error", "delivered")


def test_blocks_and_artifact_come_back_as_recorded() -> None:
    blocks = [{"type": "text", "text": "hi"}]
    reply = Desk(Policy(), entry(content=blocks, artifact={"rows": 3}).cursor()).admit(lookup()).reply
    assert isinstance(reply, ToolMessage)
    assert (reply.content, reply.artifact) == (blocks, {"rows": 3})


def test_a_partial_answer_is_never_given_to_a_tool_node_but_code_that_calls_tools_itself_gets_its_message() -> None:
    with pytest.raises(CallBlocked):
        Desk(Policy(), entry(kind="partial").cursor()).admit(lookup())
    desk = Desk(Policy(), entry(kind="partial", writes=(("todos", Stored("null", b"")),)).cursor())
    assert desk.admit(lookup(id=None, by_tool_node=False)).reply == "delivered"


def test_a_shared_task_that_led_further_than_its_plain_edges_is_not_an_answer() -> None:
    shared = entry(goto=("agent", "human"), shared=True)
    plain, routed = lookup(static_targets=frozenset({"agent", "human"})), lookup(static_targets=frozenset({"agent"}))
    assert served(Desk(Policy(), shared.cursor()), plain) == "recorded"
    assert served(Desk(Policy(), shared.cursor()), lookup(static_targets=None)) == "recorded"
    with pytest.raises(CallBlocked):
        Desk(Policy(), shared.cursor()).admit(routed)
