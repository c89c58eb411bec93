"""Times, ids and namespaces as revisions, resolved against a thread that is written down."""

from __future__ import annotations

import shlex
from datetime import timedelta

import pytest

from agentctl.errors import Ambiguous, NotFound
from agentctl.records.rows import id_time
from agentctl.revisions.namespaces import node_path, pick_namespace
from agentctl.revisions.resolve import resolve
from agentctl.revisions.target import parse_target
from tests.support.written_thread import NOW, START, Support, Written, site, uuid6


def test_a_time_is_the_last_checkpoint_not_later() -> None:
    thread = Support()
    assert thread.to("at:11:05").id == thread.asked_2
    assert thread.to("at:2026-11-30T11:04:59.5Z").id == thread.told_1
    assert thread.to("at:2h").id == thread.end
    assert thread.to("at:11:07", branch=thread.reply).id == thread.reply


def test_a_printed_time_pasted_back_names_its_checkpoint() -> None:
    thread = Written()
    id = thread.add(0, None, id=uuid6(START + timedelta(microseconds=654321), 1))
    at = id_time(id)
    assert at is not None
    for printed in (at.isoformat(), at.isoformat(timespec="seconds"), at.isoformat().replace("+00:00", "Z")):
        assert thread.to(f"at:{printed}").id == id


def test_a_time_before_the_thread_names_its_first_checkpoint() -> None:
    thread = Support()
    with pytest.raises(NotFound) as caught:
        thread.to("at:2026-11-29")
    assert str(caught.value.hint).startswith(f"its first is prod::support-17@{thread.input}")


def test_ids_without_a_time_cannot_be_reached_by_one() -> None:
    thread = Written()
    first = thread.add(0, None, id="0-first")
    with pytest.raises(NotFound, match="no times"):
        thread.to("at:2h")
    thread.add(1, first)
    assert thread.to("at:2h").notes == ("1 checkpoints without a time were passed over",)


def test_an_id_is_found_whole_or_by_its_end_on_any_branch() -> None:
    thread = Support()
    assert thread.to(thread.reply).id == thread.reply
    assert thread.to(thread.reply[-8:]).id == thread.reply
    assert thread.to(thread.reply.upper()).id == thread.reply


def test_ids_that_end_alike_are_ambiguous_with_step_time_and_next() -> None:
    thread = Support()
    twin = thread.add(99, thread.end, step=6, next=["agent"], id=uuid6(START + timedelta(minutes=50), 7))
    with pytest.raises(Ambiguous) as caught:
        thread.to(thread.reply[-8:])
    rows = caught.value.candidates
    assert [row["revision"] for row in rows] == [twin, thread.reply]
    assert rows[0] == {"revision": twin, "ns": "", "step": 6, "at": "2026-11-30T11:50:00Z", "next": ["agent"]}
    assert thread.to(str(rows[1]["revision"])).id == thread.reply


def test_an_id_that_is_no_uuid_is_given_whole() -> None:
    thread = Written()
    thread.add(0, None, id="00cafe", step=1)
    assert thread.to("00cafe").id == "00cafe"
    with pytest.raises(NotFound):
        thread.to("cafe")


@pytest.mark.parametrize(
    ("text", "hint"), [("heda", "did you mean prod::support-17@head?"), ("b1", "at least 4 hex digits")]
)
def test_an_id_that_is_not_there_says_what_was_perhaps_meant(text: str, hint: str) -> None:
    with pytest.raises(NotFound) as caught:
        Support().to(text)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("name", ["support-17", "ann lee@work::7", "it's~2"])
@pytest.mark.parametrize(
    "text", ["heda", "head~9", "at:2026-11-29", "call:lookup", "call:lookup_ordr", "call:pay", "call:lookup_order:9"]
)
def test_a_target_in_a_hint_can_be_pasted_into_a_shell(name: str, text: str) -> None:
    thread = Support()
    thread.thread = name
    thread.sites = [
        site("lookup_order", "c1", thread.asked_1),
        site("lookup_order", "c2", thread.asked_2),
        site("pay", "c3", thread.asked_1),
        site("pay", "c3", thread.asked_2),
    ]
    with pytest.raises((NotFound, Ambiguous)) as caught:
        thread.to(text)
    words = shlex.split(str(caught.value.hint).rstrip("?"))
    targets = [word for word in words if word.startswith("prod::")]
    assert len(targets) == 1
    target = parse_target(targets[0], lambda profile, found: (profile, found) == ("prod", name), profiles=["prod"])
    assert target.thread == name
    if "lookup_ordr" not in text and text != "call:lookup":
        assert resolve(target.one, thread, now=NOW)


def test_an_id_of_a_namespace_below_is_found_without_naming_it() -> None:
    thread = Support()
    inner = thread.add(33, None, ns="research:1f")
    found = thread.to(inner[-8:])
    assert (found.ns, found.id, found.notes) == ("research:1f", inner, ("found in namespace research:1f",))
    assert thread.to(inner).ns == "research:1f"
    with pytest.raises(NotFound):
        thread.to(thread.reply, ns="research")


def test_one_id_in_two_namespaces_is_ambiguous_until_one_is_named() -> None:
    thread = Support()
    shared = thread.add(33, None, ns="a:1", step=0)
    thread.add(33, None, ns="b:1", step=0)
    with pytest.raises(Ambiguous) as caught:
        thread.to(shared)
    assert [row["ns"] for row in caught.value.candidates] == ["a:1", "b:1"]
    assert thread.to(shared, ns="b:1").ns == "b:1"


def test_a_namespace_is_named_in_full_by_its_nodes_or_by_its_beginning() -> None:
    stored = ["", "sub", "tools:1f0|model:2a", "tools:1f0", "tools:9cc"]
    assert node_path("tools:1f0|model:2a") == "tools|model"
    assert pick_namespace("tools:9cc", stored, "t") == "tools:9cc"
    assert pick_namespace("tools|model", stored, "t") == "tools:1f0|model:2a"
    assert pick_namespace("sub", stored, "t") == "sub"
    assert pick_namespace("tools:9", stored, "t") == "tools:9cc"
    with pytest.raises(Ambiguous) as caught:
        pick_namespace("tools", stored, "t")
    assert [row["ns"] for row in caught.value.candidates] == ["tools:1f0", "tools:9cc"]


def test_a_namespace_that_is_not_stored_lists_those_that_are() -> None:
    thread = Support()
    with pytest.raises(NotFound) as caught:
        thread.to("head", ns="default")
    assert caught.value.hint == "it has the root namespace only: leave --ns away"


def test_a_thread_without_rows_or_without_root_rows_is_not_found() -> None:
    with pytest.raises(NotFound, match="there is no thread support-17"):
        Written().to("head")
    thread = Written()
    thread.add(1, None, ns="story")
    with pytest.raises(NotFound) as caught:
        thread.to("head")
    assert caught.value.hint == "give --ns, one of: story"
