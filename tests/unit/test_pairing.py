"""What a provider would refuse about a conversation."""

from __future__ import annotations

import pytest

from agentctl.experiments.forking.pairing import new_problems, pair_messages, problems
from agentctl.records.messages import Message, ToolCall


def human(text: str = "hi") -> Message:
    return Message("human", None, text, text)


def ai(*ids: str, valid: bool = True) -> Message:
    calls = tuple(ToolCall(f"tool_{i}", i, {}, at, valid) for at, i in enumerate(ids))
    return Message("ai", None, "", "", tool_calls=calls)


def result(call_id: str) -> Message:
    return Message("tool", None, "ok", "ok", name=f"tool_{call_id}", tool_call_id=call_id)


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([human(), ai("c1", "c2"), result("c1"), result("c2"), ai()], ()),
        ([human(), ai("c1", "c2"), result("c2"), result("c1"), ai()], ()),
        ([human(), ai("c1", "c2")], ()),
        ([human(), ai("c1", "c2"), result("c1")], ("tool_c2 (c2) has no answer",)),
        ([human(), ai("c1"), human()], ("tool_c1 (c1) has no answer",)),
        ([human(), ai("c1"), human(), result("c1")], ("a result of tool_c1 (c1) does not follow its call",)),
        ([human(), ai("c1"), result("c1"), result("c1")], ("tool_c1 (c1) is answered 2 times",)),
        (
            [human(), result("c1")],
            (
                "a result of tool_c1 (c1) answers no call",
                "a result of tool_c1 (c1) does not follow its call",
            ),
        ),
        ([human(), ai("c1", valid=False), human()], ("tool_c1 (c1) has no answer",)),
        ([human(), ai("", ""), result(""), result(""), ai()], ()),
        ([human(), ai("", ""), result(""), human()], ("tool_ (no id) has no answer",)),
    ],
)
def test_each_call_is_answered_once_right_after_it(messages: list[Message], found: tuple[str, ...]) -> None:
    assert problems(messages) == found


def test_a_call_id_used_again_in_a_later_turn_is_paired_in_its_own_turn() -> None:
    messages = [ai("call_0"), result("call_0"), human(), ai("call_0"), result("call_0")]
    assert [(pair.at, pair.answers) for pair in pair_messages(messages).pairs] == [(0, (1,)), (3, (4,))]


def test_only_what_a_change_broke_is_new() -> None:
    before = [human(), ai("c1"), human(), ai("c2"), result("c2")]
    after = [*before, result("c2")]
    assert problems(before) == ("tool_c1 (c1) has no answer",)
    assert new_problems(before, before) == ()
    assert new_problems(before, after) == ("tool_c2 (c2) is answered 2 times",)
