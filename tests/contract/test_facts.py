"""Revisions of real threads: what they resolve to, beside what the graph itself says, and what it costs to read."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.errors import Ambiguous, NotFound
from agentctl.revisions.facts import Facts
from agentctl.revisions.grammar import Call, Id, Revision, Step, Visit, parse_revision
from agentctl.revisions.heads import find_edit
from agentctl.revisions.resolve import resolve, resolve_call
from agentctl.revisions.scope import Resolution
from agentctl.revisions.shortids import short_ids
from agentctl.revisions.target import parse_target
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.facts import StoredFacts
from tests.catalog import CATALOG, config_of, run_case, sqlite_case, sqlite_thread

NOW = datetime(2100, 1, 1, tzinfo=UTC)


@contextmanager
def thread_of(name: str, folder: Path) -> Iterator[tuple[StoredFacts, Any]]:
    """Runs a case in a SQLite file and gives its facts beside its graph."""
    case = CATALOG[name]
    with sqlite_case(folder, case) as (path, graph):
        reader = open_reader(str(path))
        yield StoredFacts(reader, case.thread), graph
        reader.close()


def to(facts: Facts, text: str | Revision, *, ns: str | None = None, branch: str | None = None) -> Resolution:
    rev = parse_revision(text) if isinstance(text, str) else text
    return resolve(rev, facts, now=NOW, ns=ns, branch=branch)


def id_of(snapshot: Any) -> str:
    return str(snapshot.config["configurable"]["checkpoint_id"])


def chain_of(graph: Any, thread: str) -> list[Any]:
    """The snapshots of the head's lineage by stock LangGraph, oldest first."""
    by_id = {id_of(snapshot): snapshot for snapshot in graph.get_state_history(config_of(thread))}
    head = id_of(graph.get_state(config_of(thread)))
    chain = []
    while head in by_id:
        chain.append(by_id[head])
        parent = by_id[head].parent_config
        head = parent["configurable"]["checkpoint_id"] if parent else ""
    return chain[::-1]


def visits(chain: Sequence[Any], node: str) -> list[str]:
    """Checkpoints about to run a node, each edit of one and the row it edits counted once."""
    hits = [i for i, snapshot in enumerate(chain) if node in snapshot.next]
    edited = {i - 1 for i in hits if chain[i].metadata["source"] in ("update", "fork")}
    return [id_of(chain[i]) for i in hits if i not in edited]


THREADS = [name for name in CATALOG if name not in ("empty", "exit delta")]


def every_atom_agrees(facts: StoredFacts, graph: Any) -> None:
    chain = chain_of(graph, facts.thread)
    ids = [id_of(snapshot) for snapshot in chain]
    assert to(facts, "head").id == ids[-1]
    assert to(facts, "root").id == ids[0]
    for up, id in enumerate(reversed(ids)):
        assert to(facts, f"head~{up}").id == id
    steps = Counter(snapshot.metadata["step"] for snapshot in chain)
    for snapshot in chain:
        if steps[snapshot.metadata["step"]] == 1:
            assert to(facts, Revision(Step(snapshot.metadata["step"]))).id == id_of(snapshot)
    for node in {node for snapshot in chain for node in snapshot.next}:
        found = visits(chain, node)
        for number, id in enumerate(found, start=1):
            assert to(facts, Revision(Visit("before", node, number))).id == id
            assert to(facts, Revision(Visit("before", node, number - len(found) - 1))).id == id
        if found:
            assert to(facts, Revision(Visit("before", node))).id == found[-1]
    for kind in ("interrupts", "error"):
        asked = [id_of(s) for s in chain if any(getattr(task, kind) for task in s.tasks)]
        atom = kind.removesuffix("s")
        for number, id in enumerate(asked, start=1):
            assert to(facts, f"{atom}:{number}").id == id
        if not asked:
            with pytest.raises(NotFound):
                to(facts, atom)


def every_id_names_its_checkpoint(facts: StoredFacts) -> None:
    places = [(ns, id) for ns in facts.namespaces() for id in facts.ids(ns)]
    shorts = short_ids([id for _, id in places])
    for ns, id in places:
        for text in (id, shorts[id]):
            found = to(facts, Revision(Id(text)))
            assert (found.ns, found.id) == (ns, id)
            assert to(facts, Revision(Id(text)), ns=ns or None).id == id


@pytest.mark.parametrize("name", THREADS)
def test_every_atom_agrees_with_the_graph_and_every_id_names_its_checkpoint(name: str, tmp_path: Path) -> None:
    with thread_of(name, tmp_path) as (facts, graph):
        every_id_names_its_checkpoint(facts)
        every_atom_agrees(facts, graph)


