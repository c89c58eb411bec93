"""Tickets, the log of who looked at what, and what keeps threads from deletion, from the command line."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from agentctl.cli.env import Env
from agentctl.cli.main import main
from agentctl.stores import open as opening
from tests.support import shop
from tests.support.cli import AGENT, ASKING, CHECK, EDITED, PATCH, Cli, hours_later
from tests.test_docs import check

LOG = Path("agentctl", "audit", "log.jsonl")

COMMANDS = (
    ("threads", "locked::"),
    ("threads", "locked::", "--grep", "refund"),
    ("history", f"locked::{AGENT}"),
    ("show", f"locked::{AGENT}"),
    ("resolve", f"locked::{AGENT}"),
    ("diff", f"locked::{AGENT}@root", f"locked::{AGENT}"),
    ("size", "locked::"),
    ("doctor", "--all", "locked::"),
    ("prune", "locked::", "--keep-turns", "1"),
    ("copy", f"locked::{AGENT}"),
    ("replay", f"locked::{AGENT}@before:tools"),
    ("fork", f"locked::{AGENT}", "--patch", PATCH, "--no-run"),
    ("diagnose", f"locked::{AGENT}", "--check", CHECK),
    ("export", f"locked::{AGENT}", "--dataset", "refunds", "--check", CHECK, "--dry-run"),
    ("sandbox", "init", "--graph", f"{shop.__file__}:agent", "--store", "locked.sqlite"),
    ("resume", f"locked::{ASKING}", "--value", "true"),
    ("run", "refunds", "--thread", f"locked::{AGENT}", "--tools", "production", "--dry-run", "--input", "{}"),
)


@pytest.fixture
def audited(cli: Cli) -> Cli:
    """The project, its production store once more as a profile that needs a ticket, and in another that is logged."""
    shutil.copy(cli.prod, cli.cwd / "locked.sqlite")
    file = cli.cwd / "agentctl.yaml"
    config = yaml.safe_load(file.read_text("utf-8"))
    config["profiles"]["locked"] = {"store": "locked.sqlite", "ticket": "required"}
    config["profiles"]["watched"] = {"store": str(cli.prod), "audit": True}
    file.write_text(yaml.safe_dump(config), "utf-8")
    return cli


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the log is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / LOG


def lines(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_every_command_that_opens_the_profile_needs_a_ticket(audited: Cli, log: Path, words: tuple[str, ...]) -> None:
    refused = audited(*words)
    assert (refused.code, refused.out) == (5, "")
    assert "error: profile locked has ticket: required" in refused.err
    assert shlex.split(refused.err.splitlines()[-1].removeprefix("hint: agentctl ")) == [*words, "--ticket", "ID"]
    assert lines(log) == []
    assert audited(*words, "--ticket", " ").code == 5


@pytest.mark.parametrize("words", COMMANDS[:2] + COMMANDS[8:10] + COMMANDS[-2:], ids=lambda words: words[0])
def test_with_a_ticket_the_command_is_logged(audited: Cli, log: Path, words: tuple[str, ...]) -> None:
    audited(*words, "--ticket", "INC-31")
    opened = lines(log)[0]
    assert (opened["event"], opened["ticket"], opened["profile"]) == ("opened", "INC-31", "locked")
    assert opened["command"] == [*words, "--ticket", "INC-31"]
    assert audited("audit", "verify").code == 0


def test_a_reason_will_do_and_the_hint_is_complete(audited: Cli, log: Path) -> None:
    hint = audited("show", f"locked::{AGENT}", "--messages").err.splitlines()[-1]
    words = shlex.split(hint.removeprefix("hint: agentctl "))
    assert words == ["show", f"locked::{AGENT}", "--messages", "--ticket", "ID"]
    assert audited(*words).code == 0
    assert audited("show", f"locked::{AGENT}", "--reason", "refund refused").code == 0
    assert [line["reason"] for line in lines(log) if line["event"] == "opened"] == ["", "refund refused"]


def test_the_store_by_itself_needs_it_too(audited: Cli, log: Path) -> None:
    (audited.cwd / "link.sqlite").symlink_to("locked.sqlite")
    for store in ("locked.sqlite", "link.sqlite", str(audited.cwd / "locked.sqlite")):
        assert audited("threads", "--store", store).code == 5
    assert audited("threads", environ={"AGENTCTL_STORE": "locked.sqlite"}).code == 5
    assert audited("threads", "debug::", "--debug-store", "locked.sqlite").code == 5
    assert lines(log) == []


def test_the_read_is_on_the_disk_before_the_store_is_opened(
    audited: Cli, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def watching(open_reader: Callable[..., object]) -> Callable[..., object]:
        def opened(*args: object, **kwargs: object) -> object:
            seen.extend(str(line["event"]) for line in lines(log))
            return open_reader(*args, **kwargs)

        return opened

    monkeypatch.setattr(opening, "open_reader", watching(opening.open_reader))
    assert audited("show", f"locked::{AGENT}", "--ticket", "INC-31").code == 0
    assert seen == ["opened"]


def test_what_was_read_is_logged_when_the_command_ends(audited: Cli, log: Path) -> None:
    head = audited.ids(AGENT)[0]
    audited("show", f"locked::{AGENT}", "--ticket", "INC-31")
    opened, closed = lines(log)
    assert closed["opening"] == opened["n"]
    assert closed["threads"] == [AGENT]
    assert head in str(closed["checkpoints"])
    assert isinstance(closed["n_rows"], dict) and closed["n_rows"]["states"] >= 1


def test_a_command_that_fails_is_logged_all_the_same(audited: Cli, log: Path) -> None:
    assert audited("show", "locked::nobody", "--ticket", "INC-31").code == 3
    (audited.cwd / "locked.sqlite").unlink()
    assert audited("show", "locked::nobody", "--ticket", "INC-31").code == 4
    assert [line["event"] for line in lines(log)] == ["opened", "closed", "opened", "closed"]


@pytest.mark.parametrize("obstacle", ["file", "folder in place of the log", "cut"])
def test_without_a_log_nothing_is_read(audited: Cli, log: Path, obstacle: str) -> None:
    if obstacle == "file":
        log.parent.parent.mkdir(parents=True)
        log.parent.write_text("")
    elif obstacle == "folder in place of the log":
        log.mkdir(parents=True)
    else:
        audited("threads", "locked::", "--ticket", "INC-1")
        log.write_bytes(log.read_bytes()[:100])
    for profile in ("locked", "watched"):
        refused = audited("threads", f"{profile}::", "--ticket", "INC-31")
        assert (refused.code, refused.out) == (4, "")
        assert "audit log" in refused.err
    assert audited("threads", "prod::").code == 0


def test_a_profile_can_be_logged_without_a_ticket(audited: Cli, log: Path) -> None:
    assert audited("threads", "watched::").code == 0
    assert [line["profile"] for line in lines(log) if line["event"] == "opened"] == ["watched"]
    assert audited("threads", "prod::").code == 0
    assert len(lines(log)) == 2


def test_printed_commands_carry_the_ticket(audited: Cli, log: Path) -> None:
    shown = audited("show", f"locked::{ASKING}", "--ticket", "INC-31", terminal=True)
    assert re.search(r"agentctl (replay|fork) --ticket INC-31 ", shown.out)


def test_the_log_is_listed_newest_first(audited: Cli, log: Path) -> None:
    audited("threads", "locked::", "--ticket", "INC-1")
    audited("show", f"locked::{AGENT}", "--ticket", "INC-2", "--reason", "refund refused")
    audited("threads", "watched::")
    shown = audited("audit", terminal=True, width=100).out.splitlines()
    assert [line.split()[0] for line in shown] == ["n", "5", "3", "1"]
    assert "show 'locked::support 17'" in shown[2] and "INC-2" in shown[2]
    assert [row[6:9] for row in audited("audit", "--profile", "locked").rows] == [
        [str(audited.cwd / "locked.sqlite"), "INC-2", "refund refused"],
        [str(audited.cwd / "locked.sqlite"), "INC-1", ""],
    ]
    assert len(audited("audit", "--thread", AGENT, "--ticket", "INC-2").rows) == 1
    document = audited("audit", "--since", "1d", "--limit", "2", "--json").json
    assert check(document) == "agentctl.audit/1"
    assert (document["n_total"], document["truncated"], len(document["items"])) == (3, True, 2)
    assert audited("audit", "--user", "nobody", "--json").json["items"] == []


def test_an_empty_log_is_said(cli: Cli, log: Path) -> None:
    assert cli("audit", terminal=True).out == f"no reads or writes of that kind in {log.parent}\n"
    assert cli("audit", "verify", terminal=True).out.startswith("whole: 0 entries in ")
    assert not log.parent.exists()


def test_checking_names_the_line(audited: Cli, log: Path) -> None:
    for ticket in ("INC-1", "INC-2"):
        audited("threads", "locked::", "--ticket", ticket)
    whole = audited("audit", "verify", terminal=True)
    anchor = audited("audit", "verify").rows[0][2]
    assert whole.code == 0 and f"anchor {anchor}" in whole.out
    assert audited("audit", "verify", "--anchor", anchor[:20]).code == 0
    log.write_bytes(log.read_bytes().replace(b"INC-2", b"INC-1"))
    shown = audited("audit", "verify", terminal=True)
    assert shown.code == 1
    assert shown.out.splitlines()[0] == "edited    line 3: its hash is not that of its text"
    document = audited("audit", "verify", "--json").json
    assert check(document) == "agentctl.audit.verify/1"
    assert document["ok"] is False and document["faults"][0]["line"] == 3
    assert audited("audit", "verify", "--anchor", "soon").code == 2


def test_calls_of_all_cases_are_summed(cli: Cli) -> None:
    cli("replay", f"{AGENT}@before:tools")
    whole = cli("audit", "--side-effects", "--json")
    assert whole.code == 0
    assert check(whole.json) == "agentctl.audit.effects/1"
    assert (whole.json["total"]["n_calls"], whole.json["total"]["escaped"]) == (2, 0)
    (calls,) = (cli.cwd / "debug" / "cases").glob("*/calls.jsonl")
    line = json.loads(calls.read_bytes().splitlines()[0])
    calls.write_text(calls.read_text() + json.dumps({**line, "served_by": "escaped"}) + "\n")
    escaped = cli("audit", "--side-effects", terminal=True)
    assert escaped.code == 5
    assert escaped.out.splitlines()[-1].split() == ["all", "cases", "3", "2", "0", "0", "0", "1", "0"]


def protect(cli: Cli, **profiles: dict[str, object]) -> None:
    file = cli.cwd / "agentctl.yaml"
    config = yaml.safe_load(file.read_text("utf-8"))
    for name, profile in profiles.items():
        config["profiles"].setdefault(name, {}).update(profile)
    file.write_text(yaml.safe_dump(config), "utf-8")


def test_protected_threads_are_never_pruned(cli: Cli) -> None:
    shutil.copy(cli.prod, cli.cwd / "own.sqlite")
    protect(cli, own={"store": "own.sqlite", "access": "write", "protected": ["support-1?"]})
    shown = cli("prune", "own::", "--delete", "--older-than", "1h", "--json").json
    assert [item["thread"] for item in shown["items"] if item["reason"] == "its profile protects it"] == [
        EDITED,
        "support-19",
    ]
    refused = cli("prune", f"own::{EDITED}", "--delete", "--apply")
    assert refused.code == 5
    assert f"{EDITED} is protected in agentctl.yaml (own: support-1?)" in refused.err
    assert cli("prune", "own::", "--delete", "--older-than", "1h", "--apply").code == 0
    assert {row[0] for row in cli("threads", "own::").rows} >= {"support-19", EDITED}
    assert AGENT not in {row[0] for row in cli("threads", "own::").rows}


def test_prune_of_the_debug_store_alone_means_its_retention(cli: Cli) -> None:
    cli("copy", AGENT)
    assert cli("prune", "debug::").code == 2
    protect(cli, debug={"retention": "2h"})
    shown = cli("prune", "debug::", "--json").json
    assert shown["mode"] == "delete"
    assert [item["thread"] for item in shown["items"]] == [f"{AGENT}.copy-1"]
    protect(cli, debug={"retention": "4h"})
    assert cli("prune", "debug::", "--json").json["items"] == []


class Keyboard(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


def close_typing(cli: Cli, answer: str, *args: str) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    argv = ("case", "close", "support-17", *args)
    env = Env(
        stdin=Keyboard(answer),
        stdout=out,
        stderr=err,
        environ=dict(os.environ),
        cwd=cli.cwd,
        is_terminal=True,
        err_is_terminal=False,
        width=80,
        now=hours_later,
        as_json="--json" in argv,
        argv=argv,
    )
    return main(argv, env), out.getvalue() + err.getvalue()


def test_closing_a_case_asks_a_person_and_nobody_else(cli: Cli) -> None:
    cli("replay", f"{AGENT}@before:tools")
    code, told = close_typing(cli, "\n")
    assert code == 5
    assert "1 debug thread of support-17 will be deleted. Go on? [y/N]" in told
    assert cli("show", f"debug::{AGENT}.replay-1").code == 0
    assert close_typing(cli, "y\n")[0] == 0
    assert cli("show", f"debug::{AGENT}.replay-1").code == 3
    for args in (("--json",), ("--yes",)):
        cli("replay", f"{AGENT}@before:tools")
        cli("case", "open", "support-17")
        code, told = close_typing(cli, "", *args)
        assert (code, "Go on?" in told) == (0, False)


def test_closing_a_case_leaves_what_is_protected(cli: Cli) -> None:
    cli("replay", f"{AGENT}@before:tools")
    protect(cli, debug={"protected": ["*.replay-1"]})
    assert "  protected, stays" in cli("case", "close", "support-17", "--dry-run", terminal=True).out
    closed = cli("case", "close", "support-17", "--json").json
    assert (closed["state"], closed["threads"][0]["deleted_at"]) == ("closed", None)
    assert closed["warnings"] == [f"{AGENT}.replay-1 is protected in agentctl.yaml and stays"]
    assert cli("show", f"debug::{AGENT}.replay-1").code == 0
