"""Time travel on a deep agent: delta channels and subagents' namespaces read, copied, forked, compared and exported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentctl.datasets.branch import Branch
from agentctl.datasets.examples import read_examples
from agentctl.errors import Refused
from agentctl.experiments.comparing.diff import diff_tips, read_tip
from agentctl.records.runs import ForkReport, RunReport
from agentctl.stores.base import Reader
from agentctl.stores.copying.execute import copy
from agentctl.stores.copying.selection import for_copy
from agentctl.stores.open import open_reader, open_writer
from agentctl.stores.reading.history import read_history
from agentctl.stores.reading.lineage import head_id, read_lineage, read_tree
from agentctl.stores.reading.state import read_values
from tests.catalog import CATALOG
from tests.catalog.research import WORLD, research
from tests.support.copies import stock_saver
from tests.support.forking import ON_BOTH, Source, sources
from tests.support.stock import differences, value_differences

GRAPH = research(None)


@pytest.fixture(scope="module")
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Source]]:
    """Stores with the threads, made once; forks of them are made beside each other."""
    with sources(_fill, tmp_path_factory.mktemp("forks"), lambda: str(request.getfixturevalue("postgres_url"))) as made:
        yield made


@pytest.fixture
def source(request: pytest.FixtureRequest, stores: Callable[[str], Source]) -> Source:
    return stores(getattr(request, "param", "sqlite"))


def _fill(source: Source) -> None:
    source.run(CATALOG["research"].build, "t", CATALOG["research"].run)


@pytest.fixture
def reader(source: Source) -> Iterator[Reader]:
    with closing(open_reader(source.prod)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _nothing_is_fetched(source: Source) -> Iterator[None]:
    WORLD.clear()
    yield
    assert not WORLD


def only(report: ForkReport) -> RunReport:
    (run,) = report.group.runs
    assert (run.status, run.error) == ("done", None)
    return run


def notes(files: Any) -> dict[str, int]:
    """The year that each note says."""
    return {path: json.loads(file["content"])["year"] for path, file in files.items()}


def subagents(reader: Reader, thread: str = "t") -> dict[str, str]:
    """The namespaces of the two subagents by their topic."""
    found = {}
    for ns in reader.namespaces(thread):
        if ns.startswith("tools:"):
            values = read_values(reader, thread, ns, read_tree(reader, thread, ns).ids[0]).values
            found[str(values["messages"][0]["content"])] = ns  # type: ignore[index]
    return found


# Looking
@ON_BOTH
def test_messages_and_files_are_at_every_checkpoint_what_stock_shows(source: Source, reader: Reader) -> None:
    with stock_saver(source.prod) as saver:
        graph = GRAPH.copy(update={"checkpointer": saver})
        assert value_differences(reader, graph, "t") == []
        assert differences(reader, graph, "t") == []


@ON_BOTH
def test_a_subagents_files_are_its_own_until_it_returns(reader: Reader) -> None:
    for topic, ns in subagents(reader).items():
        ids = list(reversed(read_tree(reader, "t", ns).ids))
        files = [read_values(reader, "t", ns, id).values.get("files") for id in ids]
        assert notes(files[-1]) == {f"/notes/{topic}.md": 2025}
        assert [bool(held) for held in files] == sorted(bool(held) for held in files)


def test_history_says_which_step_wrote_files_and_what(reader: Reader) -> None:
    rows = read_history(reader, "t").items
    wrote = {row.step: row.channels for row in rows if "files" in row.channels}
    assert {step: set(channels) for step, channels in wrote.items() if step > 0} == {
        3: {"messages", "files"},
        max(wrote): {"messages", "files"},
    }
    assert notes(read_values(reader, "t", "", rows[0].id).values["files"]) == {"/notes/a.md": 2023, "/notes/b.md": 2025}


# Copying


@ON_BOTH
@pytest.mark.parametrize("scope", ["lineage", "point", "all"])
def test_a_copy_shows_the_same_messages_and_files(source: Source, reader: Reader, tmp_path: Path, scope: Any) -> None:
    head = head_id(reader, "t")
    plan = for_copy(reader, "t", "", head, scope, "copied")
    with closing(open_writer(str(tmp_path / "copy.sqlite"))) as writer:
        writer.setup()
        copy(reader, writer, [plan])
        for ns in {pick.ns for pick in plan.picks}:
            whole = [pick.id for pick in plan.picks if pick.ns == ns and pick.channels is None]
            for id in whole:
                assert read_values(writer, "copied", ns, id).values == read_values(reader, "t", ns, id).values


# Forking
@ON_BOTH
def test_a_corrected_page_inside_one_subagent_changes_its_note_and_the_report(source: Source, reader: Reader) -> None:
    report = source.fork(GRAPH, "t@call:fetch-a", patch=["fetch_page:year=2026"])
    run = only(report)
    state = source.state(GRAPH, run.thread).values
    assert run.reply == "a: 2026; b: 2025; 2026"
    assert notes(state["files"]) == {"/notes/a.md": 2026, "/notes/b.md": 2025}
    assert [(call.name, call.id, call.served_by) for call in run.tool_calls] == [
        ("task", "task-a", "state"),
        ("write_file", "note-a", "state"),
        ("read_file", "read-a", "state"),
    ]
    assert (report.as_node, report.next) == ("tools", ("model",))
    with closing(open_reader(source.debug)) as debug:
        assert "a" in subagents(debug, run.thread)


def test_the_subagents_whole_result_is_changed_at_the_agent_around_it(source: Source) -> None:
    report = source.fork(GRAPH, "t@call:task-b", answer=['task-b="b: 1999"'])
    run = only(report)
    assert run.reply == "a: 2025; b: 1999; 2025"
    assert [call.name for call in run.tool_calls] == ["read_file"]
    assert notes(source.state(GRAPH, run.thread).values["files"]) == {"/notes/a.md": 2025, "/notes/b.md": 2025}
    assert [(entry.id, entry.how) for entry in report.answered] == [("task-b", "substituted"), ("task-a", "kept")]


@ON_BOTH
def test_one_field_of_a_file_is_set_and_the_rest_of_the_files_stay(source: Source) -> None:
    edited = json.dumps(json.dumps({"url": "https://x/a", "year": 2025, "seen": True}))
    report = source.fork(GRAPH, "t@call:edit_file", assign=[f'files["/notes/a.md"].content={edited}'])
    files = source.state(GRAPH, only(report).thread).values["files"]
    assert json.loads(files["/notes/a.md"]["content"]) == {"url": "https://x/a", "year": 2023, "seen": True}
    assert notes(files)["/notes/b.md"] == 2025
    assert [(call.name, call.served_by) for call in only(report).tool_calls] == [("edit_file", "state")]


def test_a_call_that_a_send_carries_is_not_changed_in_the_conversation_alone(source: Source) -> None:
    given = ['messages[-1].tool_calls[0].args.new_string="1999"']
    with pytest.raises(Refused, match=r"carries edit_file \(edit-a\) already"):
        source.fork(GRAPH, "t@call:edit_file", assign=given)
    report = source.fork(GRAPH, "t@call:edit_file", assign=['messages[0].content="what else?"'])
    assert only(report).reply == "corrected"


def test_all_files_are_replaced_whatever_their_reducer(source: Source) -> None:
    run = only(source.fork(GRAPH, "t@call:edit_file", assign=["files={}"]))
    state = source.state(GRAPH, run.thread).values
    assert state["files"] == {}
    assert "not found" in [message.content for message in state["messages"] if message.type == "tool"][-1]


def test_a_replay_before_the_subagents_runs_both_again_from_the_recording(source: Source) -> None:
    report = source.replay(GRAPH, "t@before:model:1", 2)
    for run in report.group.runs:
        state = source.state(GRAPH, run.thread).values
        assert (run.status, run.reply) == ("done", "a: 2025; b: 2025; 2025")
        assert notes(state["files"]) == {"/notes/a.md": 2025, "/notes/b.md": 2025}
    assert (report.side_effects.blocked, report.side_effects.escaped) == (0, 0)


@ON_BOTH
def test_a_replay_inside_a_subagent_goes_on_from_there(source: Source, reader: Reader) -> None:
    ns = subagents(reader)["b"]
    first = next(row for row in reversed(reader.rows("t", ns)) if row.step == 1)
    report = source.replay(GRAPH, f"t@{first.id}")
    (run,) = report.group.runs
    assert (run.status, run.reply) == ("done", "a: 2025; b: 2025; 2025")
    assert notes(source.state(GRAPH, run.thread).values["files"]) == {"/notes/a.md": 2025, "/notes/b.md": 2025}


# Comparing


def test_the_difference_names_the_file_and_the_messages_that_changed(source: Source) -> None:
    forked = only(source.fork(GRAPH, "t@call:fetch-a", patch=["fetch_page:year=2026"]))
    (again,) = source.replay(GRAPH, "t@call:task-a").group.runs
    with closing(open_reader(source.debug)) as debug:
        found = diff_tips(
            read_tip(debug, again.thread, str(again.head)), read_tip(debug, forked.thread, str(forked.head))
        )
    assert found.reply is not None
    assert (found.reply.left, found.reply.right) == ("a: 2025; b: 2025; 2025", "a: 2026; b: 2025; 2026")
    paths = {change.path for change in found.state}
    assert 'files."/notes/a.md".content' in paths
    assert not any("/notes/b.md" in path and path.endswith("content") for path in paths)


# Exporting


@ON_BOTH
def test_an_example_of_each_turn_has_the_subagents_calls_and_the_files(reader: Reader) -> None:
    first, second = read_examples(Branch(reader, read_lineage(reader, "t")))
    assert (first.outputs["reply"], second.outputs["reply"]) == ("a: 2025; b: 2025; 2025", "corrected")
    calls = {call.id: (call.name, call.ns.partition(":")[0], call.inside) for call in first.tool_calls}
    assert calls == {
        **{f"task-{topic}": ("task", "", False) for topic in "ab"},
        **{f"fetch-{topic}": ("fetch_page", "tools", True) for topic in "ab"},
        **{f"note-{topic}": ("write_file", "tools", True) for topic in "ab"},
        "read-a": ("read_file", "", False),
    }
    assert [call.id for call in second.tool_calls if not call.before] == ["edit-a"]
    assert notes(second.outputs["state"]["files"]) == {"/notes/a.md": 2023, "/notes/b.md": 2025}  # type: ignore[index]
