"""Reports M: secrets, encrypted rows, rows that somebody forged, and taking a person's data away."""

from __future__ import annotations

import json
import os
import sys
import threading
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langsmith.utils import tracing_is_enabled

from agentctl.codec.secrets import is_secret_name
from agentctl.records.copies import Place
from agentctl.records.runs import Plan
from agentctl.render.run_documents import plan_object
from agentctl.render.runs import plan_lines
from agentctl.sandbox.environment import environment
from agentctl.testing import CliResult, build_thread, run_cli
from tests.support.damage import Rows
from tests.support.stored import rows_naming

_KEY = "0123456789abcdef"
_MARKER = "the-person-to-forget"
_LOOKING = (("history",), ("show",), ("show", "--messages"), ("doctor",), ("size",), ("diff",))
_CONFIGURABLE = {"user_id": "u-7", "password": "hunter2", "llm": {"openaiApiKey": "k-123", "region": "eu"}}


def test_m3_a_plan_hides_the_secrets_of_the_recorded_configuration() -> None:
    plan = Plan(Place("db", "t", "c"), ("tools",), (), (), _CONFIGURABLE, "none found", False, "app.py:graph")

    for shown in ("\n".join(plan_lines(plan, "replay")), json.dumps(plan_object(plan))):
        assert "u-7" in shown and "eu" in shown
        assert "hunter2" not in shown and "k-123" not in shown


@pytest.mark.parametrize(
    "name", ["api_key", "OPENAI_API_KEY", "openaiApiKey", "accessToken", "auth-token", "db.password"]
)
def test_names_of_secrets_are_known_however_they_are_spelled(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["author", "passenger", "key", "secretary_name"])
def test_ordinary_names_are_not_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_m3_prompts_stay_out_of_langsmith_also_in_threads_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("AGENTCTL_ENV", "production")
    seen: list[tuple[object, str | None]] = []
    with environment({}):
        thread = threading.Thread(target=lambda: seen.append((tracing_is_enabled(), os.environ.get("AGENTCTL_ENV"))))
        thread.start()
        thread.join()

    assert seen == [(False, None)]
    assert os.environ["LANGSMITH_TRACING"] == "true"


def test_m3_a_dataset_and_a_case_hold_no_secret_of_the_configuration(tmp_path: Path) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [("ai", "hello")]})
    graph.add_edge(START, "agent")
    file = tmp_path / "prod.sqlite"
    secret = {"user_id": "u-7", "api_key": "hunter2", "endpoint": "https://app:hunter2@example.org"}
    build_thread(graph.compile(), file, "t", {"messages": [("human", "hi")]}, metadata=secret)
    (tmp_path / "app.py").write_text(
        "from langgraph.graph import START, MessagesState, StateGraph\n"
        "graph = StateGraph(MessagesState).add_node('agent', lambda state: {}).add_edge(START, 'agent').compile()\n"
    )

    places = ("--store", file, "--debug-store", tmp_path / "debug" / "debug.sqlite")
    replayed = run_cli("replay", "t@before:agent", *places, "--graph", "app.py:graph", cwd=tmp_path, environ={})
    exported = run_cli(
        "export", "t", *places, "--dataset", "d", "--check", "reply contains x", cwd=tmp_path, environ={}
    )

    assert (replayed.code, exported.code) == (0, 0), (replayed.err, exported.err)
    kept = [path for path in tmp_path.rglob("*") if path.suffix in (".json", ".jsonl")]
    assert {path.name for path in kept} >= {"case.json", "examples.jsonl", "001-replay.json"}
    assert [path for path in kept if "hunter2" in path.read_text()] == []
    assert '"user_id": "u-7"' in (tmp_path / "datasets" / "d" / "examples.jsonl").read_text()


def _cli(rows: Rows, *words: object) -> CliResult:
    return run_cli(*map(str, words), "--store", rows.url, environ={})


def _encrypted(rows: Rows) -> Rows:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=_KEY.encode())
    saver: Any = type(rows.saver)(conn=rows.saver.conn, serde=serde)  # type: ignore[call-arg,attr-defined]
    return Rows(rows.kind, rows.url, saver)


