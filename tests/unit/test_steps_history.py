"""What a history says beside stock's own facts: who wrote, what happened, what to be warned of."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from agentctl.errors import NotFound
from agentctl.records.rows import StoredCheckpoint
from agentctl.records.threads import History, Task
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.history import VALUE_BYTES, read_history
from agentctl.stores.reading.status import status_of
from agentctl.stores.reading.steps import AS_NODE, StepReader
from agentctl.stores.reading.view import read_checkpoint
from tests.catalog import CATALOG, config_of, go, sqlite_case, sqlite_thread
from tests.catalog.flows import Log, says


def history_of(folder: Path, name: str, **options: Any) -> History:
    case = CATALOG[name]
    with closing(open_reader(str(sqlite_thread(folder, case)))) as reader:
        return read_history(reader, case.thread, **options)


def edited(folder: Path, name: str, edit: Callable[[sqlite3.Connection], object]) -> Reader:
    """Runs a case, edits its file, and opens it."""
    path = sqlite_thread(folder, CATALOG[name])
    with closing(sqlite3.connect(path)) as connection:
        edit(connection)
        connection.commit()
    return open_reader(str(path))


def test_an_agent_thread_tells_its_story(tmp_path: Path) -> None:
    history = history_of(tmp_path, "agent")
    assert history.status == "done"
    assert [(row.step, row.wrote, row.next, row.summary) for row in history.items] == [
        (3, ("model",), (), 'reply "No refund is due: your order was delivered."'),
        (2, ("tools", "tools"), ("model",), 'lookup_order -> status "delivered", get_policy -> days 30'),
        (1, ("model",), ("tools", "tools"), "calls lookup_order(A1), get_policy(lost)"),
        (0, ("__start__",), ("model",), '"where is my order?"'),
        (-1, (), ("__start__",), '"where is my order?"'),
    ]
    assert history.notes == ()


def test_a_corrected_thread_names_the_head_that_the_customer_saw(tmp_path: Path) -> None:
    history = history_of(tmp_path, "agent corrected")
    by_step = {(row.branch, row.step): row for row in history.items}
    update, seen = by_step[0, 3], by_step[1, 3]
    assert history.n_branches == 2
    assert history.items[0].is_head and history.items[0].branch == 0
    assert update.source == "update"
    assert update.summary == 'lookup_order -> status "lost"'
    assert update.channels == ("messages",)
    assert history.notes == (f"the head descends from an update ({update.id[-8:]}); the customer saw {seen.id[-8:]}",)


def test_the_note_on_the_head_does_not_depend_on_the_page(tmp_path: Path) -> None:
    history = history_of(tmp_path, "agent corrected", limit=1)
    assert len(history.items) == 1
    assert history.truncated and history.n_total == 9 and history.n_branches == 2
    assert len(history.notes) == 1 and "the customer saw" in history.notes[0]


def test_a_thread_that_begins_with_an_update_has_no_earlier_head(tmp_path: Path) -> None:
    assert history_of(tmp_path, "update first").notes == ()


def test_a_replay_is_noted_as_a_fork(tmp_path: Path) -> None:
    history = history_of(tmp_path, "replay fork")
    assert history.notes[0].startswith("the head descends from a fork (")
    assert [row.summary for row in history.items if row.source == "fork"] == ["run again from here"]


def test_missing_steps_of_durability_exit_are_counted(tmp_path: Path) -> None:
    history = history_of(tmp_path, "exit twice")
    newest, oldest = history.items
    assert history.notes == (
        f"step 8 ({newest.id[-8:]}): 4 steps not stored (durability exit, or pruned)",
        f"step 3 ({oldest.id[-8:]}), no parent: 4 steps not stored (durability exit, or pruned)",
    )
    assert newest.wrote == oldest.wrote == ("collect", "decide", "answer")
    assert oldest.summary == 'log = ["input", "collect", "decide", "answer"]'


def test_a_half_done_step_says_what_may_have_run(tmp_path: Path) -> None:
    history = history_of(tmp_path, "half done sends")
    row = history.items[0]
    assert history.status == "error"
    assert row.error == "ValueError('page d is missing')"
    assert row.summary == "log = [\"plan\"]; read failed: ValueError('page d is missing')"
    assert len(history.notes) == 1
    assert history.notes[0].startswith(f"{row.id[-8:]}: read (3) finished and will not run again; read did not")


def test_a_task_whose_rows_were_lost_may_have_run(tmp_path: Path) -> None:
    """A crash between the two: the tool ran, its writes were not stored, its sibling's were."""

    def lose(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM writes WHERE task_path = '~__pregel_pull, right'")
        connection.execute("DELETE FROM checkpoints WHERE json_extract(CAST(metadata AS TEXT), '$.step') >= 2")

    with closing(edited(tmp_path, "join", lose)) as reader:
        history = read_history(reader, "t-join")
    assert history.items[0].next == ("left", "right")
    assert history.status == "pending"
    assert "left finished and will not run again; right did not finish and may already have run" in history.notes[0]


def test_a_stop_before_a_node_is_not_half_done(tmp_path: Path) -> None:
    history = history_of(tmp_path, "interrupt before")
    assert history.status == "pending"
    assert history.notes == ()


def test_a_missing_parent_is_noted_and_the_writers_unknown(tmp_path: Path) -> None:
    def lose(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM checkpoints WHERE json_extract(CAST(metadata AS TEXT), '$.step') = 1")

    with closing(edited(tmp_path, "linear", lose)) as reader:
        history = read_history(reader, "t-linear")
    orphan = next(row for row in history.items if row.step == 2)
    assert orphan.wrote == ("?",)
    assert orphan.next == ("answer",)
    assert f"the parent of {orphan.id[-8:]} is not stored here: {orphan.parent}" in history.notes


def test_an_error_handler_is_named_as_the_writer(tmp_path: Path) -> None:
    history = history_of(tmp_path, "handled error")
    assert history.items[0].wrote == ("__error_handler__bureau",)
    assert history.items[1].next == ("bureau",)
    assert history.items[1].error == "ValueError('the bureau did not answer')"


def test_a_goto_on_a_finished_thread_keeps_stocks_empty_next_and_the_true_writer(tmp_path: Path) -> None:
    history = history_of(tmp_path, "goto after end")
    by_step = {row.step: row for row in history.items}
    assert by_step[3].next == ()
    assert by_step[4].wrote == ("decide",)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("linear", "done"),
        ("failed", "error"),
        ("interrupt inside", "interrupted"),
        ("asking and failing", "error"),
        ("pending sends", "pending"),
        ("functional", "interrupted"),
        ("half done resumed", "done"),
        ("exit interrupted", "interrupted"),
    ],
)
def test_the_status_is_that_of_the_head(name: str, status: str, tmp_path: Path) -> None:
    assert history_of(tmp_path, name).status == status


