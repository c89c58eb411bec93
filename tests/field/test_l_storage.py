"""Reports L, and G7 and G8: how large stores get, and what is lost when somebody clears them."""

from __future__ import annotations

import operator
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
import yaml
from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send

from agentctl.errors import Refused
from agentctl.stores.base import StoreInfo
from agentctl.stores.deleting import open_deleter
from agentctl.testing import CliResult, run_cli
from tests.catalog import CATALOG, config_of, go, run_case
from tests.catalog.scripted import ScriptedModel
from tests.support.cli import hours_later
from tests.support.damage import Rows, postgres_rows, sqlite_rows
from tests.support.postgres import new_database
from tests.support.pruning import clone, faults, states


@dataclass(frozen=True)
class Shop:
    """A store that may be written, three hours after its threads were made."""

    rows: Rows
    cwd: Path

    def __call__(self, *words: object, terminal: bool = False) -> CliResult:
        return run_cli(*map(str, words), cwd=self.cwd, terminal=terminal, now=hours_later)

    def n_rows(self, thread: str) -> int:
        tables = ["checkpoints", "{writes}", *(["checkpoint_blobs"] if self.rows.kind == "postgres" else [])]
        return sum(
            int(self.rows.sql(f"SELECT count(*) FROM {table} WHERE thread_id = ?", thread)[0][0]) for table in tables
        )


def _shop(rows: Rows, folder: Path) -> Shop:
    profiles = {"prod": {"store": rows.url, "default": True, "access": "write"}}
    (folder / "agentctl.yaml").write_text(yaml.safe_dump({"profiles": profiles}), "utf-8")
    return Shop(rows, folder)


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("sqlite")
    with sqlite_rows(folder) as rows:
        yield _shop(rows, folder)


@pytest.fixture(scope="module")
def postgres(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with new_database(postgres_url) as url, postgres_rows(url) as rows:
        yield _shop(rows, tmp_path_factory.mktemp("postgres"))


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest) -> Shop:
    found: Shop = request.getfixturevalue(request.param)
    return found


def chat(shop: Shop, thread: str, n_turns: int, *, text: str = "question") -> Any:
    """A conversation of three checkpoints a turn."""
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]})
    builder.add_edge(START, "agent")
    graph = builder.compile(checkpointer=shop.rows.saver)
    for turn in range(n_turns):
        go(graph, thread, {"messages": [("user", f"{text} {turn}")]})
    return graph


def test_l1_size_names_threads_tables_and_channels_and_prune_shows_a_plan(postgres: Shop) -> None:
    chat(postgres, "l1", 3)
    whole = postgres("size", "prod::", "--json").json
    channels = postgres("size", "l1", "--by", "channel", "--json").json
    plan = postgres("prune", "prod::", "--older-than", "1h", "--keep-turns", "1", "--json").json

    assert {table["name"] for table in whole["database"]["tables"]} >= {"checkpoints", "checkpoint_blobs"}
    assert "l1" in {item["thread"] for item in whole["items"]}
    assert "messages" in {item["channel"] for item in channels["items"]}
    assert {item["thread"]: item["goes"]["n_checkpoints"] for item in plan["items"]}["l1"] == 6
    assert plan["applied"] is False
    assert len(postgres.rows.ids("l1")) == 9


def test_l2_full_messages_in_each_row_show_as_amplification(sqlite: Shop) -> None:
    chat(sqlite, "l2", 12, text="x" * 2000)
    (short,) = (sqlite("size", "l2", "--by", "thread", "--json").json["items"],)

    assert short[0]["amplification"] > 10
    assert short[0]["payload_bytes"] > 12 * 2000


