"""Errors, exit codes and manners that all commands share."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentctl import __version__
from agentctl.cli import history as history_command
from agentctl.cli.commands import COMMANDS
from agentctl.cli.env import Env
from agentctl.cli.output import fail
from agentctl.errors import Ambiguous
from tests.support.cli import AGENT, Cli

NAMES = [entry[0] for entry in COMMANDS]
GROUPS = {"case": ("open", "list", "show", "close"), "config": ("show",), "sandbox": ("check",)}
WORDS = [*([name] for name in NAMES), *([group, name] for group, names in GROUPS.items() for name in names)]


def test_the_version(cli: Cli) -> None:
    shown = cli("--version")
    assert (shown.out, shown.err, shown.code) == (f"agentctl {__version__}\n", "", 0)


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_everywhere(cli: Cli, words: list[str], flag: str) -> None:
    shown = cli(*words, flag)
    assert (shown.err, shown.code) == ("", 0)
    assert shown.out.startswith(f"Usage: agentctl {' '.join(words)} ")


@pytest.mark.parametrize("words", [words for words in WORDS if words[0] not in GROUPS or len(words) > 1], ids=" ".join)
def test_every_command_says_what_its_json_is_and_takes_json(cli: Cli, words: list[str]) -> None:
    shown = " ".join(cli(*words, "--help").out.split())
    assert "--json" in shown
    assert "JSON: agentctl." in shown


def test_no_command_shows_the_list_of_commands(cli: Cli) -> None:
    for args in ((), ("-h",), ("--help",)):
        shown = cli(*args)
        assert shown.code == 0
        assert all(f"  {name} " in shown.out for name in NAMES)
        assert max(map(len, shown.out.splitlines())) <= 80
        assert "..." not in shown.out.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (["histori", "x"], "no such command 'histori'. Did you mean 'history'?", "agentctl --help"),
        (["history"], "missing argument 'TARGET'", "agentctl history --help"),
        (["history", AGENT, "--limt", "3"], "no such option: --limt", "agentctl history --help"),
        (["history", AGENT, "--limit", "many"], "", "agentctl history --help"),
        (["history", AGENT, "more"], "unexpected extra argument", "agentctl history --help"),
        (["case", "opn"], "no such command 'opn'", "agentctl case --help"),
        (["case"], "missing command", "agentctl case --help"),
        (["--bogus"], "no such option: --bogus", "agentctl --help"),
    ],
)
def test_a_wrong_command_line_ends_with_2(cli: Cli, args: list[str], message: str, hint: str) -> None:
    failed = cli(*args)
    assert (failed.code, failed.out) == (2, "")
    error, last = failed.err.splitlines()
    assert error.startswith("error: ") and message in error
    assert last == f"hint: {hint}"


def test_a_wrong_command_line_is_one_document_under_json(cli: Cli) -> None:
    for args in (["history"], ["histori"], ["history", AGENT, "--limt"], ["threads", "--limit", "x"]):
        failed = cli(*args, "--json")
        assert (failed.code, failed.err) == (2, "")
        assert set(failed.json) == {"error"}
        assert set(failed.json["error"]) == {"kind", "message", "hint", "candidates"}
        assert failed.json["error"]["kind"] == "usage"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def break_with(error: BaseException) -> None:
        def history(*args: object, **kwargs: object) -> None:
            raise error

        monkeypatch.setattr(history_command, "open_target", history)

    yield break_with


def test_a_bug_of_ours_ends_with_70_and_its_traceback(cli: Cli, broken: Any) -> None:
    broken(RuntimeError("postgresql://bob:hunter2@db is odd"))
    failed = cli("history", AGENT)
    assert (failed.code, failed.out) == (70, "")
    assert failed.err.startswith("Traceback (most recent call last):\n")
    assert "error: this is a bug in agentctl: RuntimeError: postgresql://bob:***@db is odd\nhint: " in failed.err
    told = cli("history", AGENT, "--json")
    assert told.code == 70
    assert told.json["error"]["kind"] == "internal"
    assert "Traceback" in told.err


def test_ctrl_c_ends_with_130(cli: Cli, broken: Any) -> None:
    broken(KeyboardInterrupt())
    stopped = cli("history", AGENT)
    assert (stopped.code, stopped.out, stopped.err) == (130, "", "interrupted\n")


def test_a_closed_pipe_ends_with_141(cli: Cli, broken: Any) -> None:
    broken(BrokenPipeError())
    stopped = cli("history", AGENT)
    assert (stopped.code, stopped.out, stopped.err) == (141, "", "")


@pytest.mark.parametrize(
    ("args", "code", "kind"),
    [
        (["history", AGENT, "--where", "x"], 2, "usage"),
        (["history", f"{AGENT}@nope:"], 2, "syntax"),
        (["history", "nobody"], 3, "not_found"),
        (["threads", "--store", "nothing.sqlite"], 4, "store"),
        (["copy", AGENT, "--to", "prod"], 5, "refused"),
        (["replay", AGENT, "--graph", "broken.py:graph"], 6, "graph_failed"),
    ],
)
def test_the_exit_code_of_an_error_is_the_same_in_both_forms(cli: Cli, args: list[str], code: int, kind: str) -> None:
    (cli.cwd / "broken.py").write_text("raise RuntimeError('closed')\n", "utf-8")
    human, told = cli(*args), cli(*args, "--json")
    assert (human.code, told.code) == (code, code)
    assert human.out == ""
    assert human.err
    assert told.json["error"]["kind"] == kind
    assert told.json["error"]["message"]


def test_styles_are_for_terminals_alone_and_not_with_no_color(cli: Cli) -> None:
    plain = {"HOME": str(cli.cwd)}
    assert "\x1b[" in cli("history", AGENT, terminal=True, environ=plain).out
    assert "\x1b" not in cli("history", AGENT, environ=plain).out
    for off in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in cli("history", AGENT, terminal=True, environ=plain | off).out


def test_a_candidate_is_told_by_ids_in_whole_and_results_in_part() -> None:
    ns = "|".join(f"tools:{'0123abcd' * 4}" for _ in range(3))
    call = {"id": "call_1", "ns": ns, "result": "a page " * 200, "answered": True}
    error = Ambiguous("fetch_page was called twice", candidates=[call])

    def said(**options: Any) -> tuple[str, str]:
        out, err = io.StringIO(), io.StringIO()
        plain = {"stdin": io.StringIO(), "environ": {}, "cwd": Path(), "is_terminal": False, "err_is_terminal": False}
        fail(Env(stdout=out, stderr=err, width=80, now=lambda: datetime.now(UTC), **plain, **options), error)
        return out.getvalue(), err.getvalue()

    line = said()[1].splitlines()[1]
    assert line.startswith(f"  call_1  {ns}  a page a page")
    assert line.endswith("...")
    assert "true" not in line.lower()
    assert json.loads(said(as_json=True)[0])["error"]["candidates"] == [call]
