"""Tool calls as revisions, resolved against a thread that is written down."""

from __future__ import annotations

import pytest

from agentctl.errors import Ambiguous, NotFound
from tests.support.written_thread import Support, site


def test_a_call_is_where_it_waits_for_its_answer() -> None:
    thread = Support()
    thread.sites = [site("get_policy", "c0", thread.asked_1), site("lookup_order", "c1", thread.asked_2)]
    for text in ("call:lookup_order", "call:c1", "call:lookup_order:1", "call:c1:-1"):
        found = thread.to(text)
        assert (found.id, found.why) == (thread.asked_2, "where call c1 of lookup_order waits for its answer")
        assert found.call is thread.sites[1]


def test_a_call_made_twice_is_ambiguous_with_arguments_results_and_revisions_that_work() -> None:
    thread = Support()
    thread.sites = [
        site("lookup_order", "c1", thread.asked_1),
        site("lookup_order", "c1", thread.asked_2, occurrence=2, answer=None),
    ]
    for name in ("lookup_order", "c1"):
        with pytest.raises(Ambiguous) as caught:
            thread.to(f"call:{name}")
        rows = caught.value.candidates
        assert [row["revision"] for row in rows] == [f"call:{name}:1", f"call:{name}:2"]
        assert [row["result"] for row in rows] == ["delivered", None]
        assert rows[0]["args"] == {"order_id": "A1"}
        assert [thread.to(str(row["revision"])).id for row in rows] == [thread.asked_1, thread.asked_2]
        assert str(caught.value.hint).endswith(f"prod::support-17@call:{name}:2")


def test_an_occurrence_beyond_the_last_is_not_found_and_lists_those_there_are() -> None:
    thread = Support()
    thread.sites = [site("lookup_order", "c1", thread.asked_1)]
    for k in (2, -2):
        with pytest.raises(NotFound, match="1 occurrence, not 2") as caught:
            thread.to(f"call:lookup_order:{k}")
        assert [row["revision"] for row in caught.value.candidates] == ["call:lookup_order:1"]


def test_a_call_in_a_namespace_below_says_where_it_was_found() -> None:
    thread = Support()
    inner = thread.add(20, None, step=0, ns="research:1f")
    thread.sites = [site("search", "s1", inner, ns="research:1f", answer=None)]
    found = thread.to("call:search")
    assert (found.ns, found.id) == ("research:1f", inner)
    assert found.notes == ("found in namespace research:1f", "the call has no answer yet")


def test_parents_of_a_call_below_stay_in_its_namespace() -> None:
    thread = Support()
    first = thread.add(20, None, step=-1, ns="research:1f")
    second = thread.add(21, first, step=0, ns="research:1f")
    thread.sites = [site("search", "s1", second, ns="research:1f")]
    assert (thread.to("call:search~").ns, thread.to("call:search~").id) == ("research:1f", first)


def test_a_call_id_that_ends_in_a_number_is_found_whole() -> None:
    thread = Support()
    thread.sites = [
        site("lookup", "functions.lookup:0", thread.asked_1),
        site("pay", "functions.pay:1", thread.asked_2),
    ]
    assert thread.to("call:functions.lookup:0").id == thread.asked_1
    assert thread.to("call:functions.pay:1").id == thread.asked_2


def test_a_call_that_reads_as_an_id_and_as_an_occurrence_is_ambiguous() -> None:
    thread = Support()
    thread.sites = [site("pay", "x", thread.asked_1), site("pay", "pay:1", thread.asked_2)]
    with pytest.raises(Ambiguous) as caught:
        thread.to("call:pay:1")
    assert caught.value.hint == "for the id write 'prod::support-17@call:\"pay:1\"'"
    assert thread.to('call:"pay:1"').id == thread.asked_2


def test_a_call_whose_id_is_its_name_and_number_is_one_call() -> None:
    thread = Support()
    thread.sites = [site("pay", "pay:1", thread.asked_1), site("pay", "pay:2", thread.asked_2)]
    assert thread.to("call:pay:1").id == thread.asked_1
    assert thread.to("call:pay:2").id == thread.asked_2


def test_an_unknown_call_names_its_neighbour_or_what_was_called() -> None:
    thread = Support()
    thread.sites = [site("lookup_order", "c1", thread.asked_1)]
    with pytest.raises(NotFound) as near:
        thread.to("call:lookup_ordr")
    assert near.value.hint == "did you mean prod::support-17@call:lookup_order?"
    with pytest.raises(NotFound) as far:
        thread.to("call:refund")
    assert far.value.hint == "called there: lookup_order"
