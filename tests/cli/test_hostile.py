"""Stored text that tries to mislead whoever reads it on a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from tests.support.cli import Cli

ESC = "\x1b"
HOSTILE = {
    "colour": f"{ESC}[31mred{ESC}[0m",
    "title": f"{ESC}]0;owned\x07after the title",
    "unterminated": f"{ESC}]52;c;must still be seen",
    "link": f"{ESC}]8;;http://evil.example{ESC}\\click{ESC}]8;;{ESC}\\",
    "c1": "\x9b2J and \x9d0;owned\x9c",
    "clear": f"{ESC}c{ESC}[2J{ESC}[H",
    "bidi": "\u202egnp.exe\u202c \u2066x\u2069 \u200f",
    "invisible": "pay\u200bload \u2060\ufeff\U000e0041\U000e0042",
    "newlines": "one\ntwo\r\nthree\tfour\rfive",
    "nul": "a\x00b\x07c\x08d",
    "markup": "[/foo] [red]x[/red] :smile: [link=http://x]y[/link]",
    "surrogate": "half \ud83d of it",
}
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060\u2066-\u2069\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
COMMANDS = (
    ("threads",),
    ("threads", "--grep", "o"),
    ("history", "t"),
    ("show", "t"),
    ("show", "t", "--full"),
    ("show", "t", "--messages"),
    ("show", "t", "--messages", "--full"),
    ("show", "t", "--call", "look"),
    ("show", "t", "--channel", "note"),
    ("diff", "t@root..head"),
    ("resolve", "t@call:look"),
    ("history", "t@before:nothing"),
)


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    note: str


def make(path: Path, text: str) -> None:
    stored = text.encode("utf-8", "replace").decode("utf-8")
    call = {"name": "look", "id": "c1", "args": {"where": stored}}

    def speak(state: State) -> State:
        return {"messages": [AIMessage(stored, tool_calls=[call])], "note": stored}

    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = StateGraph(State).add_node("speak", speak).add_edge(START, "speak").compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t"}, "metadata": {"hint": stored}}
        graph.invoke({"messages": [HumanMessage(stored)]}, config, durability="sync")


@pytest.mark.parametrize(
    "names",
    [
        ("colour", "title", "link", "c1", "clear"),
        ("bidi", "invisible", "newlines", "nul", "markup", "surrogate"),
        ("unterminated",),
    ],
    ids=lambda names: names[0],
)
def test_nothing_that_a_terminal_would_obey_is_printed(cli: Cli, tmp_path: Path, names: tuple[str, ...]) -> None:
    path = tmp_path / "hostile.sqlite"
    make(path, " - ".join(HOSTILE[name] for name in names))
    for command in COMMANDS:
        for form in ({"terminal": True}, {"terminal": False}):
            shown = cli(*command, "--store", path, **form)
            assert not OBEYED.search(shown.out), (command, shown.out)
            assert not OBEYED.search(shown.err), (command, shown.err)
        told = cli(*command, "--store", path, "--json").out
        assert not OBEYED.search(told), (command, told)
        json.loads(told)


def test_text_after_an_unterminated_sequence_is_still_seen(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "hostile.sqlite"
    make(path, HOSTILE["unterminated"])
    assert "must still be seen" in cli("show", "t", "--messages", "--store", path, terminal=True).out


def test_markup_is_text(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "hostile.sqlite"
    make(path, HOSTILE["markup"])
    out = cli("show", "t", "--messages", "--store", path, terminal=True, width=200).out
    assert HOSTILE["markup"] in out


def test_json_keeps_every_character(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "hostile.sqlite"
    for name in ("colour", "bidi", "invisible", "newlines", "c1"):
        path.unlink(missing_ok=True)
        make(path, HOSTILE[name])
        assert cli("show", "t", "--channel", "note", "--store", path, "--json").json["value"] == HOSTILE[name]


def test_a_row_of_a_pipe_is_one_line(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "hostile.sqlite"
    make(path, HOSTILE["newlines"])
    rows = cli("show", "t", "--messages", "--store", path).rows
    assert [row[2] for row in rows] == ["human", "ai", "call"]
    assert rows[0][5].split() == ["one", "two", "three", "four�five"]


def test_a_value_of_a_megabyte_is_cut_on_a_terminal_and_whole_in_a_pipe(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "large.sqlite"
    make(path, "x" * 1_000_000)
    for command in (("history", "t"), ("show", "t"), ("show", "t", "--messages"), ("threads",)):
        assert len(cli(*command, "--store", path, terminal=True).out) < 10_000, command
    assert len(cli("show", "t", "--channel", "note", "--store", path).out) > 1_000_000


def test_secrets_in_metadata_and_in_addresses_are_hidden(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "secret.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = StateGraph(State).add_node("a", lambda s: {}).add_edge(START, "a").compile(checkpointer=saver)
        metadata = {
            "api_key": "s3cr3t-one",
            "callback": "https://bob:s3cr3t-two@x.example",
            "openai": "sk-" + "a1" * 12,
        }
        config: Any = {"configurable": {"thread_id": "t"}, "metadata": metadata}
        graph.invoke({"note": "x"}, config, durability="sync")
    for command in (("threads",), ("show", "t"), ("history", "t")):
        for form in ({"terminal": True, "width": 300}, {}):
            out = cli(*command, "--store", path, **form).out
            assert not re.search("s3cr3t|a1a1a1", out), out
        assert not re.search("s3cr3t|a1a1a1", cli(*command, "--store", path, "--json").out)


def test_a_password_of_a_store_is_not_printed(cli: Cli) -> None:
    url = "postgresql://bob:s3cr3t@127.0.0.1:1/x?connect_timeout=1"
    for form in ((), ("--json",)):
        failed = cli("threads", "--store", url, *form)
        assert failed.code == 4
        assert "s3cr3t" not in failed.out + failed.err
