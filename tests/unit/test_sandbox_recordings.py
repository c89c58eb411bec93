"""Answers handed out again: by tool, canonical arguments and occurrence, from where a run starts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentctl.errors import StoreError
from agentctl.records.rows import Stored
from agentctl.sandbox.calls import Call, canonical_args
from agentctl.sandbox.recordings import Recorded, Recording
from tests.support.tools import answered

A1 = {"order_id": "A1"}


def lookup(call_id: str | None = None, **args: object) -> Call:
    return Call("lookup_order", args or A1, call_id)


def two_answers() -> Recording:
    return Recording.of(
        [
            answered("lookup_order", "first", A1, call_id="c1", pending_at="2", answered_at="3"),
            answered("lookup_order", "second", A1, call_id="c2", pending_at="5", answered_at="6"),
        ]
    )


def said(recording_cursor: object, call: Call, *, repeat: bool = False) -> tuple[str, bool] | None:
    given = recording_cursor.take(call, repeat=repeat)  # type: ignore[attr-defined]
    return None if given is None else (given.entry.text, given.again)


def test_equal_calls_get_their_answers_in_order_and_then_none() -> None:
    cursor = two_answers().cursor()
    assert said(cursor, lookup()) == ("first", False)
    assert said(cursor, lookup()) == ("second", False)
    assert said(cursor, lookup()) is None


def test_a_read_beyond_the_recording_gets_the_last_answer_again() -> None:
    cursor = two_answers().cursor()
    answers = [said(cursor, lookup(), repeat=True) for _ in range(4)]
    assert answers == [("first", False), ("second", False), ("second", True), ("second", True)]


def test_answers_at_or_before_the_start_are_past() -> None:
    assert said(two_answers().cursor("3"), lookup()) == ("second", False)
    assert said(two_answers().cursor("2"), lookup()) == ("first", False)


def test_a_start_given_as_checkpoint_ids_takes_exactly_those_as_past() -> None:
    assert said(two_answers().cursor({"6"}), lookup()) == ("first", False)
    assert said(two_answers().cursor({"3", "6"}), lookup(), repeat=True) == ("second", True)


def test_an_answer_that_is_only_a_pending_write_is_past_where_the_run_keeps_it() -> None:
    waiting = Recording.of([answered("lookup_order", "waiting", A1, answered_at=None)])
    assert said(waiting.cursor("9"), lookup()) == ("waiting", False)
    assert said(waiting.cursor("9", kept={"c1"}), lookup()) is None


def test_an_answer_with_the_calls_own_id_comes_before_the_next_in_order() -> None:
    cursor = two_answers().cursor()
    assert said(cursor, lookup("c2")) == ("second", False)
    assert said(cursor, lookup("c9")) == ("first", False)


def test_cursors_of_one_recording_do_not_share_their_place() -> None:
    recording = two_answers()
    first, second = recording.cursor(), recording.cursor()
    assert said(first, lookup()) == said(second, lookup()) == ("first", False)


def test_other_arguments_have_no_answer() -> None:
    assert said(two_answers().cursor(), lookup(order_id="B2"), repeat=True) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"amount": 120.0}, {"amount": 120}),
        ({"deep": [{"x": 1.0, "y": "é"}]}, {"deep": [{"y": "é", "x": 1}]}),
    ],
)
def test_arguments_are_equal_whatever_their_order_and_number_form(left: object, right: object) -> None:
    assert canonical_args(left) == canonical_args(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [({"a": 1}, {"a": "1"}), ({"a": True}, {"a": 1}), ({"a": None}, {}), ({"a": 120.5}, {"a": 120})],
)
def test_arguments_of_other_value_or_type_differ(left: object, right: object) -> None:
    assert canonical_args(left) != canonical_args(right)


def test_other_branches_count_only_for_calls_that_the_branch_in_question_lacks() -> None:
    other = [answered("lookup_order", "elsewhere", A1), answered("get_policy", "30 days", {"topic": "lost"})]
    recording = Recording.of([answered("lookup_order", "here", A1)], other)
    assert [entry.text for entry in recording.entries] == ["here", "30 days"]


def test_unanswered_unreadable_and_task_calls_are_left_out() -> None:
    site = answered("lookup_order", "x", A1)
    without = [replace(site, answer=None), replace(site, args=None), answered("l", None, A1, status="unreadable")]
    assert Recording.of(without).entries == ()


def test_a_recording_survives_json() -> None:
    blocks = [{"type": "text", "text": "hi"}]
    recording = Recording(
        (
            Recorded(
                "t", A1, "c1", "sub:1", "2", "3", blocks, artifact={"rows": [1]}, message=Stored("msgpack", b"\x80")
            ),
            Recorded("u", {}, "", "", "2", None, "no", status="error", kind="partial", shared=True, goto=("a", "b")),
            Recorded(
                "v", {}, "c", "", "2", "4", "x", kind="command", writes=(("todos", Stored("msgpack", b"\xff\x00")),)
            ),
        )
    )
    assert Recording.from_json(json.loads(json.dumps(recording.to_json()))) == recording


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"schema": "agentctl.recording/9", "entries": []},
        {"schema": "agentctl.recording/1", "entries": [{"name": "t"}]},
        {"schema": "agentctl.recording/1", "entries": [3]},
    ],
)
def test_a_document_that_is_no_recording_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(StoreError):
        Recording.from_json(document)
