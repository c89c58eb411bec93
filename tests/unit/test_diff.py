import sys
from collections.abc import Mapping, Sequence

from agentctl.experiments.comparing.diff import Tip, diff_tips
from agentctl.records.copies import Place
from agentctl.records.diffs import ABSENT, Change


def human(text: str, id: str) -> dict[str, object]:
    return {"type": "human", "content": text, "id": id}


def ai(text: str, id: str, *calls: tuple[str, str, Mapping[str, object]]) -> dict[str, object]:
    tool_calls = [{"name": name, "id": call_id, "args": args, "type": "tool_call"} for name, call_id, args in calls]
    return {"type": "ai", "content": text, "id": id, "tool_calls": tool_calls}


def tool(text: str, id: str, call_id: str) -> dict[str, object]:
    return {
        "type": "tool",
        "content": text,
        "id": id,
        "tool_call_id": call_id,
        "name": "lookup_order",
        "status": "success",
    }


def tip(
    messages: Sequence[object], *lineage: str, interrupts: Mapping[str, object] | None = None, **state: object
) -> Tip:
    return Tip(Place("s", "t", lineage[-1]), lineage, {"messages": messages, **state}, interrupts or {})


ASKED = human("where is my order?", "m1")
CALLED = ai("", "m2", ("lookup_order", "c1", {"order_id": "A1"}))


def test_equal_branches_are_equal() -> None:
    found = diff_tips(tip([ASKED, CALLED], "1", "2"), tip([ASKED, CALLED], "1", "3"))
    assert found.equal
    assert found.common == "1"
    assert found.n_common_messages == 2
    assert (found.messages, found.tool_calls, found.reply, found.state) == ((), (), None, ())


def test_a_replaced_result_is_one_changed_message_named_by_its_field() -> None:
    left = [ASKED, CALLED, tool('{"status": "delivered", "n": 1}', "m3", "c1"), ai("No refund is due.", "m4")]
    right = [
        ASKED,
        CALLED,
        tool('{"status": "lost", "n": 1}', "m3", "c1"),
        ai("", "m5", ("issue_refund", "c2", {"amount": 120.0})),
        tool("ok", "m6", "c2"),
        ai("Your refund is on its way.", "m7"),
    ]
    found = diff_tips(tip(left, "1", "2"), tip(right, "1", "3"))
    assert not found.equal
    assert [entry.side for entry in found.messages] == ["both", "left", "right", "right", "right"]
    assert found.messages[0].changes == (Change("content.status", "delivered", "lost"),)
    assert [(call.side, call.right and call.right.name) for call in found.tool_calls] == [("right", "issue_refund")]
    assert found.reply == Change("reply", "No refund is due.", "Your refund is on its way.")


def test_messages_with_new_ids_are_aligned_by_their_content() -> None:
    left = [ASKED, ai("Hello.", "x1"), ai("No.", "x2")]
    right = [ASKED, ai("Hello.", "y1"), ai("Yes.", "y2")]
    found = diff_tips(tip(left, "1"), tip(right, "1"))
    assert [(e.side, e.left and e.left.text, e.right and e.right.text) for e in found.messages] == [
        ("left", "No.", None),
        ("right", None, "Yes."),
    ]
    assert found.n_common_messages == 2


def test_changed_arguments_of_the_same_call_are_named_by_path() -> None:
    left = [ASKED, ai("", "m2", ("refund", "c1", {"order": {"id": "A1"}, "amount": 12900}))]
    right = [ASKED, ai("", "m9", ("refund", "c9", {"order": {"id": "A1"}, "amount": 129}))]
    (call,) = diff_tips(tip(left, "1"), tip(right, "1")).tool_calls
    assert (call.side, call.changes) == ("both", (Change("amount", 12900, 129),))


def test_a_repeated_call_is_matched_once() -> None:
    left = [ai("", "m1", ("lookup", "c1", {"id": 1}), ("lookup", "c2", {"id": 2}))]
    right = [ai("", "m9", ("lookup", "c9", {"id": 1}))]
    (call,) = diff_tips(tip(left, "1"), tip(right, "1")).tool_calls
    assert call.left is not None
    assert (call.side, call.left.args) == ("left", {"id": 2})


def test_state_and_interrupts_differ_by_path_and_side() -> None:
    found = diff_tips(
        tip([ASKED], "1", tier="gold", score=float("nan")),
        tip([ASKED], "1", score=float("nan"), extra=[1], interrupts={"approve[0]": {"amount": 1}}),
    )
    assert found.state == (Change("tier", "gold", ABSENT), Change("extra", ABSENT, [1]))
    assert found.interrupts == (Change('"approve[0]"', ABSENT, {"amount": 1}),)


def test_a_reply_before_a_new_question_is_no_reply() -> None:
    found = diff_tips(tip([ASKED, ai("Hi.", "a")], "1"), tip([ASKED, ai("Hi.", "a"), human("and now?", "b")], "1"))
    assert found.reply == Change("reply", "Hi.", ABSENT)


def test_branches_without_a_common_row_have_no_ancestor() -> None:
    assert diff_tips(tip([ASKED], "1"), tip([ASKED], "2")).common is None


def test_channels_that_hold_no_messages_are_state() -> None:
    found = diff_tips(
        Tip(Place("s", "t", "1"), ["1"], {"notes": [{"a": 1}]}, {}),
        Tip(Place("s", "t", "1"), ["1"], {"notes": [{"a": 2}]}, {}),
    )
    assert found.state == (Change("notes[0].a", 1, 2),)


def test_work_grows_with_the_length_and_not_with_its_square() -> None:
    def long(prefix: str, n: int) -> list[object]:
        return [ai(f"{prefix}{i % 7}", f"{prefix}-{i}", ("look", f"{prefix}{i}", {"n": i})) for i in range(n)]

    def work(n: int) -> int:
        left, right = tip(long("a", n), "1"), tip(long("b", n), "1")
        events = 0

        def count(*_: object) -> None:
            nonlocal events
            events += 1

        sys.setprofile(count)
        try:
            found = diff_tips(left, right)
        finally:
            sys.setprofile(None)
        assert len(found.messages) == 2 * n
        return events

    assert work(400) <= 2.2 * work(200)
