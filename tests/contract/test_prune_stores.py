"""Pruning on both kinds of database: what stays loads and runs in stock LangGraph as before; nothing is orphaned."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.graph.message import _messages_delta_reducer

from agentctl.datasets.branch import Branch
from agentctl.datasets.examples import read_examples
from agentctl.errors import Refused, StoreError
from agentctl.stores.deleting import Overtaken, open_deleter
from agentctl.stores.open import open_reader
from agentctl.stores.reading.lineage import read_lineage
from agentctl.upkeep.prune.request import PruneRequest
from tests.catalog import CATALOG, Saver, config_of, go
from tests.support.damage import Rows, postgres_rows
from tests.support.pruning import clone, deleter_of, faults, named, plain, prune, request, states

CASES = (
    "linear",
    "half done sends",
    "subgraph persistent",
    "subgraph nested answered",
    "delta",
    "exit twice",
    "functional answered",
)


def run_twice(rows: Rows, name: str, thread: str) -> Any:
    """Runs a case twice on one thread, so that it has turns to lose."""
    graph = CATALOG[name].build(rows.saver)
    for _ in range(2):
        CATALOG[name].run(graph, thread)
    return graph


def run_on(graph: Any, name: str, thread: str, fork_at: str) -> list[Any]:
    """What comes of forking an old checkpoint, and of the thread's next run."""
    try:
        forked = plain(go(graph, thread, None, at=fork_at))
    except ValueError as error:  # of a case whose node raises
        forked = str(error)
    CATALOG[name].run(graph, thread)
    return [forked, plain(graph.get_state(config_of(thread)).values)]


def n_stored(rows: Rows, thread: str) -> int:
    return int(rows.sql("SELECT count(*) FROM checkpoints WHERE thread_id = ?", thread)[0][0])


def test_threads_are_read_in_pages_and_each_is_told_once(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentctl.upkeep.prune.prune._THREADS_PER_READ", 3)
    run_twice(rows, "silent", "p-0")
    names = {"p-0", *(clone(rows.url, "p-0", f"p-{n}") for n in range(1, 8))}

    told = [one.thread for one in prune(rows.url, PruneRequest(request().now, delete=True), apply=False)]

    assert sorted(name for name in told if name in names) == sorted(names)
    assert len(told) == len(set(told))


def test_a_plan_of_whole_threads_weighs_them_a_page_at_once_as_single_rows_do(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_twice(rows, "subgraph persistent", "weighed")
    with deleter_of(rows.url) as deleter:
        overview = deleter.overviews(["weighed", "no such thread"])
        weights = deleter.weights("weighed")
        blobs = deleter.blobs_beside("weighed", ())
        assert overview.keys() == {"weighed"}
        assert overview["weighed"].mark == deleter.mark("weighed")
        assert overview["weighed"].rows.n_rows == deleter.n_rows("weighed")
        assert overview["weighed"].rows.n_bytes == sum(weight.n_bytes for weight in weights) + blobs.n_bytes
        monkeypatch.setattr(type(deleter), "weights", None)
        monkeypatch.setattr(type(deleter), "mark", None)

    told = {one.thread: one for one in prune(rows.url, request(delete=True), apply=False)}

    assert (told["weighed"].goes, told["weighed"].status) == (overview["weighed"].rows, "done")


def test_a_thread_that_asks_is_touched_only_where_it_is_named(rows: Rows) -> None:
    CATALOG["interrupt inside"].run(CATALOG["interrupt inside"].build(rows.saver), "asking")
    n_before = n_stored(rows, "asking")

    told = {one.thread: one for one in prune(rows.url, request(delete=True, older_than=None), apply=False)}

    assert told["asking"].action == "skip"
    assert "a question waits" in told["asking"].reason
    (named_,) = prune(rows.url, named(request(delete=True), "asking"))
    assert "goes with it" in named_.notes[0]
    assert named_.goes.n_checkpoints == n_before


def test_a_thread_whose_head_cannot_be_read_is_touched_only_where_it_is_named(sqlite: Rows) -> None:
    CATALOG["interrupt inside"].run(CATALOG["interrupt inside"].build(sqlite.saver), "sealed")
    sqlite.sql("UPDATE checkpoints SET type = 'msgpack+aes' WHERE thread_id = ?", "sealed")

    for asked in (request(delete=True), request()):
        told = {one.thread: one for one in prune(sqlite.url, asked, apply=False)}
        assert (told["sealed"].action, told["sealed"].status) == ("skip", None)
        assert "LANGGRAPH_AES_KEY is not set" in told["sealed"].reason
    (named_,) = prune(sqlite.url, named(request(delete=True), "sealed"))
    assert (named_.outcome, n_stored(sqlite, "sealed")) == ("done", 0)


@pytest.mark.parametrize("name", CASES)
def test_what_stays_loads_and_runs_on_as_it_did_and_nothing_is_orphaned(rows: Rows, name: str) -> None:
    thread = f"thinned {name}"
    graph = run_twice(rows, name, thread)
    before, known, n_before = states(graph, thread), faults(rows.url, thread), n_stored(rows, thread)
    whole = clone(rows.url, thread, f"whole {name}")

    (told,) = prune(rows.url, named(request(keep_branchable=name == "linear"), thread))
    (again,) = prune(rows.url, named(request(keep_branchable=name == "linear"), thread))

    after = states(graph, thread)
    assert after == {id: before[id] for id in after}
    assert faults(rows.url, thread) <= known
    assert told.faults == ()
    assert told.goes.n_checkpoints == n_before - n_stored(rows, thread)
    assert again.goes.n_rows == 0
    assert (told.goes.n_checkpoints > 0) == (name != "delta")
    assert told.goes.n_checkpoints == 0 or told.lost
    fork_at = min(after)
    assert run_on(graph, name, thread, fork_at) == run_on(graph, name, whole, fork_at)


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=50)]


