from __future__ import annotations

import ormsgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctl.codec.packed import split_map
from agentctl.codec.windows import Joined, value_spans
from agentctl.errors import DecodeError

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
EXTENSIONS = st.builds(ormsgpack.Ext, st.integers(0, 127), st.binary(max_size=40))
VALUES = st.recursive(
    SCALARS | EXTENSIONS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text() | st.integers(0, 9), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])  # of making values, on a busy machine
@given(st.dictionaries(st.text(), VALUES, max_size=5), st.integers(18, 60), st.binary(max_size=3))
def test_values_are_found_wherever_a_window_ends(value: dict[str, object], window_bytes: int, before: bytes) -> None:
    data = ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)

    spans = value_spans(before + data, len(before), window_bytes=window_bytes)

    assert {name: (before + data)[span] for name, span in spans.items()} == split_map(data)


@pytest.mark.parametrize("n_bytes", [31, 32, 255, 256, 65_535, 65_536])
@pytest.mark.parametrize("form", [str, bytes, ormsgpack.Ext])
def test_a_long_value_is_stepped_over_unread(n_bytes: int, form: type) -> None:
    read: list[int] = []

    class Source(bytes):
        def __getitem__(self, part: slice) -> bytes:  # type: ignore[override]
            found = super().__getitem__(part)
            read.append(len(found))
            return found

    long = {str: "x" * n_bytes, bytes: b"x" * n_bytes, ormsgpack.Ext: ormsgpack.Ext(5, b"x" * n_bytes)}[form]
    data = Source(ormsgpack.packb({"long": [long, {"inner": long}], "after": 1}))

    spans = value_spans(data, window_bytes=20)

    assert bytes(data)[spans["after"]] == b"\x01"
    assert sum(read) < 300


@pytest.mark.parametrize(
    "data",
    [b"", b"\x91\x01", b"\x81\xa1a", b"\x81\x01\x02", b"\x81\xa1a\xc1", b"\x81\xa1a\xd9\xff", b"\xdf\xff\xff\xff\xff"],
)
def test_what_is_not_one_whole_map_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        value_spans(data, window_bytes=20)


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=6), max_size=5), st.integers(0, 12), st.integers(0, 12))
def test_bytes_that_lie_in_several_places_are_sliced_as_if_they_lay_in_one(
    parts: list[bytes], start: int, n_bytes: int
) -> None:
    joined, whole = Joined(parts), b"".join(parts)

    assert len(joined) == len(whole)
    assert joined[:] == whole
    assert joined[start : start + n_bytes] == whole[start : start + n_bytes]