def test_m1_doctor_tells_of_a_thread_with_encrypted_and_plain_rows(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.run("linear", "mixed")
    _encrypted(rows).run("linear", "mixed")
    _encrypted(rows).run("linear", "sealed")

    for _ in ("without the key", "with it"):
        found = _cli(rows, "doctor", "mixed")
        assert (found.code, "encryption_mixed" in [row[1] for row in found.rows]) == (1, True), found.out
        assert "encryption_mixed" not in _cli(rows, "doctor", "sealed").out
        monkeypatch.setenv("LANGGRAPH_AES_KEY", _KEY)


def test_m2_encrypted_rows_are_copied_byte_for_byte_and_need_the_same_key_to_be_seen(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    _encrypted(rows).run("linear", "locked")
    copied = _cli(rows, "copy", "locked", "--to", rows.url, "--as", "locked copy")

    assert copied.code == 0, copied.err
    query = "SELECT checkpoint_id, idx, type, {value} FROM {writes} WHERE thread_id = ? ORDER BY 1, 2, 4"
    assert rows.sql(query, "locked copy") == rows.sql(query, "locked") != []
    show = ("show", "locked copy", "--channel", "log")
    locked = _cli(rows, *show)
    monkeypatch.setenv("LANGGRAPH_AES_KEY", _KEY)
    opened = _cli(rows, *show)
    assert "LANGGRAPH_AES_KEY" in locked.out + locked.err
    assert "collect" not in locked.out and "collect" in opened.out


def test_m3_metadata_that_looks_like_a_secret_is_told_and_never_shown(rows: Rows) -> None:
    rows.run("linear", "leaking")
    for id in rows.ids("leaking"):
        rows.metadata("leaking", id, lambda found: found.update(openai_api_key="hunter2", user_email="a@example.org"))

    found = _cli(rows, "doctor", "leaking")
    assert (found.code, "metadata_secret" in [row[1] for row in found.rows]) == (1, True)
    for words in (("history", "--json"), ("show", "--json"), ("threads", "--json"), ("doctor", "--json")):
        verb, *rest = words
        shown = _cli(rows, verb, *([] if verb == "threads" else ["leaking"]), *rest)
        assert "hunter2" not in shown.out + shown.err


def test_m4_a_deleted_thread_leaves_no_trace_in_any_table(rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "agentctl.yaml").write_text(f"profiles: {{ours: {{store: '{rows.url}', access: write}}}}")
    rows.run("linear", _MARKER)
    rows.run("linear", "another person")
    assert sum(rows_naming(rows.url, _MARKER).values()) > 0
    done = run_cli("prune", f"ours::{_MARKER}", "--delete", "--apply", cwd=tmp_path, environ={})

    assert done.code == 0, done.err
    assert sum(rows_naming(rows.url, _MARKER).values()) == 0
    assert len(rows.ids("another person")) > 0


@pytest.mark.parametrize(
    "condition", ["a' OR 1=1 --=x", "a=x' OR '1'='1", 'a") OR 1=1; DROP TABLE checkpoints; --=x', "$.a=x"]
)
def test_m5_keys_and_values_of_filters_are_never_part_of_a_statement(rows: Rows, condition: str) -> None:
    rows.run("linear", "kept")
    for words in (
        ("threads", "--where", condition),
        ("threads", "--grep", condition),
        ("history", condition, "--literal"),
        ("show", "kept", "--ns", condition),
    ):
        done = _cli(rows, *words)
        assert done.code in (0, 2, 3), done.err
        assert done.out == ""
    assert len(rows.ids("kept")) > 0


@pytest.mark.parametrize("strict", ["", "true"], ids=["", "strict mode"])
def test_m6_m8_a_forged_row_names_code_that_is_neither_imported_nor_run(
    rows: Rows, strict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "forged_row.py").write_text(
        f"open({str(tmp_path / 'imported')!r}, 'w')\ndef call(text): open(text, 'w')"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    called = msgpack.ExtType(0, msgpack.packb(["forged_row", "call", str(tmp_path / "called")]))
    thread = f"forged {strict}"
    rows.run("linear", thread)
    rows.sql("UPDATE {writes} SET type = 'msgpack', {value} = ? WHERE thread_id = ?", msgpack.packb(called), thread)

    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", strict)
    for verb, *words in _LOOKING:
        target = f"{thread}@root" if verb == "diff" else thread
        done = _cli(rows, verb, target, *words, *([thread] if verb == "diff" else []))
        assert done.code in (0, 1), done.err
    assert "forged_row.call" in _cli(rows, "show", f"{thread}@root", "--json").out
    assert [path.name for path in tmp_path.iterdir()] == ["forged_row.py"]
    assert "forged_row" not in sys.modules


def test_m7_versions_with_known_holes_cannot_be_installed_beside_agentctl() -> None:
    from packaging.requirements import Requirement

    wanted = {one.name: one.specifier for one in map(Requirement, requires("langgraph-agentctl") or ())}

    for name, holed in (
        ("langgraph", "1.0.9"),
        ("langgraph-checkpoint", "4.0.0"),
        ("langgraph-checkpoint-sqlite", "3.0.0"),
        ("langgraph-checkpoint-postgres", "3.0.0"),
    ):
        assert not wanted[name].contains(holed)