def test_revisions_read_the_same_from_postgres(fresh_postgres_url: str) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
        for name in ("agent corrected", "deep agent", "functional", "several forks", "subgraph nested answered"):
            case = CATALOG[name]
            graph = run_case(case, saver)
            reader = open_reader(fresh_postgres_url)
            facts = StoredFacts(reader, case.thread)
            every_id_names_its_checkpoint(facts)
            every_atom_agrees(facts, graph)
            for tool in facts.called("", to(facts, "head").id):
                assert to(facts, Revision(Call(tool, 1))).call is not None
            reader.close()


@pytest.mark.parametrize("name", [name for name in CATALOG if name.startswith("id ")])
def test_thread_ids_with_at_colons_and_spaces_are_read(name: str, tmp_path: Path) -> None:
    with thread_of(name, tmp_path) as (facts, _):

        def is_thread(profile: str, thread: str) -> bool:
            return not profile and bool(facts.reader.namespaces(thread))

        for text in (facts.thread, f"{facts.thread}@root", f"{facts.thread}@step:0~"):
            assert parse_target(text, is_thread, profiles=["prod", "debug"]).thread == facts.thread


def test_the_catalog_has_thread_ids_that_need_care() -> None:
    assert any("@" in case.thread for case in CATALOG.values())
    assert any("::" in case.thread for case in CATALOG.values())
    assert any(" " in case.thread for case in CATALOG.values())


CALLERS = ["agent", "agent two turns", "agent corrected", "agent asking", "agent approved", "deep agent"]


@pytest.mark.parametrize("name", CALLERS)
def test_every_call_offered_is_reached_by_its_revision_and_waits_there(name: str, tmp_path: Path) -> None:
    with thread_of(name, tmp_path) as (facts, _):
        tip = to(facts, "head").id
        names = facts.called("", tip)
        assert names
        ids = Counter(site.id for tool in names for site in facts.calls("", tip, tool))
        for tool in names:
            sites = facts.calls("", tip, tool)
            for number, site in enumerate(sites, start=1):
                found = to(facts, Revision(Call(tool, number)))
                assert (found.ns, found.id, found.call) == (site.ns, site.pending_at, site)
                assert any(to(facts, Revision(Call(site.id, k))).call == site for k in range(1, ids[site.id] + 1))
            if len(sites) > 1:
                with pytest.raises(Ambiguous) as caught:
                    to(facts, Revision(Call(tool)))
                for row, site in zip(caught.value.candidates, sites, strict=True):
                    assert to(facts, str(row["revision"])).call == site
                    assert row["args"] == site.args


def test_a_call_of_a_subagent_says_its_namespace(tmp_path: Path) -> None:
    with thread_of("deep agent", tmp_path) as (facts, _):
        tip = to(facts, "head").id
        below = [site for tool in facts.called("", tip) for site in facts.calls("", tip, tool) if site.ns]
        assert below
        found = to(facts, Revision(Call(below[0].id)))
        assert found.ns == below[0].ns
        assert f"found in namespace {found.ns}" in found.notes


@pytest.mark.parametrize("name", ["functional", "functional answered", "functional twice"])
def test_a_task_of_the_functional_api_is_a_call_by_its_name(name: str, tmp_path: Path) -> None:
    with thread_of(name, tmp_path) as (facts, _):
        tip = to(facts, "head").id
        lineage = [row.id for row in facts.lineage("", tip).rows]
        returned = facts.reader.writes(facts.thread, "", lineage, value_bytes=0, channels=["__return__"])
        with_path = [write.checkpoint_id for write in returned if ", ~" in (write.task_path or "")]
        sites = [*facts.calls("", tip, "fetch"), *facts.calls("", tip, "approve")]
        assert sites
        assert sorted(site.pending_at for site in sites) == sorted(with_path)
        for number, site in enumerate(facts.calls("", tip, "fetch"), start=1):
            found = to(facts, Revision(Call("fetch", number)))
            assert (found.id, found.call) == (site.pending_at, site)
            assert site.answer is not None
            assert site.answer.text.startswith("fetched")


