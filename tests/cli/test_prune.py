"""`agentctl prune`."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from agentctl.testing import build_thread
from tests.catalog import CATALOG, run_case
from tests.support.cli import Cli

QUESTIONS = ("where is my order?", "and the other one?", "is it blue?", "thanks")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conversation of four turns and a thread that asks."""
    path = tmp_path_factory.mktemp("filled") / "shop.sqlite"
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]})
    builder.add_edge(START, "agent")
    graph: Any = builder.compile()
    build_thread(graph, path, "chat", *({"messages": [("user", text)]} for text in QUESTIONS))
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run_case(CATALOG["interrupt inside"], saver, "asking")
    return path


@pytest.fixture
def cli(filled: Path, tmp_path: Path) -> Iterator[Cli]:
    path = tmp_path / "shop.sqlite"
    shutil.copyfile(filled, path)
    profiles = {
        "prod": {"store": str(path), "default": True, "access": "write"},
        "look": {"store": str(path)},
        "vault": {"store": str(path), "access": "write", "protected": True},
        "kept": {"store": str(path), "access": "write", "retention": "1h"},
    }
    (tmp_path / "agentctl.yaml").write_text(yaml.safe_dump({"profiles": profiles}), "utf-8")
    yield Cli(tmp_path, path)


def test_the_plan_says_what_goes_and_what_cannot_be_forked_and_writes_nothing(cli: Cli) -> None:
    before = cli.prod.read_bytes()
    lines = cli("prune", "prod::", "--keep-turns", "2", "--keep-branchable", terminal=True).out.splitlines()

    assert lines[0].startswith("asking  skipped")
    assert lines[1].strip() == "a question waits on it; such a thread is touched where the command names it"
    assert lines[2].startswith("chat  loses 4 of 12 checkpoints, 6 writes, ")
    assert lines[3] == "  stops being forkable: 2 turns"
    assert lines[4].split("  ")[2:] == ["1", "where is my order?", "2 of 3", "its end stays"]
    assert lines[6] == "2 threads looked at: 1 to prune, 1 skipped"
    assert lines[7].startswith("would go: 4 checkpoints, 6 writes, ")
    assert lines[8] == "next: agentctl prune prod:: --keep-turns 2 --keep-branchable --apply"
    assert all(len(line) <= 80 for line in lines)
    assert cli.prod.read_bytes() == before


def test_the_next_command_carries_the_plan_out(cli: Cli) -> None:
    *_, last = cli("prune", "chat", "--keep-turns", "2", terminal=True).out.splitlines()
    done = cli(*shlex.split(last.removeprefix("next: agentctl ")), terminal=True)

    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("gone: 6 checkpoints")
    assert len(cli.ids("chat")) == 6
    assert cli("doctor", "chat").code == 0
    assert "1 thread looked at: 1 with nothing to prune" in cli(*shlex.split(last.removeprefix("next: agentctl "))).err


def test_a_pruned_checkpoint_is_not_found_and_a_kept_end_is(cli: Cli) -> None:
    ids = list(reversed(cli.ids("chat")))
    cli("prune", "chat", "--keep-turns", "1", "--keep-branchable", "--apply")

    for verb in ("show", "history"):
        gone = cli(verb, f"chat@{ids[1]}")
        assert gone.code == 3
        assert ids[1] in gone.err
        assert "hint: " in gone.err
    assert cli("show", f"chat@{ids[2]}", "--json").json["id"] == ids[2]


def test_what_is_kept_by_name_stays(cli: Cli) -> None:
    ids = list(reversed(cli.ids("chat")))
    cli("prune", "chat", "--keep-turns", "1", "--keep", f"chat@{ids[4][-8:]}", "--apply")

    assert list(reversed(cli.ids("chat"))) == [ids[4], *ids[9:]]
    skipped = cli("prune", "prod::", "--delete", "--older-than", "1m", "--keep", "chat", "--json").json["items"]
    assert {item["thread"]: (item["action"], item["reason"]) for item in skipped}["chat"] == ("skip", "--keep names it")


def test_a_pipe_gets_a_line_a_thread_and_one_a_turn(cli: Cli) -> None:
    found = cli("prune", "prod::", "--keep-turns", "3")

    assert [row[:4] for row in found.rows] == [
        ["thread", "asking", "skip", "planned"],
        ["thread", "chat", "thin", "planned"],
        ["turn", "chat", "1", "where is my order?"],
    ]
    assert "2 threads looked at: 1 to prune, 1 skipped" in found.err