def test_a_finished_step_that_was_not_saved_is_pending() -> None:
    assert status_of([Task(id="1", name="a", path="", finished=True)]) == "pending"
    assert status_of([]) == "done"


def test_all_namespaces_are_merged_newest_first_and_only_the_root_has_a_head(tmp_path: Path) -> None:
    history = history_of(tmp_path, "subgraph", all_namespaces=True)
    assert [row.id for row in history.items] == sorted((row.id for row in history.items), reverse=True)
    assert len({row.ns for row in history.items}) == 2
    assert [row.ns for row in history.items if row.is_head] == [""]
    assert history.n_total == 9


def test_one_namespace_can_be_listed(tmp_path: Path) -> None:
    case = CATALOG["subgraph"]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader:
        inner = next(ns for ns in reader.namespaces(case.thread) if ns)
        history = read_history(reader, case.thread, ns=inner)
        assert [row.wrote for row in history.items] == [("match",), ("fetch",), ("__start__",), ()]
        with pytest.raises(NotFound, match="has no namespace"):
            read_history(reader, case.thread, ns="default")


def test_an_update_of_ours_keeps_the_node_it_was_written_as(tmp_path: Path) -> None:
    case = CATALOG["linear"]
    with sqlite_case(tmp_path, case) as (path, graph):
        place = next(s.config for s in graph.get_state_history(config_of(case.thread)) if s.next == ("decide",))
        graph.update_state(place | {"metadata": {AS_NODE: "collect"}}, {"log": ["fixed"]}, as_node="collect")
        with closing(open_reader(str(path))) as reader:
            head = read_history(reader, case.thread).items[0]
    assert (head.source, head.wrote, head.as_node) == ("update", ("collect",), "collect")


