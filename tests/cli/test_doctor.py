"""`agentctl doctor`."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.upkeep.doctor.codes import CODES
from tests.support.cli import AGENT, ASKING, EDITED, FAILED, Cli, write_project
from tests.support.damage import Rows
from tests.support.damaging import DAMAGES

DOCS = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"


@pytest.fixture
def hurt(tmp_path: Path, prod: Path) -> Iterator[Cli]:
    """The project on a copy of its store in which a result of the agent's thread is gone."""
    (tmp_path / "hurt").mkdir()
    copy = Path(shutil.copy(prod, tmp_path / "hurt" / "prod.sqlite"))
    with SqliteSaver.from_conn_string(str(copy)) as saver:
        rows = Rows("sqlite", str(copy), saver)
        rows.value(AGENT, rows.ids(AGENT)[-1], "messages", _without_the_policy)
    yield write_project(tmp_path, copy)


def _without_the_policy(found: list[Any]) -> list[Any]:
    return [message for message in found if getattr(message, "name", None) != "get_policy"]


def test_a_thread_in_order_is_said_to_be(cli: Cli) -> None:
    found = cli("doctor", AGENT, terminal=True)

    assert (found.code, found.out) == (0, "1 thread looked at: nothing found\n")


def test_a_store_is_looked_at_thread_by_thread(cli: Cli) -> None:
    found = cli("doctor", "--all", terminal=True)

    assert found.code == 0
    assert (
        cli.named(found.out, EDITED)
        == f"""\
{FAILED}  3 checkpoints  1 warning
warning  task_failed  {_id(found.out, "task_failed")}
         bureau raised ValueError('the bureau did not answer')
         agentctl replay prod::{FAILED}@{_id(found.out, "task_failed")}

{ASKING}  3 checkpoints  1 info
info     interrupt_pending  {_id(found.out, "interrupt_pending")}
         a question of HumanInTheLoopMiddleware.after_model has waited for 3
         hours
         agentctl resume prod::{ASKING} --value '"ANSWER"'

{EDITED}  9 checkpoints  1 warning, 1 info
warning  head_edited  id-00008
         it descends from the edit id-00005; the last head without one is
         id-00004
         agentctl history prod::{EDITED} --branch id-00004
info     several_heads  id-00008
         2 branches; the head is id-00008
         agentctl history prod::{EDITED}

4 threads looked at: 2 warnings, 2 infos
"""
    )


def _id(text: str, code: str) -> str:
    match = re.search(rf"{code}  (\S+)", text)
    assert match
    return match[1]


def test_a_fault_is_exit_1_in_every_form(hurt: Cli) -> None:
    on_terminal = hurt("doctor", AGENT, terminal=True, width=200)
    in_pipe = hurt("doctor", AGENT)
    as_json = hurt("doctor", AGENT, "--json")

    assert (on_terminal.code, in_pipe.code, as_json.code) == (1, 1, 1)
    assert f"{AGENT}  5 checkpoints  1 fault" in on_terminal.out
    assert "1 thread looked at: 1 fault\n" in on_terminal.out
    head = hurt.ids(AGENT)[0]
    cause = "get_policy (p1) has no result, and an ai message came after it"
    command = f"agentctl fork 'prod::{AGENT}@{head}' --answer 'p1=\"no result: the run was stopped\"' --no-run"
    assert in_pipe.rows == [["fault", "call_unanswered", AGENT, "", head, "1", cause, command]]
    document = as_json.json
    assert document["items"] == [
        {
            "code": "call_unanswered", "severity": "fault", "thread": AGENT, "ns": "", "checkpoint": head,
            "cause": cause, "command": command, "n_found": 1,
        }
    ]  # fmt: skip
    assert [document[key] for key in ("schema", "n_total", "n_threads", "n_faults", "n_warnings", "n_infos")] == [
        "agentctl.doctor/1", 1, 1, 1, 0, 0,
    ]  # fmt: skip


def test_the_command_of_an_unanswered_call_answers_it_on_a_copy(hurt: Cli) -> None:
    (row,) = hurt("doctor", AGENT).rows
    done = hurt(*shlex.split(row[-1])[1:])

    assert done.code == 0, done.err
    forked = hurt("show", f"debug::{AGENT}.fork-1", "--call", "p1", "--json").json
    assert "no result: the run was stopped" in str(forked)
    assert hurt("doctor", "--all", "debug::").code == 0