def test_a_call_beside_a_target_is_the_one_that_waits_there(tmp_path: Path) -> None:
    with thread_of("agent two turns", tmp_path) as (facts, _):
        tip = to(facts, "head").id
        tool = next(tool for tool in facts.called("", tip) if len(facts.calls("", tip, tool)) > 1)
        sites = facts.calls("", tip, tool)
        for number, site in enumerate(sites, start=1):
            assert resolve_call(tool, parse_revision(site.pending_at), facts, now=NOW) == site
            assert resolve_call(tool, Revision(Call(tool, number)), facts, now=NOW) == site
            assert resolve_call(f"{tool}:{number}", parse_revision("head"), facts, now=NOW) == site
        assert sites[0].answered_at is not None
        assert resolve_call(tool, parse_revision(sites[0].answered_at), facts, now=NOW).id == sites[0].id
        with pytest.raises(Ambiguous):
            resolve_call(tool, parse_revision("head"), facts, now=NOW)
        with pytest.raises(NotFound):
            resolve_call("no_such_tool", parse_revision("head"), facts, now=NOW)


@pytest.mark.parametrize("name", ["update fork", "replay fork", "several forks", "agent corrected"])
def test_an_edited_head_names_the_last_head_that_no_edit_made(name: str, tmp_path: Path) -> None:
    with thread_of(name, tmp_path) as (facts, graph):
        rows = facts.reader.rows(facts.thread)
        found = find_edit(rows, to(facts, "head").id)
        assert found is not None
        assert found.last_head is not None
        assert found.edit in [id_of(snapshot) for snapshot in chain_of(graph, facts.thread)]
        lineage = {row.id for row in facts.lineage("", found.last_head).rows}
        assert not lineage & {row.id for row in rows if row.source in ("update", "fork")}


@pytest.mark.parametrize("name", ["linear", "loop", "agent", "subgraph", "functional"])
def test_a_head_that_the_graph_made_itself_has_no_edit(name: str, tmp_path: Path) -> None:
    with thread_of(name, tmp_path) as (facts, _):
        assert find_edit(facts.reader.rows(facts.thread), to(facts, "head").id) is None


def test_an_unknown_thread_is_not_found(tmp_path: Path) -> None:
    path = sqlite_thread(tmp_path, CATALOG["linear"])
    with pytest.raises(NotFound, match="there is no thread nobody"):
        to(StoredFacts(open_reader(str(path)), "nobody"), "head")


def test_a_run_id_given_as_a_thread_names_the_thread_it_ran_on(tmp_path: Path) -> None:
    case = CATALOG["linear"]
    run_id = str(uuid.uuid4())
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        config = config_of("support-17", run_id=run_id)
        case.build(saver).invoke({}, config | {"metadata": {"run_id": run_id}}, durability="sync")
    reader = open_reader(str(path))

    def is_thread(profile: str, thread: str) -> bool:
        return bool(reader.namespaces(thread))

    with pytest.raises(NotFound, match="support-17") as caught:
        parse_target(run_id, is_thread, find_run=lambda profile, run: reader.find_run(run))
    assert caught.value.hint == "agentctl history support-17"


class Counting:
    """A reader that notes which of its methods were called, and refuses metadata where that is not allowed."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.reader, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.called.add(f"{name} with metadata" if name == "rows" and kwargs.get("metadata", True) else name)
            return method(*args, **kwargs)

        return call


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("head", {"rows"}),
        ("root", {"rows"}),
        ("head~2", {"rows"}),
        ("ID", {"rows"}),
        ("SHORT", {"rows"}),
        ("at:1d", {"rows"}),
        ("step:1", {"rows", "rows with metadata"}),
        ("interrupt", {"rows", "writes"}),
    ],
)
def test_cheap_revisions_read_neither_state_nor_writes(text: str, allowed: set[str], tmp_path: Path) -> None:
    case = CATALOG["interrupt answered"]
    reader = Counting(open_reader(str(sqlite_thread(tmp_path, case))))
    id = reader.reader.rows(case.thread)[-1].id
    to(StoredFacts(reader, case.thread), text.replace("ID", id).replace("SHORT", id[-8:]))
    assert reader.called <= allowed


def test_ids_that_end_alike_are_refused_with_candidates_that_work(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    first = "1f0c2b7e-6d3a-6f4e-8000-9d03f8c9aa01"
    second = "1f0c2b7e-6d3a-6f4e-8001-9d03f8c9aa01"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        config = config_of("twins", checkpoint_ns="")
        for step, id in enumerate((first, second)):
            config = saver.put(config, empty_checkpoint() | {"id": id}, {"source": "loop", "step": step}, {})
    facts = StoredFacts(open_reader(str(path)), "twins")
    with pytest.raises(Ambiguous) as caught:
        to(facts, "f8c9aa01")
    assert [(row["revision"], row["step"]) for row in caught.value.candidates] == [(second, 1), (first, 0)]
    for row in caught.value.candidates:
        assert to(facts, str(row["revision"])).id == row["revision"]
    for id, short in short_ids(facts.ids("")).items():
        assert to(facts, short).id == id