def chat(saver: Saver, thread: str, n_turns: int) -> Any:
    """A conversation in a delta channel that has not stored a snapshot yet."""
    graph = StateGraph(Chat)
    graph.add_node("agent", lambda state: {"messages": [AIMessage(f"reply {len(state['messages'])}")]})
    graph.add_edge(START, "agent")
    compiled = graph.compile(checkpointer=saver)
    for turn in range(n_turns):
        go(compiled, thread, {"messages": [HumanMessage(f"question {turn}", id=f"h-{turn}")]})
    return compiled


def test_delta_channels_keep_what_they_are_rebuilt_from(rows: Rows) -> None:
    chat(rows.saver, "chain", 4)

    (told,) = prune(rows.url, named(request(), "chain"))

    assert told.goes.n_rows == 0
    assert any("delta channels" in note and "--snapshot" in note for note in told.notes)


def test_delta_channels_get_a_snapshot_in_place_of_what_they_were_rebuilt_from(rows: Rows) -> None:
    graph = chat(rows.saver, "snapshot", 4)
    before = states(graph, "snapshot")

    (told,) = prune(rows.url, named(request(snapshot=True), "snapshot"))

    after = states(graph, "snapshot")
    assert told.goes.n_checkpoints == 9
    assert [turn.number for turn in told.lost] == [1, 2, 3]
    assert after == {id: before[id] for id in after}
    assert faults(rows.url, "snapshot") == set()
    go(graph, "snapshot", {"messages": [HumanMessage("and now?", id="h-4")]})
    values = graph.get_state(config_of("snapshot")).values["messages"]
    assert [message.text for message in values][-3:] == ["reply 7", "and now?", "reply 9"]
    assert len(values) == 10