def test_l3_the_largest_rows_are_named_without_being_read(sqlite: Shop) -> None:
    chat(sqlite, "l3", 1)
    large = 12_000_000
    sqlite.rows.sql("UPDATE checkpoints SET checkpoint = zeroblob(?) WHERE thread_id = 'l3'", large)
    tracemalloc.start()
    try:
        found = sqlite("size", "l3", "--by", "row", "--top", "1", "--json")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found.json["items"][0]["stored_bytes"] >= large
    assert peak_bytes < large
    assert sqlite("prune", "l3", "--delete", "--apply").code == 0


def test_l4_older_turns_stay_branchable_and_a_pruned_one_is_a_clear_refusal(shop: Shop) -> None:
    graph = chat(shop, "l4", 4)
    ids = shop.rows.ids("l4")
    plan = shop("prune", "l4", "--keep-turns", "1", "--keep-branchable", "--json").json["items"][0]
    assert [(turn["number"], turn["end_stays"]) for turn in plan["lost"]] == [(1, True), (2, True), (3, True)]

    shop("prune", "l4", "--keep-turns", "1", "--keep-branchable", "--apply")
    branched = go(graph, "l4", {"messages": [("user", "another way")]}, at=ids[8])

    assert [message.text for message in branched["messages"]][-3:] == ["answer 5", "another way", "answer 7"]
    refused = shop("show", f"l4@{ids[7]}")
    assert refused.code == 3
    assert ids[7] in refused.err


def test_l5_age_is_that_of_the_newest_row_of_any_namespace(shop: Shop) -> None:
    run_case(CATALOG["subgraph nested answered"], shop.rows.saver, "l5")
    listed = shop("prune", "prod::", "--delete", "--older-than", "2h", "--json").json["items"]
    young = shop("prune", "prod::", "--delete", "--older-than", "4h", "--json").json
    newest = shop.rows.sql("SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'l5'")[0][0]
    root = max(shop.rows.ids("l5"))
    # A row of a subgraph that a run left today makes the thread young, whatever its root graph says.
    later = f"ffffffff{newest[8:14]}6{newest[15:]}"
    shop.rows.sql("UPDATE checkpoints SET checkpoint_id = ? WHERE checkpoint_id = ?", later, newest)
    again = shop("prune", "prod::", "--delete", "--older-than", "2h", "--json").json["items"]
    shop.rows.sql("UPDATE checkpoints SET checkpoint_id = ? WHERE checkpoint_id = ?", newest, later)

    assert "l5" in {item["thread"] for item in listed}
    assert young["items"] == []
    assert root <= newest
    assert "l5" not in {item["thread"] for item in again}


