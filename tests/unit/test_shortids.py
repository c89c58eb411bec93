"""Short checkpoint ids, with collisions made on purpose."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from agentctl.revisions.shortids import is_uuid, match_id, short_ids

A = "1f0c2b7e-6d3a-6f4e-8000-9d03f8c9aa01"
SAME_8 = "1f0c2b7e-6d3a-6f4e-8001-9d03f8c9aa01"
SAME_12 = "2f0c2b7e-6d3a-6f4e-8000-9d03f8c9aa01"
OTHER = "1f0c2b7e-6d3a-6f4e-8002-111122223333"


def test_a_short_id_is_the_last_eight_digits() -> None:
    assert short_ids([A, OTHER]) == {A: "f8c9aa01", OTHER: "22223333"}


def test_colliding_ids_are_longer_until_each_names_one() -> None:
    shorts = short_ids([A, SAME_8, SAME_12, OTHER])
    assert shorts[SAME_8] == "1-9d03f8c9aa01"
    assert shorts[A] == A
    assert shorts[SAME_12] == SAME_12
    assert shorts[OTHER] == "22223333"


def test_other_ids_stay_whole_and_are_not_matched_by_their_ends() -> None:
    assert short_ids(["checkpoint-1", "7"]) == {"checkpoint-1": "checkpoint-1", "7": "7"}
    assert match_id("7", ["checkpoint-7", "7"]) == ("7",)
    assert match_id("int-7777", ["checkpoint-7777"]) == ()


def test_an_id_that_looks_like_the_end_of_another_does_not_hide_it() -> None:
    shorts = short_ids([A, "f8c9aa01"])
    assert shorts == {A: "3f8c9aa01", "f8c9aa01": "f8c9aa01"}
    assert match_id("f8c9aa01", list(shorts)) == ("f8c9aa01",)


def test_four_digits_are_enough_and_three_are_not() -> None:
    assert match_id("aa01", [A, OTHER]) == (A,)
    assert match_id("a01", [A, OTHER]) == ()


def test_a_shared_end_matches_all_that_have_it() -> None:
    assert match_id("9d03f8c9aa01", [A, OTHER, SAME_8]) == (A, SAME_8)


def test_case_and_dashes_do_not_matter() -> None:
    assert match_id(A.upper(), [A, SAME_8]) == (A,)
    assert match_id(A.replace("-", ""), [A, SAME_8]) == (A,)
    assert match_id("8000-9D03F8C9AA01", [A, SAME_8]) == (A,)


def test_dashes_alone_match_nothing() -> None:
    assert match_id("----", [A]) == ()


# Few digits differ, so that most draws collide somewhere.
alike = st.builds(
    lambda head, middle, tail: str(uuid.UUID(int=head << 96 | 6 << 76 | middle << 40 | tail)),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 2**8),
)


@given(st.sets(alike | st.sampled_from(["00000001", "0001", "x", "0000000a", "DEADBEEF"]), min_size=1, max_size=40))
def test_every_short_id_pasted_back_names_exactly_its_id(ids: set[str]) -> None:
    every = sorted(ids)
    for id, short in short_ids(every).items():
        assert match_id(short, every) == (id,)
        assert id.endswith(short)
        assert len(short) >= 8 or not is_uuid(id)
