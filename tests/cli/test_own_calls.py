"""The commands on a thread whose nodes call tools by themselves: find a call, look at it, change it, get a verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.catalog import CATALOG, run_case
from tests.catalog import owncalls as app
from tests.support.cli import Cli

THREAD = "app-7F3K"
DECLINED = "state starts_with(decision, 'decline')"
BUREAU = ("pull_bureau", "bureau_pull:1")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lending") / "prod.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        run_case(CATALOG["own calls"], saver, THREAD)
    app.WORLD.clear()
    return path


@pytest.fixture
def lending(tmp_path: Path, store: Path) -> Iterator[Cli]:
    """A project without sandbox tools: what the recording does not answer is blocked."""
    (tmp_path / "lending.py").write_text(
        "from tests.catalog.owncalls import lender, underwriting\n\ngraph = underwriting(None, lender())\n", "utf-8"
    )
    config = {
        "profiles": {"prod": {"store": str(store), "default": True}},
        "debug_store": "debug/debug.sqlite",
        "workflows": {"loans": {"graph": "lending.py:graph"}},
    }
    (tmp_path / "debug").mkdir()
    (tmp_path / "agentctl.yaml").write_text(yaml.safe_dump(config), "utf-8")
    yield Cli(tmp_path, store)
    assert not app.WORLD


def test_a_revision_names_the_checkpoint_whose_step_made_the_call(lending: Cli) -> None:
    done = lending("resolve", f"{THREAD}@call:bureau_pull:1", "--json").json
    assert done["why"] == "whose step made call bureau_pull:1 of pull_bureau"
    assert lending("show", f"{THREAD}@{done['id']}", "--json").json["next"] == ["bureau", "income"]


def test_show_gives_arguments_and_result_verbatim_from_any_namespace(lending: Cli) -> None:
    bureau = lending("show", THREAD, "--call", "pull_bureau", "--json").json
    assert (bureau["args"], bureau["result"]["content"]) == ({"person": "p-1"}, '{"score": 512, "file": "f-1"}')
    assert (
        lending("show", THREAD, "--call", "pull_bureau", terminal=True)
        .out.splitlines()[1]
        .startswith("made     prod::")
    )
    payroll = lending("show", THREAD, "--call", "match_payroll", "--json").json
    assert payroll["ns"].startswith("income:")
    assert payroll["args"] == {"monthly": 900}


def test_a_fork_by_the_calls_name_runs_its_node_alone_and_says_so_beforehand(lending: Cli) -> None:
    done = lending("fork", THREAD, "--patch", "pull_bureau:score=720", "--check", DECLINED, terminal=True, width=160)
    assert done.code == 0, done.err
    plan = done.err.splitlines()
    assert plan[0].endswith("from here on these run: bureau")
    assert "  tools from answered, else recorded, else blocked: pull_bureau" in plan
    others = "read_document, check_sanctions, fetch_statements, match_payroll"
    assert f"  tools from recorded, else blocked: {others}" in plan
    out = lending.named(done.out, THREAD).splitlines()
    answers = next(line for line in out if line.startswith("answers"))
    assert answers.startswith(
        "answers  pull_bureau (bureau_pull:1): score 512 -> 720; check_sanctions (sanctions:1) as re"
    )
    assert any("as bureau -> bureau" in line for line in out)
    assert any(line.startswith("runs     0 of 1 fail") for line in out)


def test_the_document_of_a_fork_says_who_asks_and_what_is_answered(lending: Cli) -> None:
    document = lending("fork", THREAD, "--patch", "pull_bureau:score=720", "--json").json
    assert (document["as_node"], document["next"]) == ("bureau", ["bureau"])
    assert [(one["id"], one["how"]) for one in document["answered"][:2]] == [
        ("bureau_pull:1", "substituted"),
        ("sanctions:1", "recorded"),
    ]
    assert document["answered"][0]["fields"] == [{"path": "score", "left": 512, "right": 720}]
    assert document["runs"][0]["nodes"] == ["bureau", "score"]
    assert document["side_effects"] == {"recorded": 2, "stubbed": 0, "live": 0, "blocked": 0, "escaped": 0}


def test_the_kth_of_several_sends(lending: Cli) -> None:
    several = lending("fork", THREAD, "--patch", "read_document:amount=1", "--json")
    assert (several.code, [one["call_id"] for one in several.json["error"]["candidates"]]) == (
        3,
        ["read_document:pay-1", "read_document:pay-2", "read_document:bank-1"],
    )
    second = several.json["error"]["candidates"][1]["revision"]
    done = lending("fork", f"{THREAD}@{second}", "--patch", "read_document:amount=1", "--json").json
    assert [one["id"] for one in done["answered"] if one["how"] == "substituted"] == ["read_document:pay-2"]
    assert done["runs"][0]["nodes"].count("read") == 1


def test_a_verdict_names_the_call_and_its_field(lending: Cli) -> None:
    command = ("diagnose", THREAD, "--check", DECLINED, "--patch", "pull_bureau:score=720", "-n", "4", "--json")
    document = lending(*command).json
    assert document["verdict"] == "tool_data"
    assert (document["replays"]["n_failed"], document["forks"][0]["n_failed"]) == (4, 0)
    assert document["cause"]["substituted"][0]["call"] == dict(zip(("name", "id"), BUREAU, strict=True))
    assert document["cause"]["fields"] == ["score"]
    assert (document["side_effects"]["blocked"], document["side_effects"]["escaped"]) == (0, 0)
    diff = document["forks"][0]["diff"]
    assert [one["changes"] for one in diff["messages"]] == [[{"path": "content.score", "left": 512, "right": 720}]]
    assert [one["path"] for one in diff["state"]] == ["bureau.score", "decision"]


def test_a_verdict_on_a_call_inside_a_subgraph(lending: Cli) -> None:
    command = (
        "diagnose",
        THREAD,
        "--check",
        "state income.matches",
        "--patch",
        "match_payroll:matches=false",
        "-n",
        "4",
    )
    document = lending(*command, "--json").json
    assert (document["verdict"], document["cause"]["fields"]) == ("tool_data", ["matches"])
    assert document["forks"][0]["runs"][0]["nodes"] == ["income", "income|match", "score"]


def test_the_results_that_were_not_tried_are_commands_that_work(lending: Cli) -> None:
    document = lending("diagnose", THREAD, "--check", DECLINED, "-n", "1", "--json").json
    commands = [one for one in document["commands"] if "bureau_pull:1" in one]
    assert len(commands) == 1
    words = shlex.split(commands[0])[1:]
    tried = lending(*[word.replace("512", "720") for word in words], "--json")
    assert (tried.code, tried.json["verdict"]) == (0, "tool_data")


def test_a_fork_at_rest_is_refused_with_what_can_be_done(lending: Cli) -> None:
    done = lending("fork", THREAD, "--patch", "pull_bureau:score=720", "--no-run")
    assert done.code == 5
    assert "given while bureau runs" in done.err
    assert "--update FILE --as-node bureau" in done.err


def test_the_nodes_whole_result_can_be_left_ready_instead(lending: Cli) -> None:
    (lending.cwd / "bureau.json").write_text('{"bureau": {"score": 720, "hits": 0}}', "utf-8")
    at = f"{THREAD}@call:pull_bureau"
    done = lending("fork", at, "--update", "bureau.json", "--as-node", "bureau", "--no-run", "--json").json
    assert (done["as_node"], done["next"], done["runs"]) == ("bureau", ["score"], [])