def test_an_update_as_a_node_that_was_waiting_is_known_by_its_task(tmp_path: Path) -> None:
    case = CATALOG["interrupt inside"]
    with sqlite_case(tmp_path, case) as (path, graph):
        graph.update_state(config_of(case.thread), {"log": ["by hand"]}, as_node="review")
        with closing(open_reader(str(path))) as reader:
            head, asked = read_history(reader, case.thread).items[:2]
    assert (head.wrote, head.as_node, head.summary) == (("review",), "review", 'log = ["by hand"]')
    assert asked.next == ("review",)


def test_an_entrypoint_that_left_no_rows_is_a_question_mark(tmp_path: Path) -> None:
    def lose(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM writes")

    with closing(edited(tmp_path, "functional", lose)) as reader:
        row = read_history(reader, "t-functional").items[0]
    assert row.next == ("?",)


class CountingReader:
    """Passes everything on and remembers which checkpoints were read with state, and the largest value read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.state_read: list[str] = []
        self.largest_write = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def stored(self, thread: str, ns: str, ids: Collection[str], **options: Any) -> Iterator[StoredCheckpoint]:
        self.state_read += ids
        return self._reader.stored(thread, ns, ids, **options)

    def writes(self, *args: Any, **options: Any) -> Any:
        found = self._reader.writes(*args, **options)
        self.largest_write = max([self.largest_write, *(len(w.value.data) for w in found if w.value is not None)])
        return found


@pytest.mark.parametrize("name", ["linear", "two turns", "fan out", "join", "agent two turns", "delta"])
def test_state_is_read_for_the_tip_alone(name: str, tmp_path: Path) -> None:
    case = CATALOG[name]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader:
        counting = CountingReader(reader)
        history = read_history(counting, case.thread)  # type: ignore[arg-type]
        assert set(counting.state_read) == {history.head}


def test_reading_in_small_chunks_reads_no_more_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentctl.stores.reading.steps._IDS_PER_READ", 3)
    monkeypatch.setattr("agentctl.stores.reading.steps.LOOK_BACK", 2)
    case = CATALOG["agent two turns"]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader:
        counting = CountingReader(reader)
        history = read_history(counting, case.thread)  # type: ignore[arg-type]
        assert set(counting.state_read) == {history.head}
        assert [row.next for row in history.items[:6]] == [
            (),
            ("model",),
            ("tools", "tools"),
            ("model",),
            ("__start__",),
            (),
        ]


def test_large_values_are_named_and_not_read_but_questions_are(tmp_path: Path) -> None:
    large = "x" * (VALUE_BYTES + 1)
    graph = StateGraph(Log)
    graph.add_node("write", lambda state: {"log": [large]})
    graph.add_node("ask", lambda state: {"log": [interrupt(large)]})
    graph.add_edge(START, "write").add_edge("write", "ask")
    path = tmp_path / "large.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        go(graph.compile(checkpointer=saver), "t", {"log": []})
    with closing(open_reader(str(path))) as reader:
        counting = CountingReader(reader)
        row = read_history(counting, "t").items[0]  # type: ignore[arg-type]
        assert row.summary.startswith(f"log = ({len(large) + 4:,} bytes); asks: ")
        assert [interrupt.value for interrupt in row.interrupts] == [large]


def test_a_limit_reads_the_rows_of_its_page_only(tmp_path: Path) -> None:
    graph = StateGraph(Log)
    graph.add_node("work", says("work"))
    graph.add_conditional_edges(
        "work", lambda state: "work" if len(state["log"]) < 60 else "__end__", ["work", "__end__"]
    )
    graph.add_edge(START, "work")
    path = tmp_path / "long.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"log": []}, config_of("t") | {"recursion_limit": 100}, durability="sync")
    with closing(open_reader(str(path))) as reader:
        history = read_history(reader, "t", limit=5)
    assert [row.step for row in history.items] == [60, 59, 58, 57, 56]
    assert history.n_total == 62
    assert all(row.wrote == ("work",) for row in history.items)


def test_a_value_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    def damage(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE writes SET type = 'pickle' WHERE channel = '__error__'")

    with closing(edited(tmp_path, "failed", damage)) as reader:
        history = read_history(reader, "t-failed")
    assert history.status == "error"
    assert "pickle" in (history.items[0].error or "")


def test_damaged_metadata_is_noted(tmp_path: Path) -> None:
    def damage(connection: sqlite3.Connection) -> None:
        connection.execute(
            "UPDATE checkpoints SET metadata = 'no json' WHERE json_extract(CAST(metadata AS TEXT), '$.step') = 1"
        )

    with closing(edited(tmp_path, "linear", damage)) as reader:
        history = read_history(reader, "t-linear")
    assert len(history.items) == 5
    assert any("cannot be read" in note for note in history.notes)


def test_a_view_shows_results_changes_and_the_subgraphs_namespace(tmp_path: Path) -> None:
    case = CATALOG["subgraph interrupted"]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader:
        head = read_history(reader, case.thread).head
        view = read_checkpoint(reader, case.thread, "", head)
        inner = next(ns for ns in reader.namespaces(case.thread) if ns)
        assert view.changed == ("log",)
        assert view.values == {"log": ["input", "pre"]}
        assert [(task.name, task.ns, task.finished) for task in view.tasks] == [("verify", inner, False)]
        assert [interrupt.value for interrupt in view.tasks[0].interrupts] == ["which employer?"]
        before = read_checkpoint(reader, case.thread, "", view.parent or "")
        assert before.tasks[0].result == (("log", ["pre"]),)


def test_a_view_of_an_agent_has_its_messages(tmp_path: Path) -> None:
    case = CATALOG["agent"]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader:
        view = read_checkpoint(reader, case.thread, "", read_history(reader, case.thread).head)
        assert [message.role for message in view.messages] == ["human", "ai", "tool", "tool", "ai"]


def test_a_view_of_an_unknown_id_is_not_found(tmp_path: Path) -> None:
    case = CATALOG["linear"]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader, pytest.raises(NotFound, match="ffff"):
        read_checkpoint(reader, case.thread, "", "ffff")


def test_steps_come_in_the_order_asked_for_and_unknown_ids_are_left_out(tmp_path: Path) -> None:
    case = CATALOG["linear"]
    with closing(open_reader(str(sqlite_thread(tmp_path, case)))) as reader:
        steps = StepReader(reader, case.thread)
        oldest_first = tuple(reversed(steps.tree.ids))
        assert [step.row.id for step in steps.steps([*oldest_first, "unknown", oldest_first[0]])] == list(oldest_first)
        assert list(steps.next(oldest_first).values())[:2] == [("__start__",), ("collect",)]
        assert list(steps.wrote(oldest_first).values())[1:3] == [("__start__",), ("collect",)]
        assert steps.tasks(["unknown"]) == {}
