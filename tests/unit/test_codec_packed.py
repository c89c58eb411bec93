from __future__ import annotations

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.codec.packed import join_map, last_item, split_map
from agentctl.errors import DecodeError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(0, 9), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), VALUES, max_size=40))
def test_slices_join_to_the_same_bytes(value: dict[str, object]) -> None:
    data = ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)

    slices = split_map(data)

    assert list(slices) == list(value)
    assert join_map(slices) == data
    for key, part in slices.items():
        assert part == ormsgpack.packb(value[key], option=ormsgpack.OPT_NON_STR_KEYS)


def test_extensions_are_sliced_whole() -> None:
    extension = ormsgpack.packb(ormsgpack.Ext(5, b"x" * 300))
    data = join_map({"a": extension, "b": b"\xc0"})

    assert split_map(data) == {"a": extension, "b": b"\xc0"}


@pytest.mark.parametrize(
    "data", [b"", b"\x91\x01", b"\x81\xa1a", b"\x81\x01\x02", b"\x81\xa1a" + b"\x91" * 50_000, b"\xdf\xff\xff\xff\xff"]
)
def test_what_is_not_one_whole_map_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        split_map(data)


@given(st.lists(VALUES, min_size=1, max_size=40))
def test_the_last_item_of_a_packed_list_is_cut_out_of_it(value: list[object]) -> None:
    data = ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)

    assert last_item(data) == (len(value), ormsgpack.packb(value[-1], option=ormsgpack.OPT_NON_STR_KEYS))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x90", b"\x92\x01", b"\x91\x01\x01", b"\xdd\xff\xff\xff\xff"])
def test_what_is_not_one_whole_list_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        last_item(data)