def test_l6_rows_go_in_batches_with_a_pause_between(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    chat(shop, "l6", 4)
    left: list[int] = []
    monkeypatch.setattr("agentctl.cli.prune.time.sleep", lambda pause_s: left.append(shop.n_rows("l6")))

    shop("prune", "l6", "--delete", "--batch-rows", "5", "--pause", "0.5", "--apply")

    assert len(left) > 3
    assert left == sorted(left, reverse=True)
    assert all(first - second <= 5 + 3 for first, second in pairwise(left))
    assert shop.n_rows("l6") == 0


class Fan(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def test_l7_pending_writes_are_counted_apart_from_checkpoints(shop: Shop) -> None:
    builder = StateGraph(Fan)
    builder.add_node("read", lambda state: {"log": ["read"]})
    builder.add_conditional_edges(
        START, lambda state: [Send("read", {"log": ["z" * 20_000]}) for _ in range(3)], ["read"]
    )
    go(builder.compile(checkpointer=shop.rows.saver), "l7", {"log": []})
    items = shop("size", "l7", "--by", "channel", "--json").json["items"]
    thread = shop("size", "l7", "--by", "thread", "--json").json["items"][0]

    assert next(item for item in items if item["channel"] == "__pregel_tasks")["write_bytes"] > 60_000
    assert thread["write_bytes"] > 60_000


def _notes(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    number = len(messages)
    if isinstance(messages[-1], ToolMessage):
        return AIMessage(f"noted {number}", id=f"ai-{number}")
    given = {"file_path": f"/note-{number}.md", "content": "n" * 500}
    write = {"name": "write_file", "id": f"c-{number}", "args": given, "type": "tool_call"}
    return AIMessage("", id=f"ai-{number}", tool_calls=[write])


@pytest.fixture(scope="module")
def deep() -> Callable[[Shop, str], Any]:
    """A deep agent that writes a file a turn, and its thread of three turns on a store."""

    def ran(shop: Shop, thread: str) -> Any:
        graph = create_deep_agent(model=ScriptedModel(script=_notes), tools=[], checkpointer=shop.rows.saver)
        for turn in range(3):
            go(graph, thread, {"messages": [HumanMessage(f"note {turn}", id=f"h-{turn}")]})
        return graph

    return ran


def test_l8_g8_a_deep_agents_thread_is_small_and_keeps_its_messages_and_files(
    shop: Shop, deep: Callable[[Shop, str], Any]
) -> None:
    graph = deep(shop, "l8")
    before = states(graph, "l8")
    channels = {item["channel"]: item for item in shop("size", "l8", "--by", "channel", "--json").json["items"]}
    kept = shop("prune", "l8", "--keep-turns", "1", "--apply", "--json").json["items"][0]
    with_chain = states(graph, "l8")
    cut = shop("prune", "l8", "--keep-turns", "1", "--snapshot", "--apply", "--json").json["items"][0]
    after = states(graph, "l8")

    assert channels["messages"]["write_bytes"] > channels["messages"]["state_bytes"]
    assert any("delta channels" in note for note in kept["notes"])
    assert with_chain == {id: before[id] for id in with_chain}
    assert cut["goes"]["n_checkpoints"] > 0
    assert after == {id: before[id] for id in after}
    assert sorted(graph.get_state(config_of("l8")).values["files"]) == ["/note-10.md", "/note-2.md", "/note-6.md"]
    assert faults(shop.rows.url, "l8") == set()


SENT: list[str] = []


@tool
def send_mail(to: str) -> str:
    """Sends a mail."""
    SENT.append(to)
    return "sent"


def _mail(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    number = len(messages)
    if isinstance(messages[-1], ToolMessage) or messages[-1].text == "hello":
        return AIMessage("done", id=f"ai-{number}")
    mail = {"name": "send_mail", "id": f"c-{number}", "args": {"to": "ann"}, "type": "tool_call"}
    return AIMessage("", id=f"ai-{number}", tool_calls=[mail])


def test_g7_an_approved_tool_of_a_deep_agent_still_runs_after_the_rows_it_was_rebuilt_from_are_gone(
    sqlite: Shop,
) -> None:
    graph = create_deep_agent(
        model=ScriptedModel(script=_mail),
        tools=[send_mail],
        interrupt_on={"send_mail": True},
        checkpointer=sqlite.rows.saver,
    )
    go(graph, "g7", {"messages": [HumanMessage("hello", id="h-0")]})
    go(graph, "g7", {"messages": [HumanMessage("write to ann", id="h-1")]})
    SENT.clear()
    untouched = sqlite("prune", "prod::", "--keep-turns", "1", "--snapshot", "--json").json["items"]
    pruned = sqlite("prune", "g7", "--keep-turns", "1", "--snapshot", "--apply", "--json").json["items"][0]

    assert {item["thread"]: item["action"] for item in untouched}["g7"] == "skip"
    assert pruned["goes"]["n_checkpoints"] > 0
    go(graph, "g7", Command(resume={"decisions": [{"type": "approve"}]}))
    assert SENT == ["ann"]
    said = [message.text for message in graph.get_state(config_of("g7")).values["messages"]]
    assert said == ["hello", "done", "write to ann", "", "sent", "done"]


class Files(TypedDict, total=False):
    files: dict[str, str]
    n: int


def test_l9_a_channel_that_never_changes_shows_as_unchanged(shop: Shop) -> None:
    builder = StateGraph(Files)
    builder.add_node("step", lambda state: {"n": state.get("n", 0) + 1})
    builder.add_edge(START, "step")
    graph = builder.compile(checkpointer=shop.rows.saver)
    go(graph, "l9", {"files": {"law.txt": "x" * 5000}})
    for _ in range(9):
        go(graph, "l9", {"n": 0})
    items = {item["channel"]: item for item in shop("size", "l9", "--by", "channel", "--json").json["items"]}

    assert items["files"]["unchanged"] > 0.9
    assert items["n"]["unchanged"] < 0.7


def test_l10_vacuum_really_returns_the_space_and_shows_the_files_size(tmp_path: Path) -> None:
    with sqlite_rows(tmp_path) as rows:
        shop = _shop(rows, tmp_path)
        chat(shop, "t-0", 1, text="y" * 400_000)
        for n in range(1, 4):
            clone(rows.url, "t-0", f"t-{n}")
    path = Path(rows.url)
    before = path.stat().st_size
    kept = shop("prune", "prod::", "--delete", "--older-than", "1h", "--keep", "t-0", "--apply", "--json").json
    at_rest = path.stat().st_size
    done = shop("prune", "t-0", "--delete", "--apply", "--vacuum", "--json").json["total"]["compaction"]

    assert kept["total"]["n_pruned"] == 3
    assert at_rest == before
    assert done == {"before_bytes": before, "after_bytes": path.stat().st_size, "problem": ""}
    assert path.stat().st_size < 100_000
    assert not path.with_name(f"{path.name}-wal").exists()


def test_l11_a_thread_that_is_not_pruned_can_be_run_between_any_two_transactions(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat(shop, "l11", 4)
    live = chat(shop, "l11-live", 1)
    turns: list[int] = []

    def run(pause_s: float) -> None:
        turns.append(len(go(live, "l11-live", {"messages": [("user", "and now?")]})["messages"]))

    monkeypatch.setattr("agentctl.cli.prune.time.sleep", run)
    done = shop("prune", "l11", "--keep-turns", "1", "--batch-rows", "4", "--apply", "--json").json["items"][0]

    assert done["outcome"] == "done"
    assert turns == list(range(4, 4 + 2 * len(turns), 2))
    assert faults(shop.rows.url, "l11-live") == faults(shop.rows.url, "l11") == set()


def test_l12_a_thread_of_many_subgraph_rows_is_shown_by_namespace_and_they_go_with_their_step(shop: Shop) -> None:
    graph = run_case(CATALOG["subgraph parallel"], shop.rows.saver, "l12")
    CATALOG["subgraph parallel"].run(graph, "l12")
    sizes = shop("size", "l12", "--by", "namespace", "--json").json["items"]
    done = shop("prune", "l12", "--keep-turns", "1", "--apply", "--json").json["items"][0]

    assert len(sizes) > 1
    assert done["goes"]["n_checkpoints"] > len(done["lost"]) * done["lost"][0]["n_lost"]
    assert faults(shop.rows.url, "l12") == set()


def test_l13_both_databases_are_pruned_and_a_saver_is_refused_with_the_way_round(shop: Shop, tmp_path: Path) -> None:
    chat(shop, "l13", 2)
    assert shop("prune", "l13", "--keep-turns", "1", "--apply", "--json").json["total"]["goes"]["n_checkpoints"] == 3
    (tmp_path / "mine.py").write_text(
        "from langgraph.checkpoint.memory import InMemorySaver\n\ndef saver():\n    return InMemorySaver()\n"
    )
    refused = shop("prune", "--store", f"{tmp_path / 'mine.py'}:saver", "--keep-turns", "1")

    assert refused.code == 5
    assert "is a saver" in refused.err
    assert "--store FILE.sqlite|postgresql://..." in refused.err


def test_l14_an_agent_server_is_refused_and_the_hint_says_that_its_prune_takes_a_strategy() -> None:
    server: Any = SimpleNamespace(info=StoreInfo("server", "https://agents.example"))  # type: ignore[arg-type]

    with pytest.raises(Refused, match="Agent Server") as refused:
        open_deleter("https://agents.example", server)
    assert "strategy said: the default is to delete" in str(refused.value.hint)


def test_l15_rows_that_no_thread_leads_to_any_more_are_found_and_go(shop: Shop) -> None:
    run_case(CATALOG["subgraph nested answered"], shop.rows.saver, "l15")
    shop.rows.sql("DELETE FROM checkpoints WHERE thread_id = 'l15' AND checkpoint_ns = ''")
    found = shop("doctor", "--all", "prod::", "--json").json["items"]
    done = shop("prune", "prod::", "--delete", "--status", "empty", "--apply", "--json").json

    assert "thread_headless" in {item["code"] for item in found if item["thread"] == "l15"}
    assert {item["thread"]: item["outcome"] for item in done["items"]}["l15"] == "done"
    assert shop.n_rows("l15") == 0


def test_l16_a_thread_that_becomes_busy_after_it_was_planned_is_left_whole(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = chat(shop, "l16", 4)
    monkeypatch.setattr(
        "agentctl.cli.prune.time.sleep", lambda pause_s: go(graph, "l16", {"messages": [("user", "still here")]})
    )
    done = shop("prune", "l16", "--delete", "--batch-rows", "6", "--apply", "--json")

    item = done.json["items"][0]
    assert done.code == 1
    assert item["outcome"] == "overtaken"
    assert "written to meanwhile" in item["notes"][0]
    assert faults(shop.rows.url, "l16") == set()
    assert graph.get_state(config_of("l16")).values["messages"][-2].text == "still here"


def test_l17_what_a_sweeper_of_rows_leaves_is_found_and_prune_leaves_none_of_it(shop: Shop) -> None:
    chat(shop, "l17", 3)
    clone(shop.rows.url, "l17", "l17-swept")
    shop.rows.delete("l17-swept", shop.rows.ids("l17-swept")[4])
    swept = shop("doctor", "l17-swept", "--json")
    for thread in ("l17", "l17-swept"):
        shop("prune", thread, "--keep-turns", "1", "--keep-branchable", "--apply")

    assert swept.code == 1
    assert {"parent_missing", "writes_orphaned"} <= {item["code"] for item in swept.json["items"]}
    for thread in ("l17", "l17-swept"):
        assert shop("doctor", thread, "--json").json["n_faults"] == 0


def test_l18_a_thread_that_is_gone_since_it_was_listed_does_not_stop_the_others(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"l18-{letter}" for letter in "abc"]
    chat(shop, names[0], 3)
    for name in names[1:]:
        clone(shop.rows.url, names[0], name)
    monkeypatch.setattr("agentctl.cli.prune.time.sleep", lambda pause_s: shop.rows.saver.delete_thread(names[1]))
    words = ("prune", "prod::", "--delete", "--status", "done", "--batch-rows", "9", "--apply", "--json")
    done = shop(*words, *(word for name in _others(shop, names) for word in ("--keep", name)))

    outcomes = {item["thread"]: item["outcome"] for item in done.json["items"]}
    assert done.code == 0
    assert {name: outcomes.get(name) for name in names} == {names[0]: "done", names[1]: None, names[2]: "done"}


def _others(shop: Shop, names: list[str]) -> list[str]:
    found = shop("threads", "prod::", "--limit", "0", "--json").json["items"]
    return [item["thread"] for item in found if item["thread"] not in names]


def test_l19_a_deleted_thread_has_no_row_left_in_any_table(shop: Shop) -> None:
    run_case(CATALOG["subgraph nested answered"], shop.rows.saver, "l19")
    n_before = shop.n_rows("l19")
    done = shop("prune", "l19", "--delete", "--apply", "--json").json["items"][0]

    goes = done["goes"]
    assert n_before == goes["n_checkpoints"] + goes["n_writes"] + goes["n_blobs"]
    assert (shop.n_rows("l19"), done["faults"]) == (0, [])


def test_l20_tables_of_a_shallow_saver_are_refused_without_a_word_of_history(
    fresh_postgres_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(fresh_postgres_url) as server:
        server.execute(
            "CREATE TABLE checkpoints (thread_id text, checkpoint_ns text DEFAULT '', type text, checkpoint jsonb,"
            " metadata jsonb, PRIMARY KEY (thread_id, checkpoint_ns))"
        )
    for words in (("threads",), ("prune", "--keep-turns", "1")):
        refused = run_cli(*words, "--store", fresh_postgres_url, cwd=tmp_path)
        assert refused.code == 4
        assert "shallow saver: one state a thread and no history" in refused.err


def test_l21_bytes_are_shown_by_message_and_by_field(shop: Shop) -> None:
    run_case(CATALOG["agent"], shop.rows.saver, "l21")
    messages = shop("size", "l21", "--by", "message", "--json").json["items"]
    fields = shop("size", "l21", "--by", "field", "--json").json["items"]

    assert {str(item["detail"]).split()[0] for item in messages} >= {"human", "ai", "tool"}
    assert all(item["stored_bytes"] > item["payload_bytes"] > 0 for item in messages if item["n_values"] > 1)
    assert "messages[].content" in {item["name"] for item in fields}


def test_l22_thousands_of_threads_are_passed_in_pages_and_not_held(shop: Shop) -> None:
    chat(shop, "l22", 1)
    columns = "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"
    number = "CAST(n AS TEXT)" if shop.rows.kind == "sqlite" else "n::text"
    shop.rows.sql(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000)"
        f" INSERT INTO checkpoints (thread_id, {columns}) SELECT 'l22-' || {number}, {columns} FROM numbers,"
        " (SELECT * FROM checkpoints WHERE thread_id = 'l22' ORDER BY checkpoint_id LIMIT 1) AS one"
    )
    try:
        shop("prune", "prod::", "--delete", "--older-than", "100d")
        tracemalloc.start()
        try:
            found = shop("prune", "prod::", "--delete", "--older-than", "100d", "--json").json["total"]
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    finally:
        shop.rows.sql(
            "DELETE FROM checkpoints WHERE thread_id LIKE 'l22-%'"
            if shop.rows.kind == "sqlite"
            else "DELETE FROM checkpoints WHERE thread_id LIKE 'l22-%%'"
        )

    assert found["n_passed"] == found["n_threads"] > 3000
    assert peak_bytes < 5_000_000


def test_l23_turns_are_kept_and_not_rows_and_the_oldest_of_them_can_be_made_again(shop: Shop) -> None:
    graph = chat(shop, "l23", 4)
    shop("prune", "l23", "--keep-turns", "2", "--apply")
    ids = shop.rows.ids("l23")

    assert len(ids) == 6
    again = go(graph, "l23", None, at=ids[1])
    assert [message.text for message in again["messages"]][-2:] == ["question 2", "answer 5"]


def test_l24_a_debug_fork_that_is_the_newest_row_does_not_cost_the_branch_that_the_customer_saw(shop: Shop) -> None:
    graph = chat(shop, "l24", 3)
    customer = graph.get_state(config_of("l24"))
    old = shop.rows.ids("l24")[2]
    graph.update_state(
        config_of("l24", checkpoint_ns="", checkpoint_id=old),
        {"messages": [("user", "debugging")]},
        as_node="__start__",
    )
    go(graph, "l24", None)
    done = shop("prune", "l24", "--keep-turns", "1", "--apply", "--json").json["items"][0]

    assert any("descends from an edit" in note for note in done["notes"])
    assert graph.get_state(customer.config).values == customer.values
    assert shop("history", "l24", "--json").json["n_branches"] == 2
