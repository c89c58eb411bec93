"""Reports C: updates and forks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, MessagesState, StateGraph

from agentctl.experiments.runs.debug_threads import make_copies
from agentctl.stores.base import CopyPlan
from agentctl.stores.copying.selection import for_replay
from agentctl.stores.open import open_reader
from agentctl.testing import build_thread
from tests.catalog import config_of
from tests.support.application import ON_BOTH_STORES, Application, Apps
from tests.support.experiments import about_to_run, experiment_on


def _graph() -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [("ai", "hello")]})
    graph.add_edge(START, "agent")
    return graph.compile()


def _make(source: str, debug: str, meet: Barrier) -> tuple[str, ...]:
    """Makes copies as one command does, all the commands having found the same names free."""
    with experiment_on(source, _graph(), debug, on_threads=_once(meet)) as experiment:
        target = about_to_run(experiment.source, "t", "agent")
        plan: CopyPlan = for_replay(experiment.source, "t", "", target.id, "t")
        names, copies = make_copies(experiment, experiment.source, plan, "t", "replay", 3, {"agentctl_op": "replay"})
        assert [one.target.thread for one in copies] == list(names)
        assert all(one.verified for one in copies)
        return names


def _once(meet: Barrier) -> Any:
    waited: list[bool] = []

    def tell(threads: Any, kind: str) -> None:
        if not waited:
            waited.append(True)
            meet.wait(timeout=60)

    return tell


def _all_names(source: str, debug: str) -> list[str]:
    meet = Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(lambda _: _make(source, debug, meet), range(3)))
    return [name for names in made for name in names]


def test_c12_commands_that_run_at_once_make_threads_of_their_own(tmp_path: Path) -> None:
    source, debug = tmp_path / "prod" / "prod.sqlite", tmp_path / "debug.sqlite"
    source.parent.mkdir()
    build_thread(_graph(), source, "t", {"messages": [("human", "hi")]})

    names = _all_names(str(source), str(debug))

    assert sorted(names) == [f"t.replay-{number}" for number in range(1, 10)]
    with closing(open_reader(str(debug))) as reader:
        assert sorted(head.thread for head in reader.heads()) == sorted(names)


def test_c12_commands_that_run_at_once_on_postgres_make_threads_of_their_own(
    tmp_path: Path, fresh_postgres_url: str
) -> None:
    source = tmp_path / "prod.sqlite"
    build_thread(_graph(), source, "t", {"messages": [("human", "hi")]})

    names = _all_names(str(source), fresh_postgres_url)

    assert sorted(names) == [f"t.replay-{number}" for number in range(1, 10)]


def test_c1_an_update_names_its_node_also_where_two_ran_before(app: Apps) -> None:
    pair = app("flows.py:pair")
    pair.run({"log": []})
    with pair.stock() as graph:
        before_join = next(state for state in graph.get_state_history(config_of("t")) if state.next == ("join",))
        with pytest.raises(InvalidUpdateError, match="Ambiguous"):
            graph.update_state(before_join.config, {"log": ["mine"]})
    mine = pair.write("mine.json", '{"log": ["mine"]}')

    unnamed = pair("fork", "t@before:join", "--update", mine)
    forked = pair("fork", "t@before:a", "--update", mine, "--as-node", "a", "--json").json

    assert (unnamed.code, unnamed.err.splitlines()[0]) == (2, "error: --update needs --as-node")
    assert (forked["as_node"], forked["next"]) == ("a", ["join"])
    assert _values(pair, forked)["log"] == ["mine", "b", "join"], "what ran beside it is kept"


def test_c2_c3_c4_a_fork_from_which_nothing_runs_is_refused_with_what_would(app: Apps) -> None:
    line = app("flows.py:long_line")
    line.run({"log": []})
    mine = line.write("mine.json", '{"log": ["mine"]}')

    refused = line("fork", "t", "--update", mine, "--as-node", "n16")
    going_on = line("fork", "t@before:n3", "--update", mine, "--as-node", "n3", "--json").json
    wanted = line("fork", "t@before:n3", "--goto", "n15", "--json").json

    assert refused.code == 5
    assert "next is empty after n16" in refused.err
    table = dict(row.split() for row in refused.err.splitlines() if row.startswith("  n"))
    assert table == {f"n{number}": f"n{number + 1}" for number in range(16)}
    assert (going_on["next"], going_on["runs"][0]["nodes"]) == (["n4"], [f"n{number}" for number in range(4, 17)])
    assert (wanted["next"], wanted["runs"][0]["nodes"]) == (["n15"], ["n15", "n16"])
    left = line("fork", "t", "--update", mine, "--as-node", "n16", "--no-run", "--json").json
    assert (left["next"], left["runs"]) == ([], [])


def test_c5_an_update_of_a_node_that_routes_by_command_needs_the_route(app: Apps) -> None:
    routed = app("flows.py:routed")
    routed.run({"log": []})
    mine = routed.write("mine.json", '{"log": ["mine"]}')

    refused = routed("fork", "t@before:router", "--update", mine, "--as-node", "router")
    forked = routed(
        "fork", "t@before:router", "--update", mine, "--as-node", "router", "--goto", "right", "--json"
    ).json

    assert refused.code == 5
    assert "router says itself where to go, by Command" in refused.err
    assert refused.err.endswith("hint: say where: --goto left | right\n")
    assert (forked["next"], forked["runs"][0]["nodes"]) == (["right"], ["right"])
    assert _values(routed, forked)["log"] == ["mine", "right"]


@ON_BOTH_STORES
def test_c6_a_fork_of_the_first_row_has_the_new_input_alone(app: Apps) -> None:
    chat = app("agents.py:chat")
    chat.run({"messages": [HumanMessage("A")]})
    other = chat.write("other.json", '{"messages": [["human", "B"]]}')

    forked = chat("fork", "t@step:-1", "--input", other, "--json").json
    under = chat("fork", "t@step:-1", "--set", 'messages=[["human", "B"]]')

    assert _talk(chat, forked["runs"][0]["thread"]) == ["B", "reply to B"]
    made = chat("resolve", "t@step:0").out.split()[0]
    assert under.code == 5
    assert "the input that is read next" in under.err and "writes messages too" in under.err
    assert f"set it after that, at t@{made}, or change the input" in under.err


@ON_BOTH_STORES
def test_c7_a_shorter_list_replaces_a_longer_one_whatever_the_reducer(app: Apps) -> None:
    chat, line = app("agents.py:chat"), app("flows.py:line")
    chat.run({"messages": [HumanMessage("A")]}, {"messages": [HumanMessage("B")]})
    line.run({"log": []}, thread="line")

    messages = chat("fork", "t@before:agent:2", "--set", 'messages=[["human", "only"]]', "--json").json
    log = line("fork", "line@before:third", "--set", 'log=["only"]', "--json").json

    assert _talk(chat, messages["runs"][0]["thread"]) == ["only", "reply to only"]
    assert _values(line, log)["log"] == ["only", "third"]


def test_c8_an_edit_keeps_the_message_id_and_a_message_without_one_is_warned_of(app: Apps) -> None:
    chat = app("agents.py:chat")
    chat.run({"messages": [HumanMessage("A", id="h1")]})
    reply = chat("show", "t", "--messages", "--json").json["items"][-1]["message"]["id"]
    bare = chat.write("bare.json", '{"messages": [{"type": "ai", "content": "better"}]}')
    named = chat.write("named.json", f'{{"messages": [{{"type": "ai", "content": "better", "id": "{reply}"}}]}}')

    edited = chat("fork", "t@before:agent", "--set", 'messages[0].content="edited"', "--json").json
    added = chat("fork", "t", "--update", bare, "--as-node", "agent", "--no-run", "--json").json
    replaced = chat("fork", "t", "--update", named, "--as-node", "agent", "--no-run", "--json").json

    first = chat.debug("show", edited["runs"][0]["thread"], "--messages", "--json").json["items"][0]["message"]
    assert (first["id"], first["text"]) == ("h1", "edited")
    assert added["warnings"] == [f"the ai message of the update has no id: it comes after {reply} and replaces nothing"]
    assert _talk(chat, added["target"]["thread"]) == ["A", "reply to A", "better"]
    assert replaced["warnings"] == []
    assert _talk(chat, replaced["target"]["thread"]) == ["A", "better"]


def test_c9_a_fork_without_a_change_runs_the_step_again_and_says_what_had_finished(app: Apps) -> None:
    half = app("flows.py:half")
    half.run({"log": []})

    again = half("fork", "t", "--json").json
    answered = half("fork", "t", "--resume", '"yes"', "--json").json

    assert again["runs"][0]["nodes"] == ["a", "b"]
    assert again["warnings"] == ["finished in the source, and run again here: a"]
    assert answered["runs"][0]["nodes"] == ["b", "join"], "an answer leaves what had finished"
    assert answered["warnings"] == []


@pytest.mark.parametrize("name", ["flow", "async_flow"])
def test_c10_an_entrypoint_has_no_state_to_update_and_forks_by_what_its_tasks_returned(app: Apps, name: str) -> None:
    flow = app(f"entrypoints.py:{name}")
    flow.run_async(1, 2)
    saved = flow.write("saved.json", '{"a": 99}')

    refusals = [
        flow("fork", "t", *form)
        for form in (("--update", saved, "--as-node", name), ("--set", "a=99"), ("--goto", name))
    ]
    patched = flow("fork", f"t@before:{name}:2", "--patch", "look:a=7", "--json").json
    again = flow("fork", "t", "--input", flow.write("input.json", "5"), "--json")

    assert {refused.code for refused in refusals} == {5}
    for refused in refusals:
        assert "no state but the value that it saves for its next call" in refused.err
        assert "--answer TASK=JSON" in refused.err
    assert _returned(flow, patched) == {"scaled": 70, "previous": {"a": 2}}
    assert _returned(flow, again.json) == {"scaled": 50, "previous": {"a": 2}}
    assert again.json["plan"]["nodes"] == [name]


def test_c11_unknown_nodes_and_channels_are_refused_before_anything_is_written(app: Apps) -> None:
    line = app("flows.py:line")
    line.run({"log": []})
    mine, nope = line.write("mine.json", '{"log": ["mine"]}'), line.write("nope.json", '{"nope": 1}')

    for form, unknown in (
        (("--update", mine, "--as-node", "nope"), "node nope"),
        (("--goto", "nope"), "node nope"),
        (("--update", nope, "--as-node", "first"), "channel nope"),
        (("--set", "nope=1"), "channel nope"),
    ):
        refused = line("fork", "t@before:second", *form)
        assert (refused.code, f"the graph has no {unknown}" in refused.err) == (2, True)
        assert "hint: it has: " in refused.err
    assert not (line.folder / "debug" / "debug.sqlite").exists()


@ON_BOTH_STORES
def test_c12_c13_every_branch_is_counted_and_drawn_whatever_the_page(app: Apps) -> None:
    chat = app("agents.py:chat")
    chat.run({"messages": [HumanMessage("A", id="h1")]})
    with chat.stock() as graph:
        first = [state for state in graph.get_state_history(config_of("t")) if state.next == ("agent",)][-1].config
        for number in range(10):
            graph.invoke(
                None,
                graph.update_state(first, {"messages": [HumanMessage(f"edit {number}", id="h1")]}),
                durability="sync",
            )

    whole, page = (chat("history", "t", *limit, "--json").json for limit in ((), ("--limit", "5")))

    leaves = {row["id"] for row in whole["items"]} - {row["parent"] for row in whole["items"]}
    assert (whole["n_branches"], page["n_branches"], len(leaves)) == (11, 11, 11)
    assert len({row["branch"] for row in whole["items"]}) == 11
    assert (len(page["items"]), page["truncated"]) == (5, True)
    assert "the head descends from an update" in whole["notes"][0]
    saw = next(row for row in whole["items"] if row["summary"] == 'reply "reply to A"')
    assert whole["notes"][0].endswith(f"the customer saw {saw['id'][-8:]}")
    along = chat("history", "t", "--branch", saw["id"], "--json").json
    assert [row["source"] for row in along["items"]] == ["loop", "loop", "input"]


@ON_BOTH_STORES
def test_c14_the_checkpoint_before_a_message_is_the_parent_of_the_one_that_first_held_it(app: Apps) -> None:
    chat = app("agents.py:chat")
    chat.run({"messages": [HumanMessage("A")]}, {"messages": [HumanMessage("B", id="h2")]})
    other = chat.write("other.json", '{"messages": [["human", "other"]]}')
    turns = chat("show", "t", "--messages", "--json").json["items"]
    held_by = next(turn["checkpoint"] for turn in turns if turn["message"]["id"] == "h2")

    forked = chat("fork", f"t@{held_by}~1", "--input", other, "--json").json
    again = chat("fork", f"t@{held_by}~1", "--json").json

    assert _talk(chat, forked["runs"][0]["thread"]) == ["A", "reply to A", "other", "reply to A and other"]
    assert _talk(chat, again["runs"][0]["thread"]) == ["A", "reply to A", "B", "reply to A and B"]


def _values(app: Application, forked: Any) -> Any:
    """The values at the end of a fork's first run."""
    return app.debug("show", forked["runs"][0]["thread"], "--json").json["values"]


def _returned(app: Application, forked: Any) -> Any:
    return _values(app, forked)["__end__"]


def _talk(app: Application, thread: str) -> list[str]:
    """The texts of a debug thread's messages."""
    return [turn["message"]["text"] for turn in app.debug("show", thread, "--messages", "--json").json["items"]]
