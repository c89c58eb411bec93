"""`agentctl tour`: what it makes, what it measures, and when its answer is no."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentctl.cli.tour import exit_code
from agentctl.cli.touring import example
from agentctl.cli.touring.walk import problem_of
from agentctl.records.runs import SideEffects
from agentctl.records.tour import Incident, TourReport
from agentctl.stores.fingerprint import differences, fingerprint
from agentctl.stores.postgres.reading_role import as_user, reading_role
from agentctl.testing import run_cli
from tests.support.small_project import write_project

COUNTED_ANEW = "globals()['called'] = True"
WRITES_WHILE_LOOKED_AT = """
if self.n_counted == 2:
    import sqlite3
    with sqlite3.connect('.agentctl/tour/prod.sqlite') as db:
        db.execute('DELETE FROM writes')
    db.close()
"""


def tour(folder: Path, *args: str, **options: Any) -> Any:
    return run_cli("tour", *args, cwd=folder, **options)


def test_a_tour_seeds_production_walks_its_incidents_and_ends_in_a_table(tmp_path: Path) -> None:
    done = tour(write_project(tmp_path), "--json")
    assert done.code == 0, done.out
    (item,) = done.json["items"]
    assert item == {
        "workflow": "greeter",
        "incident": "rude",
        "store": "prod",
        "n": 5,
        "n_failed": 5,
        "fork_n": 0,
        "fork_n_failed": None,
        "verdict": "inconclusive",
        "expected": "inconclusive",
        "escaped": 0,
        "problem": "",
    }
    assert (done.json["schema"], done.json["n_total"], done.json["truncated"]) == ("agentctl.tour/1", 1, False)
    assert (done.json["backoffice_unchanged"], done.json["store_unchanged"]) == (True, True)
    assert (tmp_path / ".agentctl" / "tour" / "prod.sqlite").is_file()
    assert sorted(path.name for path in (tmp_path / ".agentctl").iterdir()) == ["tour"]


def test_each_command_is_shown_as_it_is_typed_and_works_when_pasted(tmp_path: Path) -> None:
    done = tour(write_project(tmp_path))
    shown = [line.removeprefix("$ agentctl ") for line in done.err.splitlines() if line.startswith("$ agentctl ")]
    assert shown == [
        "threads prod:: --where user_id=u-1",
        "history prod::greeting",
        "diagnose prod::greeting --check 'reply contains no refund'",
    ]
    for command in shown[:2]:
        assert run_cli(*command.split(), cwd=tmp_path).code == 0
    assert 'told     "no refund is due"' in done.err


def test_on_a_terminal_the_table_and_what_to_type_next_are_the_answer(tmp_path: Path) -> None:
    done = tour(write_project(tmp_path), terminal=True)
    assert "5 of 5 fail" in done.out
    assert "agentctl show prod::greeting --messages" in done.out
    assert "production (prod): unchanged" in done.out


def test_a_tour_leaves_the_persons_own_debug_store_alone(tmp_path: Path) -> None:
    own = tmp_path / "own" / "debug.sqlite"
    tour(write_project(tmp_path), environ={"HOME": str(tmp_path), "AGENTCTL_DEBUG_STORE": str(own)})
    assert not own.exists()
    assert (tmp_path / ".agentctl" / "tour" / "debug.sqlite").is_file()


def test_a_second_tour_starts_anew(tmp_path: Path) -> None:
    write_project(tmp_path)
    first = tour(tmp_path, "--json")
    stray = tmp_path / ".agentctl" / "tour" / "prod.sqlite-wal"
    stray.write_bytes(b"of the database before")
    second = tour(tmp_path, "--json")
    assert second.json == first.json
    assert not stray.exists()


def test_where_seeding_fails_the_store_of_the_tour_before_stays(tmp_path: Path) -> None:
    tour(write_project(tmp_path))
    before = fingerprint(str(tmp_path / ".agentctl" / "tour" / "prod.sqlite"))
    write_project(tmp_path, before_seeding="raise RuntimeError('the back office burnt down')")
    done = tour(tmp_path)
    assert done.code == 6
    assert "the back office burnt down" in done.err
    assert fingerprint(str(tmp_path / ".agentctl" / "tour" / "prod.sqlite")) == before
    assert sorted(path.name for path in (tmp_path / ".agentctl").iterdir()) == ["tour"]


def test_another_verdict_than_the_expected_one_is_marked_and_exits_1(tmp_path: Path) -> None:
    done = tour(write_project(tmp_path, verdict="tool_data"), "--json")
    assert done.code == 1
    assert done.json["items"][0]["problem"] == "the verdict is inconclusive, not tool_data"


def test_a_back_office_that_was_called_meanwhile_exits_1(tmp_path: Path) -> None:
    done = tour(write_project(tmp_path, when_counted=COUNTED_ANEW), "--json")
    assert (done.code, done.json["backoffice_unchanged"]) == (1, False)


def test_a_production_store_that_was_written_meanwhile_exits_1_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_project(tmp_path, when_counted=WRITES_WHILE_LOOKED_AT))
    done = tour(tmp_path, "--json")
    assert (done.code, done.json["store_unchanged"]) == (1, False)
    assert "prod.sqlite" in done.json["changed"]


@pytest.mark.parametrize(
    ("escaped", "changed", "unchanged", "code"),
    [(0, (), True, 0), (1, (), True, 5), (0, ("public.checkpoints",), True, 1), (0, (), False, 1)],
)
def test_the_exit_code_is_an_alarm_where_anything_escaped(
    escaped: int, changed: tuple[str, ...], unchanged: bool, code: int
) -> None:
    effects = SideEffects(escaped=escaped)
    assert exit_code(TourReport("prod", (), effects, unchanged, changed, ())) == code


def test_a_workflow_without_incidents_is_refused_by_name(tmp_path: Path) -> None:
    done = tour(write_project(tmp_path), "--workflow", "greater")
    assert done.code == 2
    assert "did you mean greeter?" in done.err


def test_only_postgres_can_be_seeded_instead(tmp_path: Path) -> None:
    done = tour(write_project(tmp_path), "--store", "elsewhere.sqlite")
    assert done.code == 2
    assert "postgresql://" in done.err
    assert not (tmp_path / "elsewhere.sqlite").exists()


def test_a_tour_of_postgres_seeds_it_and_looks_as_a_role_that_may_only_select(
    tmp_path: Path, fresh_postgres_url: str
) -> None:
    done = tour(write_project(tmp_path), "--store", fresh_postgres_url, "--json")
    assert done.code == 0, done.out
    assert (done.json["items"][0]["n_failed"], done.json["store_unchanged"]) == (5, True)
    assert done.json["warnings"] == []
    assert done.json["commands"][:2] == [
        f"export AGENTCTL_STORE='{fresh_postgres_url}'",
        "agentctl threads --where user_id=u-1",
    ]
    seen = [path.read_text(encoding="utf-8") for path in (tmp_path / ".agentctl").rglob("*.json")]
    assert any("agentctl_reader_" in text for text in seen)
    assert not (tmp_path / ".agentctl" / "tour" / "prod.sqlite").exists()


def test_a_postgres_database_that_holds_such_a_thread_is_refused_and_left_as_it_is(
    tmp_path: Path, fresh_postgres_url: str
) -> None:
    tour(write_project(tmp_path), "--store", fresh_postgres_url)
    before = fingerprint(fresh_postgres_url)
    done = tour(tmp_path, "--store", fresh_postgres_url)
    assert done.code == 5
    assert "holds thread greeting already" in done.err
    assert fingerprint(fresh_postgres_url) == before


def test_where_no_role_can_be_made_the_tour_says_so_and_goes_on(
    tmp_path: Path, fresh_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.stores.postgres.reading_role._is_let_in", lambda url: False)
    done = tour(write_project(tmp_path), "--store", fresh_postgres_url, "--json")
    assert done.code == 0, done.out
    (warning,) = done.json["warnings"]
    assert "looked as the user of --store" in warning


def test_without_the_workflows_extra_the_tour_says_which_packages_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = ["langgraph; extra == 'workflows'", "no-such-package; extra == 'workflows'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: needs)
    done = tour(tmp_path, "--json")
    assert (done.code, done.json["error"]["kind"]) == (4, "extra")
    assert done.json["error"]["message"].endswith("workflows: no_such_package not installed")
    assert done.json["error"]["hint"] == "pip install 'langgraph-agentctl[workflows]'"
    assert list(tmp_path.iterdir()) == []


def test_the_example_is_laid_out_whole_and_once(tmp_path: Path) -> None:
    written = example.lay_out(tmp_path)
    assert {"agentctl.yaml", "langgraph.json", "graphs/support_refunds/graph.py"} <= set(written)
    assert not [name for name in written if "__pycache__" in name]
    assert example.lay_out(tmp_path) == ()


def test_a_file_of_somebody_else_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "langgraph.json").write_text("{}", encoding="utf-8")
    done = tour(tmp_path, "--dir", ".")
    assert done.code == 5
    assert "langgraph.json" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["langgraph.json"]


def test_a_diagnosis_is_held_to_the_call_and_the_fields_it_must_name() -> None:
    incident = Incident("", "", "", "", "", "", (), {"verdict": "tool_data", "call": "look", "fields": ["a"]})
    document: dict[str, Any] = {
        "verdict": "tool_data",
        "cause": {"substituted": [{"call": {"name": "look"}}], "fields": ["a"]},
        "side_effects": {"escaped": 0},
    }
    assert problem_of(incident, document) == ""
    other = {**document, "cause": {"substituted": [{"call": {"name": "other"}}], "fields": ["a"]}}
    assert problem_of(incident, other) == "look is not named"
    fields = {**document, "cause": {**document["cause"], "fields": ["b"]}}
    assert problem_of(incident, fields) == "the fields are b, not a"
    assert problem_of(incident, {**document, "side_effects": {"escaped": 2}}) == "2 tool calls ran for real"


def test_a_fingerprint_sees_changed_bytes_and_new_files_beside_a_database(tmp_path: Path) -> None:
    file = tmp_path / "prod.sqlite"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    before = fingerprint(str(file))
    assert differences(before, fingerprint(str(file))) == ()
    (tmp_path / "prod.sqlite-journal").touch()
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE u (x)")
    db.close()
    assert "prod.sqlite" in differences(before, fingerprint(str(file)))


def test_a_fingerprint_of_postgres_sees_a_changed_row_and_a_new_table(fresh_postgres_url: str) -> None:
    with psycopg.connect(fresh_postgres_url, autocommit=True) as db:
        db.execute("CREATE TABLE t (x int, y bytea)")
        db.execute("INSERT INTO t VALUES (1, NULL), (2, '\\x00')")
        before = fingerprint(fresh_postgres_url)
        assert list(before) == ["public.t"]
        db.execute("UPDATE t SET x = 3 WHERE x = 2")
        db.execute("CREATE TABLE u (x int)")
    assert differences(before, fingerprint(fresh_postgres_url)) == ("public.t", "public.u")


def test_the_reading_role_may_select_and_nothing_else_and_is_gone_afterwards(fresh_postgres_url: str) -> None:
    with psycopg.connect(fresh_postgres_url, autocommit=True) as owner:
        owner.execute("CREATE TABLE t (x int)")
        with reading_role(fresh_postgres_url) as url:
            assert url is not None
            with psycopg.connect(url, autocommit=True) as reader:
                (name,) = reader.execute("SELECT current_user").fetchone() or ("",)
                assert reader.execute("SELECT x FROM t").fetchall() == []
                for statement in ("INSERT INTO t VALUES (1)", "DELETE FROM t", "CREATE TABLE u (x int)"):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        reader.execute(statement)
        assert owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchall() == []


def test_who_may_not_make_roles_looks_as_themselves(fresh_postgres_url: str) -> None:
    with reading_role(fresh_postgres_url) as limited:
        assert limited is not None
        with reading_role(limited) as none:
            assert none is None


@pytest.mark.parametrize(
    ("url", "as_reader"),
    [
        ("postgresql://me:pw@db:5432/prod?sslmode=require", "postgresql://r:s%2F@db:5432/prod?sslmode=require"),
        ("postgresql://db/prod", "postgresql://r:s%2F@db/prod"),
        ("postgresql:///prod?host=/run/pg&user=me", "postgresql://r:s%2F@/prod?host=%2Frun%2Fpg"),
    ],
)
def test_a_url_keeps_everything_but_its_user(url: str, as_reader: str) -> None:
    assert as_user(url, "r", "s/") == as_reader
