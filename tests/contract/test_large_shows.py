"""On a terminal a large value is shown from its beginning, without all of it being read; elsewhere it is whole."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentctl.codec import large as codec_large
from agentctl.codec import parts as codec_parts
from agentctl.codec.messages import messages_in
from agentctl.codec.values import decode
from agentctl.records.rows import Large, Stored
from agentctl.stores.large import Chunks
from agentctl.stores.reading import view
from agentctl.stores.reading.large_state import beginning, last_messages
from agentctl.testing import run_cli
from tests.contract.test_large_diffs import MESSAGES, OTHER, write_conversation
from tests.contract.test_large_states import peak_bytes

PEAK_BYTES = 9_000_000
"""Read whole, the newest checkpoint takes three times as much."""


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("large") / "large.sqlite")
    write_conversation(path)
    return path


def in_chunks(value: Stored) -> Large:
    return Large(value.type, Chunks(len(value.data), lambda start, n: value.data[start : start + n]))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])  # of making values, on a busy machine
@given(MESSAGES, OTHER, st.integers(1, 4))
def test_the_end_of_a_conversation_in_parts_is_its_end(messages: list[Any], other: object, n_last: int) -> None:
    for given_list in (messages, [*messages, other]):
        stored = Stored(*JsonPlusSerializer().dumps_typed(given_list))
        whole = messages_in(decode(stored))

        with patch.object(codec_parts, "HELD_BYTES", 40), patch.object(codec_large, "HELD_BYTES", 40_000):
            found = last_messages(in_chunks(stored), n_last)

        assert found.messages == whole[-n_last:]
        assert found.n_earlier + len(found.messages) == len(whole)
        assert found.holds_others == (len(whole) < len(given_list))


def test_a_beginning_is_that_of_the_whole_value() -> None:
    numbers = list(range(30_000))
    fields = {f"k{i}": [i, "é"] for i in range(30_000)}
    for value in (numbers, fields, [HumanMessage("a", id=f"m{i}") for i in range(500)]):
        stored = Stored(*JsonPlusSerializer().dumps_typed(value))
        whole: Any = decode(stored)

        with patch.object(codec_parts, "HELD_BYTES", 4_000), patch.object(codec_large, "HELD_BYTES", 4_000):
            found: Any = beginning(in_chunks(stored))

        n = len(found)
        assert 0 < n <= len(whole)
        assert found == (whole[:n] if isinstance(whole, list) else dict(list(whole.items())[:n]))


@pytest.mark.parametrize("target", ["large", "large@head~1", "large@head~2"])
def test_a_terminal_shows_the_same_of_large_values_as_of_whole_ones(
    target: str, large_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_parts = run_cli("show", target, "--store", large_file, terminal=True, width=120)
    monkeypatch.setattr(view, "LARGE_BYTES", 1 << 40)
    whole = run_cli("show", target, "--store", large_file, terminal=True, width=120)

    assert in_parts.code == 0, in_parts.err
    assert "earlier not shown" in in_parts.out
    assert in_parts.out.partition("\n")[2] == whole.out.partition("\n")[2]  # but for its age


def test_what_a_terminal_does_not_show_is_not_held(large_file: str, fresh_postgres_url: str) -> None:
    write_conversation(fresh_postgres_url)
    for url in (large_file, fresh_postgres_url):
        words = ("show", "large", "--store", url)
        run_cli(*words, terminal=True)  # what is imported is not counted

        assert peak_bytes(lambda words=words: run_cli(*words, terminal=True)) < PEAK_BYTES  # type: ignore[misc]


def test_a_pipe_and_full_show_the_whole_value(large_file: str) -> None:
    piped = run_cli("show", "large", "--store", large_file)
    full = run_cli("show", "large", "--full", "--store", large_file, terminal=True)

    assert len(piped.out) > 7_000_000
    assert len(full.out) > 7_000_000
