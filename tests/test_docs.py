"""The documents of `--json` are what docs/json.md says, key by key; docs/cli.md is what the commands print."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentctl.cli.commands import COMMANDS
from agentctl.errors import AgentctlError
from tests.support import shop
from tests.support.cli import AGENT, ASKING, CHECK, EDITED, FAILED, PATCH, Cli, seed, write_project, write_view
from tests.support.small_project import write_project as write_incidents

DOCS = Path(__file__).resolve().parent.parent / "docs"
APPROVE = '{"decisions": [{"type": "approve"}]}'
VIEW = """
fields: {reply: reply(messages)}
lists: {calls: {items: tool_calls(messages), key: name, fields: {result: result}}}
"""
ROW = re.compile(r"\| `(?P<path>[^`]+)` \| (?P<text>.*) \|")
SHAPE = re.compile(r"\[(?P<name>\w+)\]\(#(?P=name)\)")


@dataclass(slots=True)
class Node:
    """What a page says of one value: nothing known of it, or the keys of an object or of each object of a list."""

    text: str = ""
    keys: dict[str, Node] = field(default_factory=dict)
    is_list: bool = False

    @property
    def shape(self) -> str | None:
        match = SHAPE.search(self.text)
        return match["name"] if match else None

    @property
    def is_any(self) -> bool:
        return self.text.startswith("*any*")


def read_page() -> dict[str, Node]:
    """Every heading of docs/json.md with the tree of keys of its table."""
    sections: dict[str, Node] = {}
    current = Node()
    for line in (DOCS / "json.md").read_text("utf-8").splitlines():
        if line.startswith("#"):
            current = sections.setdefault(line.lstrip("# "), Node())
        elif (line.endswith("and") and "the keys of a [" in line) or "the keys of a [" in line:
            current.text = line
        elif match := ROW.fullmatch(line):
            node = current
            for part in match["path"].split("."):
                name = part.removesuffix("[]")
                node = node.keys.setdefault(name, Node())
                node.is_list = node.is_list or part.endswith("[]")
            node.text = match["text"]
    return sections


PAGE = read_page()


def compare(value: Any, node: Node, where: str) -> list[str]:
    """Returns what a document has and the page does not say, and the other way round."""
    if node.is_any or value is None:
        return []
    if isinstance(value, list):
        return [problem for item in value for problem in compare(item, node, f"{where}[]")]
    keys = dict(node.keys)
    if node.shape:
        keys |= PAGE[node.shape].keys
    if not keys:
        return [f"{where} is an object"] if isinstance(value, dict) else []
    if not isinstance(value, dict):
        return [f"{where} is no object"]
    problems = [f"{where}.{name} is not on the page" for name in value if name not in keys]
    problems += [f"{where}.{name} is missing" for name in keys if name not in value]
    return problems + [
        problem
        for name, child in keys.items()
        if name in value
        for problem in compare(value[name], child, f"{where}.{name}")
    ]


def check(document: Mapping[str, Any]) -> str:
    """Compares a document with its section, and returns its schema."""
    assert "schema" in document, document
    schema = str(document["schema"])
    own = {name: value for name, value in document.items() if name != "schema"}
    node = Node(PAGE[schema].text, {**PAGE[schema].keys, "warnings": Node()})
    assert compare(own, node, schema) == []
    return schema


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    cli = write_project(tmp_path_factory.mktemp("project"), seed(tmp_path_factory.mktemp("prod")))
    write_view(cli, VIEW)
    return cli


def test_every_document_is_as_the_page_says(cli: Cli) -> None:
    seen = {
        check(cli(*words, "--json").json)
        for words in (
            ("threads",),
            ("threads", "--grep", "refund"),
            ("history", EDITED),
            ("history", ASKING),
            ("history", FAILED),
            ("show", AGENT),
            ("show", ASKING),
            ("show", FAILED),
            ("show", AGENT, "--messages"),
            ("show", ASKING, "--messages"),
            ("show", AGENT, "--call", "lookup_order"),
            ("show", AGENT, "--channel", "messages", "--path", "[0]"),
            ("diff", f"{EDITED}@root...head"),
            ("diff", ASKING, f"{ASKING}@root"),
            ("diff", f"{AGENT}@root", AGENT),
            ("resolve", f"{AGENT}@call:lookup_order"),
            ("size",),
            ("size", AGENT, "--by", "field", "--threads-per-day", "10", "--retention", "30"),
            ("doctor", "--all"),
            ("prune", "--keep-turns", "1"),
            ("prune", EDITED, "--keep-turns", "1"),
            ("copy", AGENT),
            ("copy", AGENT, "--dry-run"),
            ("replay", f"{AGENT}@before:tools", "--check", CHECK),
            ("fork", AGENT, "--patch", PATCH, "--resume", APPROVE),
            ("fork", AGENT, "--patch", PATCH, "--no-run"),
            ("diagnose", AGENT, "--check", CHECK),
            ("diagnose", AGENT, "--check", CHECK, "--patch", PATCH, "--resume", APPROVE),
            ("export", f"debug::{AGENT}.fork-1", "--dataset", "refunds", "--dry-run"),
            (
                "run",
                "refunds",
                "--thread",
                "try-1",
                "--input",
                "question.json",
                "--stream",
                "messages",
                "--stream",
                "debug",
            ),
            ("resume", "debug::try-1", "--value", APPROVE),
            ("case", "list"),
            ("case", "open", "INC-1"),
            ("case", "show", "support-17"),
            ("case", "close", "support-17", "--dry-run"),
            ("case", "close", "support-17"),
            ("config", "show"),
            ("audit",),
            ("audit", "verify"),
            ("audit", "--side-effects"),
            ("sandbox", "check"),
            ("sandbox", "init", "--graph", f"{shop.__file__}:agent"),
        )
    }
    assert shop.PAID == []
    assert seen | {"agentctl.tour/1"} == {name for name in PAGE if name.startswith("agentctl.")}


def test_the_tour_is_as_the_page_says(tmp_path: Path) -> None:
    project = write_incidents(tmp_path)
    document = Cli(project, project)("tour", "--json").json
    assert check(document) == "agentctl.tour/1"


def test_an_error_is_as_the_page_says(cli: Cli) -> None:
    for words in (("history", "nobody"), ("history",), ("show", EDITED, "--call", "nothing")):
        assert compare(cli(*words, "--json").json, PAGE["Errors"], "error") == []


def test_the_page_notices_a_key_too_many_and_one_too_few() -> None:
    node = PAGE["agentctl.resolve/1"]
    problems = compare({"store": "", "thread": "", "ns": "", "id": "", "why": "", "new": 1}, node, "it")
    assert problems == ["it.new is not on the page", "it.notes is missing"]
    assert compare({"runs": [{"thread": "t"}]}, Node("", {"runs": PAGE["agentctl.replay/1"].keys["runs"]}), "it")


def test_every_kind_of_error_and_exit_code_is_on_its_page() -> None:
    page = (DOCS / "exit-codes.md").read_text("utf-8")
    rows = {int(match[1]): match[2] for match in re.finditer(r"^\| (\d+) \| .* \| (.*) ?\|$", page, re.MULTILINE)}
    kinds = {each.kind: each.exit_code for each in _tree(AgentctlError)}
    for kind, code in kinds.items():
        assert f"`{kind}`" in rows[code]
    assert set(rows) == {0, 1, 2, 3, 4, 5, 6, 70, 130, 141}


def _tree(error: type[AgentctlError]) -> list[type[AgentctlError]]:
    return [error, *(each for child in error.__subclasses__() for each in _tree(child))]


def test_the_page_of_commands_is_up_to_date() -> None:
    from docs.generate import cli_page

    assert (DOCS / "cli.md").read_text("utf-8") == cli_page(), "run make docs"


def test_every_link_of_the_pages_leads_somewhere() -> None:
    for page in DOCS.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert "://" in link or (page.parent / link).exists(), (page.name, link)


def test_every_command_of_the_pages_exists() -> None:
    names = {name for name, _, _ in COMMANDS}
    for page in DOCS.glob("*.md"):
        found = set(re.findall(r"\bagentctl ([a-z]+)\b(?![:=])", _code(page.read_text("utf-8"))))
        assert found <= names | {"show"}, (page.name, found - names)


def _code(text: str) -> str:
    return "\n".join([*re.findall(r"`([^`\n]+)`", text), *re.findall(r"^\$? ?(agentctl .*)$", text, re.MULTILINE)])
