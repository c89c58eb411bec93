"""What a fork answers to the tasks of the step where it starts."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool

from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.calls import Call, CallBlocked
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recordings import Recorded, Recording
from agentctl.sandbox.replies import StepAnswer, Substitute

LOST = Substitute('{"status":"lost"}', value={"status": "lost"})


@tool
def lookup(order: str) -> dict[str, str]:
    """Looks an order up."""
    raise AssertionError("ran for real")


@tool
def note(text: str) -> str:
    """Notes something in the state."""
    return f"noted {text}"


def asks(order: str = "A1", *, id: str | None = None, caller: str = "look:task-1", made_by: Any = lookup) -> Call:
    return Call("lookup", {"order": order}, id, tool=made_by, caller=caller)


def test_every_call_of_the_tool_by_the_task_is_answered_whatever_its_arguments() -> None:
    desk = Desk(Policy(in_step=(StepAnswer("lookup", frozenset({"task-1"}), LOST),)))
    assert desk.admit(asks("A1")).reply == {"status": "lost"}
    assert desk.admit(asks("B2", caller="outer:task-1|look:task-7")).reply == {"status": "lost"}
    assert [call.served_by for call in desk.calls] == ["answered"] * 2


def test_another_task_is_answered_only_for_arguments_that_were_asked_in_the_step() -> None:
    desk = Desk(Policy(in_step=(StepAnswer("lookup", frozenset({"task-1"}), LOST),)))
    desk.admit(asks("A1"))
    assert desk.admit(asks("A1", caller="later:task-2")).reply == {"status": "lost"}
    with pytest.raises(CallBlocked):
        desk.admit(asks("B2", caller="later:task-2"))
    with pytest.raises(CallBlocked):
        desk.admit(asks("C3", caller=""))


def test_one_call_of_a_task_is_known_by_its_id_before_its_arguments() -> None:
    polls = [
        StepAnswer("lookup", frozenset({"task-1"}), Substitute(said), id) for id, said in (("p1", "a"), ("p2", "b"))
    ]
    desk = Desk(Policy(in_step=tuple(polls), substituted={asks("A1").key: Substitute("a")}))
    replies = [desk.admit(asks("A1", id=id)).reply for id in ("p2", "p1", "p2")]
    assert [reply.content for reply in replies] == ["b", "a", "b"]  # type: ignore[attr-defined]


def test_a_tool_that_says_it_returns_text_gives_text() -> None:
    @tool("lookup")
    def texts(order: str) -> str:
        """Looks an order up."""
        return ""

    desk = Desk(Policy(in_step=(StepAnswer("lookup", frozenset({"task-1"}), LOST),)))
    assert desk.admit(asks(made_by=texts)).reply == '{"status":"lost"}'
    assert desk.admit(asks(made_by=texts, id="c1")).reply.content == '{"status":"lost"}'  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "policy",
    [
        Policy(effects=Effects({"note": "state"}), other_state=True),
        Policy(effects=Effects({"note": "state"}), in_step=(StepAnswer("lookup", frozenset({"task-1"}), LOST),)),
    ],
    ids=["other state", "another answer"],
)
def test_a_tool_of_the_state_runs_on_the_state_that_the_fork_has_made(policy: Policy) -> None:
    entry = Recorded("note", {"text": "x"}, "n1", "", "1", "2", "recorded")
    ticket = Desk(policy, Recording((entry,)).cursor()).admit(Call("note", {"text": "x"}, "n1", tool=note))
    assert (ticket.served_by, ticket.tool) == ("state", note)
