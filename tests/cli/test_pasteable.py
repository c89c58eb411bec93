"""Every id and every command that any command prints works when it is pasted back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.testing import CliResult
from tests.catalog import CATALOG, run_case
from tests.support.cli import AGENT, ASKING, CHECK, EDITED, FAILED, PATCH, UUID, Cli

COMMAND = re.compile(r"\bagentctl (?=[a-z])[^\n;]+")
APPROVE = '{"decisions": [{"type": "approve"}]}'
LOOKING = (
    ("threads",),
    ("threads", "--limit", "1"),
    ("history", EDITED),
    ("history", EDITED, "--limit", "2"),
    ("history", f"{EDITED}@root..head"),
    ("show", AGENT),
    ("show", ASKING),
    ("show", FAILED),
    ("show", EDITED, "--messages"),
    ("show", AGENT, "--call", "lookup_order"),
    ("resolve", f"{EDITED}@call:issue_refund"),
    ("diff", f"{EDITED}@root...head"),
    ("diff", AGENT, f"prod::{EDITED}"),
)
RUNNING = (
    ("copy", AGENT),
    ("replay", f"{AGENT}@before:tools", "-n", "2", "--check", CHECK),
    ("fork", AGENT, "--patch", PATCH, "--resume", APPROVE),
    ("diagnose", AGENT, "--check", CHECK),
    ("diagnose", AGENT, "--check", CHECK, "--patch", PATCH, "--resume", APPROVE),
    ("case", "list"),
    ("case", "show", "support-17"),
    ("run", "refunds", "--thread", "try 1", "--input", "question.json"),
    ("resume", "debug::try 1", "--value", APPROVE),
    ("history", "debug::try 1"),
    ("threads", "debug::"),
)
FAILING = (
    ("history", "nobody"),
    ("history", "prod::nobody"),
    ("history", f"{EDITED}@ffffffff"),
    ("history", f"{EDITED}@step:99"),
    ("history", EDITED, "--ns", "inner"),
    ("history", f"{EDITED}@error"),
    ("show", AGENT, "--call", "nothing"),
    ("diff", AGENT),
    ("replay", AGENT),
    ("replay", f"{AGENT}@head"),
    ("resume", AGENT, "--value", "1"),
    ("resume", f"{ASKING}@root", "--value", "1", "--graph", "refunds"),
    ("fork", AGENT, "--answer", "nothing=1"),
    ("copy", f"{AGENT}@step:99"),
    ("case", "show", "nothing"),
    ("histori",),
    ("history",),
)


def printed(result: CliResult) -> str:
    return result.out + result.err


def strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from strings(item)
        case list():
            for item in value:
                yield from strings(item)


def commands_in(text: str) -> list[list[str]]:
    """The commands of a text, what a person fills in filled in."""
    found = []
    for match in COMMAND.finditer(text):
        words = shlex.split(match[0])[1:]
        found.append([APPROVE if word == "JSON" else word.replace("=JSON", f"={APPROVE}") for word in words])
    return found


def works(cli: Cli, words: list[str]) -> None:
    """A printed command is understood and finds what it names; it may still be refused."""
    if "export" in words or any(word in ("NAME", "FILE") for word in words):
        words = [*words, "--help"]
    ended = cli(*words)
    assert ended.code in (0, 1, 5), (words, ended.err)


def check(cli: Cli, *words: str | Path) -> list[list[str]]:
    """Runs a command in its three forms and pastes every command that it printed; returns them."""
    seen: list[list[str]] = []
    for form in ({"terminal": True, "width": 500}, {}, {"json": True}):
        ended = cli(*words, "--json") if form.get("json") else cli(*words, **form)
        assert ended.code != 70, ended.err
        texts = list(strings(ended.json)) if form.get("json") else [printed(ended)]
        for command in [command for text in texts for command in commands_in(text)]:
            if command not in seen:
                seen.append(command)
                works(cli, command)
    return seen


@pytest.mark.parametrize("words", [*LOOKING, *FAILING], ids=" ".join)
def test_what_a_look_or_an_error_prints_can_be_pasted(cli: Cli, words: tuple[str, ...]) -> None:
    check(cli, *words)


def test_what_running_commands_print_can_be_pasted(cli: Cli) -> None:
    found = [command for words in RUNNING for command in check(cli, *words)]
    assert {command[0] for command in found} >= {"history", "resume", "diagnose"}


@pytest.mark.parametrize("words", [words for words in LOOKING if words[0] in ("history", "show", "diff", "resolve")])
def test_every_id_that_is_printed_names_its_checkpoint(cli: Cli, words: tuple[str, ...]) -> None:
    thread = words[1].partition("@")[0]
    known = set(cli.ids(thread)) | set(cli.ids(EDITED))
    shorts = {id[-8:]: id for id in cli.ids(thread)}
    text = printed(cli(*words, terminal=True, width=200))
    for id in set(UUID.findall(text)) & known:
        assert any(cli("resolve", f"{each}@{id}").code == 0 for each in (thread, EDITED))
    for short in set(re.findall(r"\b[0-9a-f]{8}\b", UUID.sub("", text))) & set(shorts):
        assert cli("resolve", f"{thread}@{short}").rows[0][0] == shorts[short]


def test_candidates_of_an_ambiguous_target_are_revisions_that_resolve(cli: Cli) -> None:
    path = cli.cwd / "twice.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run_case(CATALOG["agent two turns"], saver, "t")
    ambiguous = cli("resolve", "t@call:lookup_order", "--store", path, "--json")
    candidates = ambiguous.json["error"]["candidates"]
    assert len(candidates) == 2
    for candidate in candidates:
        assert cli("resolve", f"t@{candidate['revision']}", "--store", path).code == 0


@pytest.mark.parametrize("thread", ["a@b", "prod::x", "it's a thread", "a~1", "--json", "a@head"])
def test_threads_with_any_name_can_be_pasted(cli: Cli, thread: str) -> None:
    path = cli.cwd / "odd.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run_case(CATALOG["agent"], saver, thread)
    here = ("--store", path)
    if not thread.startswith("--"):
        assert cli("history", thread, *here).code == 0
        check(cli, "show", thread, *here)
        check(cli, "history", f"{thread}@step:99", *here)
        check(cli, "copy", thread, *here)
    else:
        assert cli("history", *here, "--", thread).code == 0


def test_flags_that_say_which_store_are_repeated_in_printed_commands(cli: Cli) -> None:
    """Without any configuration: the stores were given as flags, so printed commands give them too."""
    folder = cli.cwd / "elsewhere"
    folder.mkdir()
    (folder / "agentctl.yaml").write_text("profiles: {}\n", "utf-8")
    elsewhere = Cli(folder, cli.prod)
    debug = str(folder / "a debug store.sqlite")
    flags = ("--store", str(cli.prod), "--debug-store", debug)
    copied = check(elsewhere, "copy", AGENT, *flags)
    assert copied[0] == ["history", "--debug-store", debug, f"debug::{AGENT}.copy-1"]
    listed = check(elsewhere, "history", f"{EDITED}@ffffffff", *flags)
    assert listed == [["history", *flags, EDITED]]
    shown = elsewhere("show", ASKING, *flags, terminal=True, width=500)
    (answer,) = commands_in(shown.out)
    assert answer[:5] == ["replay", *flags]