def test_a_document_has_what_goes_and_the_command_that_does_it(cli: Cli) -> None:
    document = cli("prune", "chat", "--keep-turns", "2", "--json").json

    (item,) = document["items"]
    assert [(turn["number"], turn["n_lost"]) for turn in item["lost"]] == [(1, 3), (2, 3)]
    assert document["total"]["goes"] == item["goes"]
    assert document["total"]["goes"]["n_checkpoints"] == 6
    assert document["command"] == "agentctl prune chat --keep-turns 2 --apply"


def test_a_thread_that_asks_goes_where_it_is_named_and_that_is_said(cli: Cli) -> None:
    done = cli("prune", "asking", "--delete", "--apply", terminal=True)

    assert done.code == 0
    assert "note: a question waits on it and goes with it: the command names the thread" in " ".join(done.out.split())
    assert cli("history", "asking").code == 3


def test_age_is_that_of_the_newest_checkpoint(cli: Cli) -> None:
    young = cli("prune", "prod::", "--delete", "--older-than", "4h", "--json").json
    old = cli("prune", "prod::", "--delete", "--older-than", "2h", "--json").json

    assert (young["items"], young["total"]["n_passed"]) == ([], 2)
    assert [item["thread"] for item in old["items"]] == ["asking", "chat"]


def test_the_age_of_a_profile_is_taken_where_none_is_given(cli: Cli) -> None:
    assert [item["thread"] for item in cli("prune", "kept::", "--delete", "--json").json["items"]] == ["asking", "chat"]


def test_room_is_given_back_and_told_with_the_real_size(cli: Cli) -> None:
    before = cli.prod.stat().st_size
    done = cli("prune", "prod::", "--delete", "--older-than", "1m", "--apply", "--vacuum", terminal=True)
    document = cli("prune", "asking", "--delete", "--apply", "--vacuum", "--json").json

    assert done.code == 0
    assert "vacuum: the file takes" in done.out
    assert cli.prod.stat().st_size < before
    assert document["total"]["compaction"]["after_bytes"] == cli.prod.stat().st_size
    assert not cli.prod.with_name("shop.sqlite-wal").exists()


def test_status_picks_threads(cli: Cli) -> None:
    found = cli("prune", "prod::", "--delete", "--status", "interrupted", "--json").json

    assert [(item["thread"], item["action"]) for item in found["items"]] == [("asking", "skip")]
    assert cli("prune", "prod::", "--delete", "--status", "done", "--json").json["total"]["n_pruned"] == 1


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["prod::"], 2, "nothing says what is to go"),
        (["prod::", "--delete"], 2, "--delete would take every thread away"),
        (["chat", "--delete", "--keep-turns", "2"], 2, "--delete takes whole threads away"),
        (["chat@root", "--keep-turns", "2"], 2, "prune takes a thread, not a checkpoint of it"),
        (["chat", "--keep-turns", "2", "--vacuum"], 2, "takes --apply"),
        (["prod::", "--delete", "--status", "old"], 2, "no status old"),
        (["prod::", "--delete", "--older-than", "soon"], 2, "not an age"),
        (["nobody", "--delete"], 3, "there is no thread nobody"),
        (["look::chat", "--keep-turns", "2", "--apply"], 5, "look can be read, not written"),
        (["vault::chat", "--keep-turns", "2", "--apply"], 5, "vault is protected: true"),
        (["--store", "none.sqlite", "--keep-turns", "2"], 4, "no such file"),
    ],
)
def test_what_is_not_pruned_is_an_error(cli: Cli, args: list[str], code: int, message: str) -> None:
    before = cli.prod.read_bytes()
    found = cli("prune", *args)

    assert found.code == code
    assert message in found.err
    assert "hint: " in found.err
    assert cli.prod.read_bytes() == before


def test_a_plan_of_what_may_not_be_written_says_so(cli: Cli) -> None:
    shown = cli("prune", "vault::chat", "--keep-turns", "2", terminal=True)

    assert shown.code == 0
    assert "note: vault is protected: true in agentctl.yaml" in shown.out