def test_a_snapshot_is_also_taken_at_each_end_of_a_turn_that_stays(rows: Rows) -> None:
    graph = chat(rows.saver, "ends", 4)
    before = states(graph, "ends")

    prune(rows.url, named(request(snapshot=True, keep_branchable=True), "ends"))

    after = states(graph, "ends")
    assert len(after) == 6
    assert after == {id: before[id] for id in after}
    end = min(after)
    assert [
        one[1] for one in plain(go(graph, "ends", {"messages": [HumanMessage("no", id="n")]}, at=end))["messages"]
    ] == [
        "question 0",
        "reply 1",
        "no",
        "reply 3",
    ]


def test_a_value_that_would_load_otherwise_takes_everything_back(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = chat(rows.saver, "back", 3)
    before = states(graph, "back")
    monkeypatch.setattr("agentctl.upkeep.prune.needed._delta_path", lambda *_: ())

    with pytest.raises(StoreError, match="would not load as before"):
        prune(rows.url, named(request(), "back"))

    assert states(graph, "back") == before


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000])
def test_a_thread_that_is_deleted_leaves_no_row_in_any_table(rows: Rows, batch_rows: int) -> None:
    thread = f"50%_{batch_rows}"
    run_twice(rows, "subgraph nested answered", thread)
    like = clone(rows.url, thread, thread.replace("%", "0").replace("_", "x"))
    n_kept = n_stored(rows, like)

    (told,) = prune(rows.url, named(request(delete=True, batch_rows=batch_rows), thread))

    with deleter_of(rows.url) as deleter:
        assert deleter.n_rows(thread) == 0
    assert told.faults == ()
    assert told.goes.n_checkpoints == told.n_checkpoints > 0
    assert n_stored(rows, like) == n_kept


class Killed(BaseException):
    """Ends a pruning between two transactions, as a signal does."""


@pytest.mark.parametrize(("name", "delete"), [("subgraph nested answered", False), ("delta", True)])
def test_wherever_it_is_killed_what_is_left_is_whole(rows: Rows, name: str, delete: bool) -> None:
    thread = f"killed {name}"
    graph = run_twice(rows, name, thread)
    before, known = states(graph, thread), faults(rows.url, thread)
    asked = request(delete=delete, batch_rows=6, snapshot=True)
    n_done = iter(range(3))

    def pause() -> None:
        now = states(graph, thread)
        assert now == {id: before[id] for id in now}
        assert faults(rows.url, thread) <= known
        if next(n_done) == 2:
            raise Killed

    with pytest.raises(Killed):
        prune(rows.url, named(asked, thread), pause=pause)
    prune(rows.url, named(asked, thread))
    assert faults(rows.url, thread) <= known if not delete else n_stored(rows, thread) == 0


