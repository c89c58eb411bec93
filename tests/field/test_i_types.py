"""Reports I: what serializers do to types, and what becomes of a thread whose types are gone."""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
import types
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import ormsgpack
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph

from agentctl.errors import Refused
from agentctl.experiments.replay import replay
from agentctl.testing import CliResult, build_thread, run_cli
from tests.support.copies import stock_saver
from tests.support.damage import Rows, postgres_rows, sqlite_rows
from tests.support.experiments import about_to_run, experiment_on
from tests.support.postgres import new_database

APP = "types_of_the_app"
SOURCE = """
import dataclasses, enum
from pydantic import BaseModel

class Colour(enum.Enum):
    RED = "red"

class Tone(enum.StrEnum):
    KIND = "kind"

class Order(BaseModel):
    id: str

@dataclasses.dataclass
class Plan:
    steps: list
"""


class State(TypedDict, total=False):
    order: Any
    tone: Any
    n: int


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of an application, importable from a file until a test takes it away."""
    (tmp_path / f"{APP}.py").write_text(SOURCE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(APP)
    sys.modules.pop(APP, None)


@pytest.fixture(params=["sqlite", "postgres"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rows]:
    """An empty store of either kind."""
    if request.param == "sqlite":
        with sqlite_rows(tmp_path) as found:
            yield found
    else:
        with new_database(request.getfixturevalue("postgres_url")) as url, postgres_rows(url) as found:
            yield found


def _graph(values: dict[str, object], state: Any = State) -> Any:
    graph = StateGraph(state)
    graph.add_node("fill", lambda _: values)
    graph.add_node("use", lambda _: {"n": 1})
    graph.add_edge(START, "fill").add_edge("fill", "use")
    return graph.compile()


def _run(rows: Rows, graph: Any, thread: str = "t", **config: Any) -> None:
    bound = graph.copy(update={"checkpointer": rows.saver})
    bound.invoke({"n": 0}, {"configurable": {"thread_id": thread, **config}}, durability="sync")


def _take_away(tmp_path: Path) -> None:
    (tmp_path / f"{APP}.py").write_text("raise SystemExit('the application was imported')\n", "utf-8")
    sys.modules.pop(APP, None)
    importlib.invalidate_caches()


def _cli(rows: Rows, *words: str) -> CliResult:
    return run_cli(*words, "--store", rows.url)


def test_i1_i2_looking_shows_the_type_and_its_data_and_imports_nothing(rows: Rows, app: Any, tmp_path: Path) -> None:
    _run(rows, _graph({"order": [app.Colour.RED, app.Order(id="o-1"), app.Plan(["a"])]}))
    _take_away(tmp_path)
    shown = _cli(rows, "show", "t", "--channel", "order", "--json").json["value"]
    assert shown == [
        {"$type": f"{APP}.Colour", "$value": "red"},
        {"$type": f"{APP}.Order", "id": "o-1"},
        {"$type": f"{APP}.Plan", "steps": ["a"]},
    ]
    target = str(tmp_path / "copy.sqlite")
    for words in (
        ("history", "t"),
        ("diff", "t@head~1", "t"),
        ("doctor", "t"),
        ("size", "t", "--by", "field"),
        ("copy", "t", "--to", target, "--only", "all"),
        ("export", "t", "--dataset", "d", "--check", "state n", "--output", str(tmp_path / "sets")),
    ):
        assert _cli(rows, *words).code == 0, words
    assert APP not in sys.modules


def test_i1_i5_a_replay_whose_types_are_gone_stops_before_anything_is_copied_or_run(app: Any, tmp_path: Path) -> None:
    ran: list[object] = []
    graph = _graph({"order": app.Plan(["a"])})
    build_thread(graph, tmp_path / "prod.sqlite", "t", {"n": 0})
    (tmp_path / f"{APP}.py").unlink()
    sys.modules.pop(APP)
    importlib.invalidate_caches()
    graph.nodes["use"].bound.func = ran.append
    with experiment_on(tmp_path / "prod.sqlite", graph, tmp_path / "debug.sqlite") as experiment:
        with pytest.raises(Refused, match=f"channel order of checkpoint .* holds {APP}.Plan, .*no module {APP}"):
            replay(experiment, about_to_run(experiment.source, "t", "use"))
        assert not experiment.debug.writer.heads()
    assert not ran


def test_i3_a_strenum_keeps_its_type_on_sqlite_and_a_replay_says_where_it_is_bare(
    rows: Rows, app: Any, tmp_path: Path
) -> None:
    class Declared(TypedDict, total=False):
        tone: Any
        n: int

    Declared.__annotations__ = {"tone": app.Tone, "n": int}
    graph = _graph({"tone": app.Tone.KIND}, Declared)
    _run(rows, graph)
    shown = _cli(rows, "show", "t", "--channel", "tone", "--json").json["value"]
    with experiment_on(rows.url, graph, tmp_path / "debug" / "i3.sqlite") as one:
        warnings = " ".join(replay(one, about_to_run(one.source, "t", "use")).plan.warnings)
    if rows.kind == "sqlite":
        assert (shown, warnings) == ({"$type": f"{APP}.Tone", "$value": "kind"}, "")
    else:
        assert (shown, "tone is declared as Tone and stored bare" in warnings) == ("kind", True)


def test_i4_a_copy_of_types_that_nobody_can_load_is_byte_equal_there_and_back(
    app: Any, tmp_path: Path, fresh_postgres_url: str
) -> None:
    prod, back = tmp_path / "prod.sqlite", tmp_path / "back.sqlite"
    build_thread(_graph({"order": {"deep": [app.Order(id="o-1"), app.Colour.RED]}}), prod, "t", {"n": 0})
    _take_away(tmp_path)
    assert run_cli("copy", "t", "--store", prod, "--to", fresh_postgres_url, "--only", "all", "--as", "c").code == 0
    assert run_cli("copy", "c", "--store", fresh_postgres_url, "--to", back, "--only", "all", "--as", "t").code == 0
    states = []
    for file in (prod, back):
        with closing(sqlite3.connect(file)) as database:
            states.append(database.execute("SELECT checkpoint_id, checkpoint FROM checkpoints ORDER BY 1").fetchall())
    (first, second) = ([(id, ormsgpack.unpackb(data, ext_hook=lambda *ext: ext)) for id, data in one] for one in states)
    assert first == second


def test_i6_keys_that_are_no_text_are_marked_in_json_and_in_what_is_exported(rows: Rows, tmp_path: Path) -> None:
    _run(rows, _graph({"order": {1: "a", (2, "x"): "b"}}))
    marked = {"$map": [[1, "a"], [{"$tuple": [2, "x"]}, "b"]]}
    assert _cli(rows, "show", "t", "--json").json["values"]["order"] == marked
    assert _cli(rows, "export", "t", "--dataset", "d", "--check", "state n", "--output", str(tmp_path)).code == 0
    (line,) = (tmp_path / "d" / "examples.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["outputs"]["state"]["order"] == marked


@pytest.mark.parametrize("value", [object(), types], ids=["i7 an object", "i8 a module"])
def test_i7_i8_the_thread_stays_before_a_value_that_cannot_be_stored_and_a_replay_names_it(
    value: object, tmp_path: Path
) -> None:
    graph = _graph({"order": value})
    with pytest.raises(TypeError):
        build_thread(graph, tmp_path / "prod.sqlite", "t", {"n": 0})
    (thread,) = run_cli("threads", "--store", tmp_path / "prod.sqlite", "--json").json["items"]
    newest = run_cli("history", "t", "--store", tmp_path / "prod.sqlite", "--json").json["items"][0]
    assert (thread["status"], newest["next"]) == ("pending", ["fill"])
    with experiment_on(tmp_path / "prod.sqlite", graph, tmp_path / "debug.sqlite") as experiment:
        (run,) = replay(experiment, about_to_run(experiment.source, "t", "fill")).group.runs
    assert run.status == "error"
    assert run.error == f"TypeError: Type is not msgpack serializable: {type(value).__name__}"


def test_i9_an_object_in_configurable_is_not_in_the_rows_and_is_not_missed_by_a_replay(tmp_path: Path) -> None:
    graph = _graph({})
    with stock_saver(str(tmp_path / "prod.sqlite")) as saver:
        _run(Rows("sqlite", str(tmp_path / "prod.sqlite"), saver), graph, user_id="u-1", client=object())
    with experiment_on(tmp_path / "prod.sqlite", graph, tmp_path / "debug.sqlite") as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "use"))
    assert report.plan.configurable == {"user_id": "u-1"}
    assert report.group.runs[0].status == "done"


def test_i10_metadata_of_old_versions_is_copied_with_its_writes(
    rows: Rows, tmp_path: Path, fresh_postgres_url: str
) -> None:
    _run(rows, _graph({}))
    writes = {"use": {"messages": [{"lc": 1, "type": "constructor", "id": ["langchain", "x"], "kwargs": {}}]}}
    for id in rows.ids("t"):
        rows.metadata("t", id, lambda metadata: metadata.update(writes=writes))
    for target in (str(tmp_path / "copy.sqlite"), fresh_postgres_url):
        assert _cli(rows, "copy", "t", "--to", target, "--only", "all", "--as", "c").code == 0
        shown = run_cli("show", "c", "--store", target, "--json").json["metadata"]
        assert shown["writes"] == writes


def test_i11_rows_in_json_build_nothing_and_a_lone_surrogate_is_named_before_a_copy_to_postgres(
    tmp_path: Path, fresh_postgres_url: str
) -> None:
    prod = tmp_path / "prod.sqlite"
    forged = {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": [f"touch {tmp_path / 'ran'}"]}
    document = {
        **empty_checkpoint(),
        "channel_values": {"note": "\ud800", "forged": forged},
        "channel_versions": {"note": "1", "forged": "1"},
    }
    with stock_saver(str(prod)), closing(sqlite3.connect(prod, isolation_level=None)) as database:
        row = ("t", "", document["id"], None, "json", json.dumps(document).encode(), b'{"source": "loop", "step": 1}')
        database.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    shown = run_cli("show", "t", "--store", prod, "--json").json["values"]
    assert shown["forged"]["$type"] == "os.system"
    assert shown["note"] == "\ud800"
    assert not (tmp_path / "ran").exists()
    assert run_cli("copy", "t", "--store", prod, "--to", fresh_postgres_url, "--as", "json").code == 0
    assert run_cli("show", "json", "--store", fresh_postgres_url, "--json").json["values"] == shown

    packed = tmp_path / "packed.sqlite"
    build_thread(_graph({"order": "xyz"}), packed, "t", {"n": 0})
    with closing(sqlite3.connect(packed, isolation_level=None)) as database:
        for id, data in database.execute("SELECT checkpoint_id, checkpoint FROM checkpoints").fetchall():
            new = data.replace(b"\xa3xyz", b"\xa3\xed\xa0\x80")
            database.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (new, id))
    refused = run_cli("copy", "t", "--store", packed, "--to", fresh_postgres_url, "--as", "packed")
    assert refused.code == 5
    assert "channel order" in refused.err
    assert run_cli("show", "packed", "--store", fresh_postgres_url).code == 3


def test_i12_a_damaged_value_is_named_and_the_other_checkpoints_are_listed(rows: Rows) -> None:
    _run(rows, _graph({"order": ["text"]}))
    middle = rows.ids("t")[2]
    rows.ruin("t", middle, "order")
    assert [item["id"] for item in _cli(rows, "history", "t", "--json").json["items"]] == rows.ids("t")[::-1]
    assert _cli(rows, "show", f"t@{middle}", "--json").json["unreadable"]["order"].startswith("the value is damaged")
    doctor = _cli(rows, "doctor", "t")
    assert (doctor.code, "value_unreadable" in doctor.out, middle in doctor.out) == (1, True, True)
    again = _cli(rows, "show", f"t@{middle}", "--channel", "order")
    assert again.code == 4


def test_i13_a_nul_in_a_plain_text_is_named_before_a_copy_to_postgres_and_kept_in_a_list(
    tmp_path: Path, fresh_postgres_url: str
) -> None:
    prod = tmp_path / "prod.sqlite"
    build_thread(_graph({"order": "a\x00b"}), prod, "plain", {"n": 0})
    build_thread(_graph({"order": ["a\x00b"]}), prod, "listed", {"n": 0})
    refused = run_cli("copy", "plain", "--store", prod, "--to", fresh_postgres_url, "--json")
    assert refused.code == 5
    assert "channel order: text with a NUL character" in refused.json["error"]["message"]
    assert run_cli("threads", "--store", fresh_postgres_url).out == ""
    assert run_cli("copy", "listed", "--store", prod, "--to", fresh_postgres_url, "--as", "listed").code == 0
    shown = run_cli("show", "listed", "--store", fresh_postgres_url, "--channel", "order", "--json")
    assert shown.json["value"] == ["a\x00b"]