@pytest.mark.parametrize("code", [code for code, damage in DAMAGES.items() if damage.only != "postgres"])
def test_every_command_that_is_printed_can_be_pasted(code: str, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "damaged.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        DAMAGES[code].do(Rows("sqlite", str(path), saver), "my thread")
    found = cli("doctor", "my thread", "--store", path, "--json").json["items"]
    assert code in {item["code"] for item in found}
    for item in found:
        name, *words = shlex.split(item["command"].removeprefix("LANGGRAPH_AES_KEY=KEY "))
        assert (name, words[1:3]) == ("agentctl", ["--store", str(path)])
        if words[0] not in ("replay", "fork", "resume"):
            done = cli(*words)
            assert done.code == (1 if words[0] == "doctor" else 0) or item["code"] in UNSHOWN, (item, done.err)


UNSHOWN = {"row_unreadable", "rows_unreadable", "value_unreadable", "key_missing", "id_invalid"}
"""What cannot be read cannot be shown either: the command says so, with another exit code."""


def test_one_level_hides_what_is_less_bad(cli: Cli) -> None:
    found = cli("doctor", "--all", "--level", "warning", terminal=True)

    assert "interrupt_pending" not in found.out
    assert found.out.endswith("4 threads looked at: 2 warnings, 2 infos\ndown to warning shown; all: --level info\n")
    document = cli("doctor", "--all", "--level", "fault", "--json").json
    assert (document["items"], document["n_total"], document["truncated"]) == ([], 4, True)


def test_a_limit_is_said(cli: Cli) -> None:
    found = cli("doctor", "--all", "--limit", "2")

    assert {row[2] for row in found.rows} == {FAILED, ASKING}
    assert found.err == "2 of 4 threads looked at; all: --limit 0\n"
    assert cli("doctor", "--all", "--limit", "2", "--json").json["truncated"] is True


def test_a_question_that_waits_too_long_is_exit_1(cli: Cli) -> None:
    assert cli("doctor", ASKING, "--older-than", "2h").code == 1
    assert cli("doctor", ASKING, "--older-than", "4h").code == 0


def test_a_graph_is_loaded_only_where_it_is_asked_for(cli: Cli) -> None:
    asking = cli("doctor", ASKING, "--graph", "refunds")
    failed = cli("doctor", FAILED, "--graph", "refunds")

    assert [row[1] for row in asking.rows] == ["resume_plan", "interrupt_pending"]
    assert asking.rows[0][6] == "a resume would run HumanInTheLoopMiddleware.after_model"
    assert failed.code == 1
    assert [row[1] for row in failed.rows] == ["node_gone", "channel_gone", "task_failed"]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ([], 2, "doctor takes a thread, or --all"),
        (["prod::"], 2, "doctor takes a thread, or --all"),
        (["--all", AGENT], 2, f"--all is every thread of a store, not of {AGENT}"),
        ([f"{EDITED}@head"], 2, f"doctor looks at whole threads, not at {EDITED}@head"),
        ([EDITED, "--level", "bad"], 2, "no level bad"),
        ([EDITED, "--older-than", "soon"], 2, "'soon' is not an age"),
        (["support-99"], 3, "there is no thread support-99"),
        (["--all", "staging::"], 4, "no such file"),
        ([EDITED, "--graph", "nothing.py:graph"], 3, "nothing.py"),
    ],
)
def test_what_cannot_be_looked_at_is_an_error(cli: Cli, args: list[str], code: int, message: str) -> None:
    found = cli("doctor", *args)

    assert found.code == code
    assert message in found.err


def test_a_saver_is_looked_at_as_far_as_it_tells(cli: Cli, prod: Path) -> None:
    (cli.cwd / "stores.py").write_text(
        "from langgraph.checkpoint.sqlite import SqliteSaver\n\n"
        f"def production():\n    return SqliteSaver.from_conn_string({str(prod)!r})\n"
    )
    found = cli("doctor", "--all", "--store", "stores.py:production", "--json").json

    assert {item["code"] for item in found["items"]} == {
        "task_failed", "interrupt_pending", "head_edited", "several_heads",
    }  # fmt: skip
    assert found["notes"][0].startswith("a saver cannot tell of its rows")


def test_the_page_has_every_code_with_its_severity_and_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", DOCS.read_text("utf-8"), re.MULTILINE)

    assert rows == [(code.name, code.severity, code.meaning) for code in CODES.values()]
