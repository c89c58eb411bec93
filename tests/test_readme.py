"""What the README and the other pages say is so: their commands parse, links lead somewhere, named tests exist."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from agentctl.cli.commands import build
from agentctl.experiments.judging.statistics import fisher_exact, wilson_interval
from agentctl.testing import run_cli

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
README = ROOT / "README.md"
GENERATED = {"cli.md"}
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "graphs").rglob("*.md")),
    ROOT / "fixtures" / "README.md",
]

_FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")
_TEST = re.compile(r"`(?P<file>(?:\w+/)+\w+\.py)?::(?P<test>test_\w+)`")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_COUNT = re.compile(r"(\d+) of (\d+)")


def blocks(page: Path, language: str) -> list[str]:
    return [found["text"] for found in _FENCED.finditer(page.read_text("utf-8")) if found["language"] == language]


def commands() -> Iterator[Any]:
    for page in PAGES:
        if page.name in GENERATED:
            continue
        for block in blocks(page, "sh"):
            for line in block.splitlines():
                if line.startswith("agentctl "):
                    yield pytest.param(line, id=f"{page.name}: {line}")


def parse(line: str) -> None:
    """Parses a command line as agentctl would, down to its last option, and runs nothing."""
    _, *words = shlex.split(line, comments=True)
    command: Any = typer.main.get_command(build(words))
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("agentctl", words, obj=SimpleNamespace())


@pytest.mark.parametrize("line", list(commands()))
def test_every_command_of_the_documentation_is_accepted(line: str) -> None:
    parse(line)


def test_a_command_with_an_unknown_flag_would_be_noticed() -> None:
    with pytest.raises(typer.TyperException):
        parse("agentctl history support-17 --no-such-flag")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.finditer(page.read_text("utf-8")):
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        assert target.exists(), f"{page.name} links to {link['path']}"
        if link["anchor"]:
            assert link["anchor"] in anchors(target), f"{page.name} links to {link['path']}#{link['anchor']}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_the_readme_lists_every_page() -> None:
    linked = {(README.parent / link["path"]).resolve() for link in _LINK.finditer(README.read_text("utf-8"))}
    assert set((ROOT / "docs").glob("*.md")) <= linked


def test_every_test_that_holds_a_promise_exists() -> None:
    file, n_found = "", 0
    for named in _TEST.finditer((ROOT / "docs" / "safety.md").read_text("utf-8")):
        file = named["file"] or file
        text = (TESTS / file).read_text("utf-8")
        assert re.search(rf"def {named['test']}\(", text), f"{file}::{named['test']}"
        n_found += 1
    assert n_found > 50


def test_every_file_that_is_named_in_prose_exists() -> None:
    for page in PAGES:
        for name in re.findall(r"`((?:tests|src)/[a-z_/]+\.py)`", page.read_text("utf-8")):
            assert (ROOT / name).is_file(), f"{page.name} names {name}"


def rows_below(page: Path, heading: str) -> list[list[str]]:
    """Returns the cells of the tables of one section, header and rule lines included."""
    lines = iter(page.read_text("utf-8").splitlines())
    for line in lines:
        if line == heading:
            break
    section = takewhile(lambda line: not line.startswith("## "), lines)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section if line.startswith("|")]


def test_what_is_relied_on_in_langgraph_names_modules_and_tests_that_exist() -> None:
    rows = rows_below(ROOT / "CONTRIBUTING.md", "## What we rely on inside LangGraph")[2:]
    assert len(rows) > 10
    for modules, _, tests in rows:
        for name in re.findall(r"`([\w/]+\.py)`", modules):
            assert (ROOT / "src" / "agentctl" / name).is_file(), name
        held_by = re.findall(r"`([\w/]+\.py)`", tests)
        assert held_by and all((TESTS / name).is_file() for name in held_by), modules


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(requirement for extra in extras for requirement in extra)]
    explained = " ".join(row[0] for row in rows_below(ROOT / "CONTRIBUTING.md", "## Dependencies"))
    explained = explained.replace("langgraph-checkpoint-sqlite, -postgres", "langgraph-checkpoint-postgres")
    for requirement in wanted:
        name = re.split(r"[<>=\[ ;]", requirement)[0]
        if not name.startswith(("types-", "langgraph-")):
            assert re.search(rf"\b{re.escape(name)}\b", explained), name


def test_the_numbers_of_the_verdict_page_are_those_that_are_computed() -> None:
    rows = rows_below(ROOT / "docs" / "verdict.md", "## The numbers")
    checked = 0
    for replays, fork, p_value, *_ in rows:
        counts = [*_COUNT.findall(replays), *_COUNT.findall(fork)]
        if len(counts) == 2:
            (a_failed, a), (b_failed, b) = ((int(k), int(n)) for k, n in counts)
            assert f"{fisher_exact(a_failed, a, b_failed, b):.3f}" == p_value
            checked += 1
    assert checked == 6
    text = (ROOT / "docs" / "verdict.md").read_text("utf-8")
    for k, n, low, high in re.findall(r"(\d+) of (\d+) is \[(\d+) %, (\d+) %\]", text):
        assert [f"{share:.0%}" for share in wilson_interval(int(k), int(n))] == [f"{low}%", f"{high}%"]


def test_the_example_of_the_readme_ends_as_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from langgraph.checkpoint.sqlite import SqliteSaver

    monkeypatch.chdir(tmp_path)
    (code,) = blocks(README, "python")
    Path("shop.py").write_text(code)
    scope: dict[str, Any] = {}
    exec(compile(code, "shop.py", "exec"), scope)
    with SqliteSaver.from_conn_string("shop.sqlite") as saver:
        graph = scope["builder"].compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "lamp"}}
        graph.invoke({"messages": [("user", "Do you have the lamp?")]}, config, durability="sync")
    assert "the warehouse was really asked" in capsys.readouterr().out

    (line,) = [line for line in blocks_lines("sh") if "--graph shop.py:graph" in line]
    result = run_cli(*shlex.split(line, comments=True)[1:], terminal=True, width=100)

    assert result.code == 0, result.err
    shown = README.read_text("utf-8")
    for start in ("replay ", "fork ", "verdict "):
        (printed,) = [text for text in _STYLE.sub("", result.out).splitlines() if text.startswith(start)]
        assert printed.rstrip() in shown
    assert "the warehouse was really asked" not in capsys.readouterr().out + result.out


def blocks_lines(language: str) -> list[str]:
    return [line for block in blocks(README, language) for line in block.splitlines()]
