"""States of an Agent Server as rows, and complete lists from pages: what servers leave out, add, cut or ignore."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from langgraph.pregel._algo import task_path_str

from agentctl.errors import StoreError
from agentctl.records.rows import WriteRow
from agentctl.stores.reading.layout import END, ERROR, INTERRUPT, NO_WRITES
from agentctl.stores.server.client import AgentServer
from agentctl.stores.server.inner import MAX_TRIED, inner_namespaces
from agentctl.stores.server.kept import LastStates
from agentctl.stores.server.paging import list_states, list_threads, page_limit
from agentctl.stores.server.states import State, parse_state, parse_time, path_text

THREAD = "01a22e29-58a8-7614-b6df-b16d83fe8f63"
Raw = dict[str, Any]


def raw_state(number: int, *, parent: int | None = None, ns: str = "", **more: Any) -> Raw:
    place = {"thread_id": THREAD, "checkpoint_ns": ns}
    return {
        "values": {},
        "next": [],
        "tasks": [],
        "metadata": {"source": "loop", "step": number},
        "created_at": f"2026-11-30T20:33:{number % 60:02}+00:00",
        "checkpoint": {**place, "checkpoint_id": id_of(number)},
        "parent_checkpoint": None if parent is None else {**place, "checkpoint_id": id_of(parent)},
        **more,
    }


def id_of(number: int) -> str:
    return f"1f1ecfd4-{number:04x}-6a38-8003-1cf63b761e8a"


def raw_task(**more: Any) -> Raw:
    task = {"id": "t1", "name": "price", "path": ["__pregel_pull", "price"], "error": None, "interrupts": []}
    return {**task, "checkpoint": None, "state": None, "result": None, **more}


def parsed(raw: Raw, ns: str = "") -> State:
    state = parse_state(raw, THREAD, ns)
    assert state is not None
    return state


def written(*tasks: Raw) -> list[tuple[str, int, Any]]:
    writes: Sequence[WriteRow] = parsed(raw_state(1, tasks=list(tasks))).writes
    return [(write.channel, write.idx, json.loads(write.value.data)) for write in writes if write.value is not None]


def test_a_state_gives_its_row_and_its_values_as_json() -> None:
    state = parsed(raw_state(4, parent=3, values={"n": 1, "name": "Zoë"}))

    assert (state.row.id, state.row.parent, state.row.step) == (id_of(4), id_of(3), 4)
    assert {name: json.loads(value.data) for name, value in state.values.items()} == {"n": 1, "name": "Zoë"}
    stored = state.stored(["n"])
    assert (list(stored.values), stored.has_versions, stored.ts) == (["n"], False, "2026-11-30T20:33:04+00:00")


def test_a_state_without_a_checkpoint_is_none() -> None:
    empty: Raw = {"values": {}, "next": [], "tasks": [], "metadata": None, "created_at": None, "checkpoint": None}

    assert parse_state(empty, THREAD, "") is None
    assert parse_state({}, THREAD, "") is None
    assert parse_state({**empty, "checkpoint": {"thread_id": THREAD, "checkpoint_id": id_of(9)}}, THREAD, "") is None


def test_keys_that_are_missing_or_unknown_are_tolerated() -> None:
    old = {"checkpoint_id": id_of(2), "metadata": {"source": "input"}, "parent_checkpoint_id": id_of(1), "more": 1}
    state = parsed({**old, "tasks": [{"name": "agent"}, None]})

    assert (state.row.id, state.row.parent, state.values, state.ts) == (id_of(2), id_of(1), {}, None)
    assert [(task.name, task.id, task.finished) for task in state.tasks] == [("agent", "", False), ("?", "", False)]
    assert parsed({**old, "tasks": None, "values": None, "metadata": {"step": 3}}).tasks == ()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"thread_id": "another", "checkpoint_ns": ""}, "asked for thread .* gave a state of another"),
        ({"thread_id": THREAD, "checkpoint_ns": "sub:1"}, "asked for namespace '' and gave a state of 'sub:1'"),
    ],
)
def test_a_state_of_another_place_than_was_asked_for_is_an_error(place: Raw, message: str) -> None:
    raw = raw_state(1, checkpoint={**place, "checkpoint_id": id_of(1)})
    with pytest.raises(StoreError, match=message):
        parse_state(raw, THREAD, "")


def test_a_server_that_ignores_the_namespace_is_found_out() -> None:
    with pytest.raises(StoreError, match="asked for namespace 'sub:1' and gave a state of ''") as caught:
        parse_state(raw_state(1), THREAD, "sub:1")
    assert "ignores namespaces" in (caught.value.hint or "")


def test_what_tasks_wrote_raised_and_asked_becomes_writes() -> None:
    asked = [{"id": "i1", "value": {"q": "how much?"}}]

    assert written(raw_task(result={"a": 1, "b": [2]})) == [("a", 0, 1), ("b", 1, [2])]
    assert written(raw_task(result={"a": {"$writes": [1, 2]}})) == [("a", 0, 1), ("a", 1, 2)]
    assert written(raw_task(result={})) == [(NO_WRITES, 0, None)]
    assert written(raw_task(result="done")) == [(END, 0, "done")]
    assert written(raw_task(error="ValueError('no')")) == [(ERROR, -1, "ValueError('no')")]
    assert written(raw_task(interrupts=asked)) == [(INTERRUPT, -3, asked)]
    assert written(raw_task()) == []


def test_a_task_names_the_namespace_of_its_subgraph_whichever_way_it_is_stated() -> None:
    inner = {"thread_id": THREAD, "checkpoint_ns": "sub:t1"}
    tasks = [raw_task(checkpoint=inner), raw_task(state={"checkpoint": inner, "values": {}}), raw_task()]

    assert [task.ns for task in parsed(raw_state(1, tasks=tasks)).tasks] == ["sub:t1", "sub:t1", None]


@pytest.mark.parametrize(
    "path",
    [
        ("__pregel_pull", "agent"),
        ("__pregel_push", 3, False),
        ("__pregel_push", ("__pregel_pull", "flow"), 1, True),
        ("__pregel_push", "agent", "node_error_handler", False),
    ],
)
def test_task_paths_are_written_as_langgraph_stores_them(path: Any) -> None:
    assert path_text(json.loads(json.dumps(path))) == task_path_str(path)


def test_large_results_are_dropped_from_what_is_kept_and_their_size_stays() -> None:
    state = parsed(raw_state(1, values={"n": 1}, tasks=[raw_task(result={"a": "x" * 50, "b": 1})])).slim(20)

    assert state.values == {}
    assert [(write.channel, write.value is None, write.n_bytes) for write in state.writes] == [
        ("a", True, 52),
        ("b", False, 1),
    ]


def test_times_are_utc() -> None:
    assert str(parse_time("2026-11-30T22:33:12+02:00")) == "2026-11-30 20:33:12+00:00"
    assert str(parse_time("2026-11-30T20:33:12")) == "2026-11-30 20:33:12+00:00"
    assert parse_time("yesterday") is None and parse_time(None) is None


class Pages:
    """An `AgentServer` that gives pages of one history, with the faults that are asked for."""

    n_bytes = 1000

    def __init__(self, states: Sequence[Raw], *, cap: int = 100, broken: Sequence[str] = ()) -> None:
        self.states = sorted(states, key=lambda raw: raw["checkpoint"]["checkpoint_id"], reverse=True)
        self.cap = cap
        self.broken = frozenset(broken)
        self.asked: list[tuple[str, int, str | None]] = []

    def history(
        self, thread: str, ns: str, *, limit: int, before: str | None = None, select: Sequence[str]
    ) -> Sequence[Raw]:
        assert "values" not in select and "metadata" in select
        self.asked.append(("post", limit, before))
        if before and "post raises" in self.broken:
            raise StoreError("500")
        if before and "post is empty" in self.broken:
            return []
        return self._page(limit, None if "before is ignored" in self.broken else before)

    def history_by_address(self, thread: str, *, limit: int, before: str) -> Sequence[Raw]:
        self.asked.append(("get", limit, before))
        if "get raises" in self.broken:
            raise StoreError("get: 500")
        return self._page(limit, None if "before is ignored" in self.broken else before)

    def _page(self, limit: int, before: str | None) -> Sequence[Raw]:
        older = [raw for raw in self.states if before is None or raw["checkpoint"]["checkpoint_id"] < before]
        return older[: min(limit, self.cap)]


def chain(n: int, *, first: int = 0) -> list[Raw]:
    return [raw_state(i, parent=i - 1 if i else None) for i in range(first, n)]


def listed(pages: Pages, ns: str = "") -> tuple[list[str], str | None]:
    found = list_states(cast(AgentServer, pages), THREAD, ns)
    return sorted(found.states), found.cut


@pytest.mark.parametrize("n", [0, 1, 19, 20, 21, 120, 250])
@pytest.mark.parametrize("cap", [100, 7, 1])
def test_every_state_is_listed_once_however_many_come_at_a_time(n: int, cap: int) -> None:
    if n > 100 and cap == 1:
        n = 30
    assert listed(Pages(chain(n), cap=cap)) == ([id_of(i) for i in range(n)], None)


@pytest.mark.parametrize("broken", ["post is empty", "post raises"])
def test_the_other_form_of_before_is_tried_once_where_the_first_does_not_work(broken: str) -> None:
    pages = Pages(chain(90), broken=[broken])

    assert listed(pages) == ([id_of(i) for i in range(90)], None)
    assert [form for form, _, before in pages.asked if before][:2] == ["post", "get"]
    assert "post" not in [form for form, _, _ in pages.asked][2:]


def test_a_history_whose_oldest_parent_is_not_given_is_cut_and_says_from_when_it_is() -> None:
    ids, cut = listed(Pages(chain(60, first=25)))

    assert ids == [id_of(i) for i in range(25, 60)]
    assert cut is not None
    assert "cut" in cut and "35 checkpoints" in cut and "20:33:25" in cut and id_of(24) in cut


@pytest.mark.parametrize(
    ("broken", "n_given"), [(["before is ignored"], 100), (["post is empty", "before is ignored"], 20)]
)
def test_a_server_that_gives_the_first_page_again_and_again_is_cut(broken: list[str], n_given: int) -> None:
    ids, cut = listed(Pages(chain(250), broken=broken))

    assert ids == [id_of(i) for i in range(250 - n_given, 250)]
    assert cut is not None


def test_where_no_form_works_the_failure_is_told_and_no_part_is_given() -> None:
    with pytest.raises(StoreError, match=r"^500$"):
        listed(Pages(chain(50), broken=["post raises", "get raises"]))


def test_a_subgraph_has_one_form_only() -> None:
    inner = [raw_state(i, parent=i - 1 if i else None, ns="sub:1") for i in range(40)]
    pages = Pages(inner, broken=["post is empty"])

    ids, cut = listed(pages, "sub:1")

    assert len(ids) == 20 and cut is not None and "namespace sub:1" in cut
    assert {form for form, _, _ in pages.asked} == {"post"}


def test_branches_are_followed_by_their_parents_and_not_by_their_place() -> None:
    forked = [*chain(30), raw_state(40, parent=3), raw_state(41, parent=40)]
    assert listed(Pages(forked)) == ([id_of(i) for i in [*range(30), 40, 41]], None)


def test_pages_shrink_where_states_are_large() -> None:
    assert page_limit(1000, 20) == 100
    assert page_limit(20 * 1024 * 1024, 20) == 2
    assert page_limit(10**9, 1) == 1


def test_only_the_last_whole_states_are_kept() -> None:
    last = LastStates(max_bytes=25)
    states = [parsed(raw_state(i, values={"a": "x" * 8})) for i in range(4)]
    for state in (*states[:3], states[2]):
        last.put(state)

    assert [last.get((THREAD, "", id_of(i))) for i in range(4)] == [None, states[1], states[2], None]


class Threads:
    """An `AgentServer` that lists threads."""

    url = "http://h"

    def __init__(self, n: int, *, cap: int = 10**6, ignores_offset: bool = False) -> None:
        self.all = [{"thread_id": f"t-{i}"} for i in range(n)]
        self.cap = cap
        self.ignores_offset = ignores_offset

    def threads(self, *, limit: int, offset: int) -> Sequence[Raw]:
        start = 0 if self.ignores_offset else offset
        return self.all[start : start + min(limit, self.cap)]


@pytest.mark.parametrize(("n", "cap"), [(0, 10), (3, 10), (10, 10), (1200, 10**6), (25, 10)])
def test_every_thread_is_listed_whatever_a_page_holds(n: int, cap: int) -> None:
    assert len(list_threads(cast(AgentServer, Threads(n, cap=cap)))) == n


def test_threads_that_cannot_all_be_listed_are_an_error() -> None:
    with pytest.raises(StoreError, match="not all can be listed"):
        list_threads(cast(AgentServer, Threads(600, ignores_offset=True)))


def namespaces(states: Mapping[str, Sequence[Raw]], told: list[str]) -> list[str]:
    def states_of(ns: str) -> Mapping[str, State]:
        if ns == "broken:t1":
            raise StoreError("the server was asked for namespace 'broken:t1' and gave a state of ''")
        return {state.row.id: state for state in (parsed(raw, ns) for raw in states.get(ns, ()))}

    return list(inner_namespaces(states_of, told.append))


def test_namespaces_are_those_that_tasks_name_and_that_have_states() -> None:
    def named(ns: str) -> Raw:
        return raw_task(checkpoint={"thread_id": THREAD, "checkpoint_ns": ns})

    states = {
        "": [raw_state(1, tasks=[named("sub:t1"), named("idle:t2"), named("kept:t3")])],
        "sub:t1": [raw_state(2, ns="sub:t1", tasks=[named("sub:t1|deep:t4")])],
        "sub:t1|deep:t4": [raw_state(3, ns="sub:t1|deep:t4")],
        "kept": [raw_state(4, ns="kept")],
    }
    told: list[str] = []

    assert sorted(namespaces(states, told)) == ["kept", "sub:t1", "sub:t1|deep:t4"]
    assert told == []


def test_subagents_that_tools_ran_are_tried_under_the_tools_task() -> None:
    answer = {"messages": [{"type": "tool", "content": "x", "tool_call_id": "c1"}]}
    tools = raw_task(name="tools", result=answer)
    states = {"": [raw_state(1, tasks=[tools, raw_task(id="t2", result={"n": 1})])]}
    told: list[str] = []

    assert namespaces(states, told) == []
    assert namespaces({**states, "tools:t1": [raw_state(2, ns="tools:t1")]}, told) == ["tools:t1"]
    assert told == []


def test_only_so_many_subagents_are_tried_and_the_rest_is_told() -> None:
    asks = [raw_task(id=f"t{i}", interrupts=[{"id": "i", "value": 1}]) for i in range(MAX_TRIED + 1)]
    told: list[str] = []

    assert namespaces({"": [raw_state(1, tasks=asks)]}, told) == []
    assert len(told) == 1 and str(MAX_TRIED) in told[0]


def test_a_server_that_cannot_give_a_guessed_namespace_is_told_of_and_no_error() -> None:
    told: list[str] = []
    asks = raw_task(name="broken", interrupts=[{"id": "i", "value": 1}])

    assert namespaces({"": [raw_state(1, tasks=[asks])]}, told) == []
    assert len(told) == 1 and "not listed" in told[0]
