"""Values that cannot be read, encrypted or pickled: no command takes them for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph

from agentctl.testing import CliResult, run_cli
from tests.support.damage import Rows, postgres_rows, sqlite_rows
from tests.support.postgres import new_database

KEY = "0123456789abcdef"


class State(TypedDict, total=False):
    secret: Any
    n: int


def _graph() -> Any:
    graph = StateGraph(State)
    graph.add_node("first", lambda state: {"secret": [1, complex(1, 2)]})
    graph.add_node("second", lambda state: {"secret": [2, complex(1, 2)], "n": 2})
    graph.add_edge(START, "first").add_edge("first", "second")
    return graph.compile()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    """Threads `encrypted`, `mixed` and `pickled` in a store."""
    if request.param == "sqlite":
        with sqlite_rows(tmp_path_factory.mktemp("unreadable")) as found:
            yield _filled(found)
    else:
        with new_database(request.getfixturevalue("postgres_url")) as url, postgres_rows(url) as found:
            yield _filled(found)


def _filled(rows: Rows) -> Rows:
    pytest.importorskip("Crypto")
    plain = JsonPlusSerializer(pickle_fallback=True)
    sealed = EncryptedSerializer.from_pycryptodome_aes(plain, key=KEY.encode())
    for thread, first, second in (
        ("encrypted", sealed, sealed),
        ("mixed", plain, sealed),
        ("pickled", plain, plain),
    ):
        graph = _graph().copy(update={"checkpointer": rows.saver})
        config: Any = {"configurable": {"thread_id": thread}}
        for serde, value, until in ((first, {"n": 1}, ["second"]), (second, None, None)):
            rows.saver.serde = serde
            graph.invoke(value, config, interrupt_before=until, durability="sync")
    return rows


def _cli(rows: Rows, *words: str) -> CliResult:
    return run_cli(*words, "--store", rows.url)


@pytest.mark.parametrize("thread", ["encrypted", "pickled"])
def test_what_cannot_be_read_is_never_told_to_be_equal_exported_or_shown_as_nothing(
    rows: Rows, thread: str, tmp_path: Path
) -> None:
    assert [item["next"] for item in _cli(rows, "history", thread, "--json").json["items"]][:2] == [[], ["second"]]
    why = {"encrypted": "LANGGRAPH_AES_KEY is not set", "pickled": "pickle"}[thread]
    diff = _cli(rows, "diff", f"{thread}@head~1", thread, "--exit-code")
    assert diff.code in (1, 4)
    assert why in diff.out + diff.err
    shown = _cli(rows, "show", thread, "--channel", "secret")
    assert (shown.code, why in shown.err) == (4, True)
    exported = _cli(rows, "export", thread, "--dataset", "d", "--check", "state n", "--output", str(tmp_path))
    assert (exported.code in (4, 5), why in exported.err) == (True, True)  # refused where only values are unreadable
    assert list(tmp_path.iterdir()) == []
    assert _cli(rows, "size", thread).code == 0


def test_a_thread_that_is_partly_encrypted_shows_what_is_not(rows: Rows) -> None:
    found = _cli(rows, "doctor", "mixed")
    assert (found.code, "encryption_mixed" in found.out) == (1, True)
    assert _cli(rows, "history", "mixed").code == 0


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("thread", ["encrypted", "mixed", "pickled"])
def test_a_copy_is_byte_equal_in_the_same_kind_of_store_and_refused_in_the_other(
    rows: Rows,
    thread: str,
    key: str | None,
    tmp_path: Path,
    fresh_postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if key is not None:
        monkeypatch.setenv("LANGGRAPH_AES_KEY", key)
    other_is_postgres = rows.kind == "sqlite"
    same, other = str(tmp_path / "copy.sqlite"), fresh_postgres_url
    if not other_is_postgres:
        same, other = other, same
    words = ("copy", thread, "--only", "all", "--as", "copy", "--to")
    assert _cli(rows, *words, same, "--json").json["verified"] is True
    refused = _cli(rows, *words, other)
    assert refused.code == 5
    assert "checkpoint 1f" in refused.err
    listed = run_cli("threads", "--store", other)
    assert listed.out == ""


def test_with_the_key_everything_but_pickles_is_read(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_AES_KEY", KEY)
    shown = _cli(rows, "show", "encrypted@head~2", "--json").json
    assert shown["values"] == {"n": 1}