def test_a_thread_that_is_written_to_after_it_was_planned_is_left_as_it_is(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = run_twice(rows, "linear", "busy")
    from agentctl.upkeep.prune import execution

    def ran_meanwhile(self: Any, plan: Any, done: Any) -> None:
        CATALOG["linear"].run(graph, "busy")
        relink(self, plan, done)

    relink = execution.Execution._relink
    monkeypatch.setattr(execution.Execution, "_relink", ran_meanwhile)
    for asked in (request(), request(delete=True)):
        n_before = n_stored(rows, "busy")
        (told,) = prune(rows.url, named(asked, "busy"))
        assert told.outcome == "overtaken"
        assert told.goes.n_rows == 0
        assert n_stored(rows, "busy") > n_before
    assert faults(rows.url, "busy") == set()


def test_a_branch_that_leaves_within_the_last_turns_stays_and_the_plan_says_so(rows: Rows) -> None:
    graph = run_twice(rows, "linear", "beside")
    left_at = rows.ids("beside")[-1]
    CATALOG["linear"].run(graph, "beside")
    n_beside = len(rows.ids("beside")) - rows.ids("beside").index(left_at) - 1
    go(graph, "beside", {"log": ["again"]}, at=left_at)

    (told,) = prune(rows.url, named(request(keep_turns=2), "beside"), apply=False)

    assert told.goes.n_checkpoints == n_beside
    assert [note for note in told.notes if note.startswith(f"{n_beside} checkpoints stay on other branches")]
    (whole,) = prune(rows.url, named(request(keep_turns=1), "beside"), apply=False)
    assert not any("other branches" in note for note in whole.notes)


def test_a_debug_fork_as_the_newest_row_does_not_cost_the_branch_of_the_customer(rows: Rows) -> None:
    graph = run_twice(rows, "agent two turns", "forked")
    customer = graph.get_state(config_of("forked"))
    place = [state.config for state in graph.get_state_history(config_of("forked")) if "tools" in state.next][-1]
    graph.update_state(place, {"messages": [HumanMessage("debug", id="d")]}, as_node="__start__")

    (told,) = prune(rows.url, named(request(), "forked"))

    assert any("descends from an edit" in note for note in told.notes)
    kept = graph.get_state(customer.config)
    assert plain(kept.values) == plain(customer.values)


def test_orphans_that_were_there_before_go_too(rows: Rows) -> None:
    run_twice(rows, "linear", "orphans")
    old = rows.ids("orphans")[1]
    rows.delete("orphans", old)
    assert "writes_orphaned" in faults(rows.url, "orphans")

    prune(rows.url, named(request(), "orphans"))

    assert faults(rows.url, "orphans") == set()


def test_a_transaction_that_another_one_overtakes_is_rolled_back(postgres: Rows) -> None:
    run_twice(postgres, "linear", "raced")
    n_before = n_stored(postgres, "raced")
    with deleter_of(postgres.url) as deleter, pytest.raises(Overtaken), deleter.transaction() as deletion:
        deletion.mark("raced")
        postgres.sql("UPDATE checkpoints SET metadata = metadata WHERE thread_id = ?", "raced")
        deletion.delete_thread("raced")

    assert n_stored(postgres, "raced") == n_before


def test_a_role_that_may_not_delete_is_told_so_before_anything_goes(postgres: Rows) -> None:
    postgres.sql("CREATE ROLE looker LOGIN")
    try:
        postgres.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker")
        url = postgres.url.replace("postgres@", "looker@", 1)
        with deleter_of(url) as deleter, pytest.raises(StoreError, match="may not delete in") as refused:
            deleter.check_allowed(compact=False)
        assert "GRANT DELETE ON" in str(refused.value.hint)
    finally:
        postgres.sql("DROP OWNED BY looker")
        postgres.sql("DROP ROLE looker")


def test_postgres_gives_room_back_by_itself(postgres: Rows) -> None:
    with deleter_of(postgres.url) as deleter, pytest.raises(Refused, match="autovacuum"):
        deleter.check_allowed(compact=True)


def test_turns_are_numbered_on_after_older_ones_are_gone(rows: Rows) -> None:
    graph = CATALOG["agent two turns"].build(rows.saver)
    CATALOG["agent two turns"].run(graph, "numbered")
    with closing(open_reader(rows.url)) as reader:
        _, second = read_examples(Branch(reader, read_lineage(reader, "numbered")))
        prune(rows.url, named(request(), "numbered"))
        (left,) = read_examples(Branch(reader, read_lineage(reader, "numbered")))

    assert (left.turn, left.n_earlier) == (2, second.n_earlier)
    assert (left.inputs, left.outputs) == (second.inputs, second.outputs)


def test_tables_that_are_newer_are_refused(fresh_postgres_url: str) -> None:
    with postgres_rows(fresh_postgres_url) as rows:
        rows.sql("INSERT INTO checkpoint_migrations (v) VALUES (99)")
    with closing(open_reader(fresh_postgres_url)) as reader, pytest.raises(Refused, match="migration 99"):
        open_deleter(fresh_postgres_url, reader)


def test_a_saver_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from langgraph.checkpoint.memory import InMemorySaver\n\ndef saver():\n    return InMemorySaver()\n"
    )
    url = f"{tmp_path / 'mine.py'}:saver"
    with closing(open_reader(url)) as reader, pytest.raises(Refused, match="is a saver"):
        open_deleter(url, reader)
