"""agentctl on research threads: delta messages and files, subagents in `tools:<id>` namespaces, replay, fork, diff."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from agentctl.experiments.running import Limits
from agentctl.records.runs import ForkReport, ReplayReport, RunReport
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects
from agentctl.testing import run_cli
from graphs.research_report.catalog import WEB_TOOLS, registry_of
from graphs.research_report.graph import build_graph
from graphs.research_report.models import make_models
from graphs.research_report.report import Report
from sandbox_tools.research import ResearchSandbox, registry
from tests.support.copies import stock_saver
from tests.support.forking import Source
from tests.support.research import (
    APPROVE,
    BERTHS,
    PRICE,
    PRICE_URL,
    REVIEWER,
    MemoryWeb,
    ResearchWorld,
    analyst,
    norhaven,
    notes_of,
    page,
    research,
    research_world,
    resume,
    reviewer,
)

REPOSITORY = Path(__file__).parents[2]
ASKED_AGAIN = Limits(timeout_s=120, max_steps=300)
CORRECTED = "Ships paid a price of 0.44 euros a kilowatt hour in 2026."


def _no_web() -> Any:
    """Sandbox tools that know no page at all: what is not recorded is blocked."""
    sandbox = ResearchSandbox()
    functions = {"web_search": sandbox.web_search, "fetch_page": sandbox.fetch_page}
    return registry_of({**functions, "publish_report": sandbox.publish_report}, unanswered=WEB_TOOLS)


POLICY = Policy(registry=_no_web(), effects=Effects(registries=(_no_web(),)))


class Seeded:
    """A published report in a stock store, and experiments on its thread."""

    def __init__(self, source: Source, world: ResearchWorld) -> None:
        self.source, self.world = source, world
        with stock_saver(source.prod) as saver:
            graph = world.graph(saver)
            research(graph, analyst())
            self.state = resume(graph, reviewer(), APPROVE)
        self.n_asked = len(world.web.asked)

    def replay(self, at: str, **settings: Any) -> ReplayReport:
        return self.source.replay(self._graph(), at, **self._settings(settings))

    def fork(self, at: str, **given: Any) -> ForkReport:
        return self.source.fork(self._graph(), at, **self._settings(given))

    @cached_property
    def corrected(self) -> ForkReport:
        """A fork inside the second search's subagent, in which the page gives another price."""
        at = self.call_at("fetch_page", PRICE_URL)
        return self.fork(at, patch=[f"fetch_page:text={json.dumps(CORRECTED)}"])

    def report_of(self, run: RunReport) -> Report:
        """The report that a run on the debug store ended with."""
        found = self.source.state(self._graph(), run.thread).values["structured_response"]
        assert isinstance(found, Report)
        return found

    def call_at(self, name: str, part: str) -> str:
        """The revision of the call whose arguments hold a text."""
        asked = run_cli("resolve", f"t@call:{name}", "--store", self.source.prod, "--json")
        if asked.code == 0:
            return f"t@call:{name}"
        found = [each["revision"] for each in asked.json["error"]["candidates"] if part in json.dumps(each["args"])]
        return f"t@{found[0]}"

    def _graph(self) -> Any:
        return build_graph(_no_web(), model=make_models(env={}))

    def _settings(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"policy": POLICY, "limits": ASKED_AGAIN, "configurable": dict(REVIEWER), "answers": (APPROVE,), **given}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def seeded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    folder = tmp_path_factory.mktemp("research")
    with research_world(folder / "world") as world:
        world.web.hold(*norhaven())
        if request.param == "sqlite":
            (folder / "prod").mkdir()
            yield Seeded(Source(str(folder / "prod" / "prod.sqlite"), str(folder / "debug.sqlite")), world)
            return
        from tests.support.postgres import new_database

        with new_database(request.getfixturevalue("postgres_url")) as url:
            yield Seeded(Source(url, str(folder / "debug.sqlite")), world)


def served(run: RunReport) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for call in run.tool_calls:
        found.setdefault(call.name, set()).add(call.served_by)
    return found


def test_messages_and_files_of_every_checkpoint_are_what_langgraph_says(seeded: Seeded) -> None:
    with stock_saver(seeded.source.prod) as saver:
        stock = list(seeded.world.graph(saver).get_state_history(analyst()))
    history = run_cli("history", "t", "--store", seeded.source.prod, "--json").json["items"]
    assert [row["id"] for row in history] == [state.config["configurable"]["checkpoint_id"] for state in stock]
    assert [row["next"] for row in history] == [list(state.next) for state in stock]
    for state in stock[:: len(stock) // 4]:
        at = f"t@{state.config['configurable']['checkpoint_id']}"
        shown = run_cli("show", at, "--store", seeded.source.prod, "--json").json["values"]
        assert [each["id"] for each in shown.get("messages", [])] == [m.id for m in state.values.get("messages", [])]
        assert shown.get("files", {}) == state.values.get("files", {})


def test_each_subagent_is_a_namespace_with_a_history_of_its_own(seeded: Seeded) -> None:
    every = run_cli("history", "t", "--all", "--store", seeded.source.prod, "--json").json["items"]
    namespaces = {row["ns"] for row in every} - {""}
    assert len(namespaces) == 3
    assert all(namespace.startswith("tools:") for namespace in namespaces)
    searched = {row["ns"] for row in every if "PageKeeper.before_model" in row["wrote"]}
    assert len(searched) == 2
    one = min(searched)
    shown = run_cli("history", "t", "--ns", one, "--store", seeded.source.prod, "--json").json["items"]
    assert [row["id"] for row in shown] == [row["id"] for row in every if row["ns"] == one]


def test_a_copy_keeps_every_namespace(seeded: Seeded, tmp_path: Path) -> None:
    to = str(tmp_path / "copy.sqlite")
    copied = run_cli("copy", "t", "--to", to, "--as", "copy", "--store", seeded.source.prod, "--json")
    assert copied.code == 0, copied.out
    assert copied.json["verified"]
    with stock_saver(to) as saver:
        values = seeded.world.graph(saver).get_state(analyst("copy")).values
    assert values["structured_response"] == seeded.state["structured_response"]
    assert values["files"] == seeded.state["files"]


def test_a_replay_with_the_recording_gives_the_same_report_without_any_call_outside(seeded: Seeded) -> None:
    report = seeded.replay("t@root")
    [run] = report.group.runs
    assert (run.status, run.error) == ("done", None)
    assert seeded.report_of(run) == seeded.state["structured_response"]
    effects = report.side_effects
    assert (effects.live, effects.blocked, effects.escaped) == (0, 0, 0)
    assert len(seeded.world.web.asked) == seeded.n_asked
    assert len(seeded.world.published("t")) == 1


def test_a_fork_inside_a_search_subagent_with_a_corrected_page_corrects_the_report(seeded: Seeded) -> None:
    report = seeded.corrected
    [run] = report.group.runs
    assert run.status == "done", run
    assert next(node for node in run.nodes if "|" in node) == "tools|PIIMiddleware[personal_data].before_model"
    [before, after] = [seeded.state["structured_response"], seeded.report_of(run)]
    assert after.findings[0] == before.findings[0]
    assert after.findings[1].statement == f"As of 2026-07-01: {CORRECTED}"
    assert served(run)["publish_report"] == {"stub"}
    assert served(run)["read_file"] == {"state"}
    note = notes_of(seeded.source.state(seeded._graph(), run.thread).values)
    assert note[f"/notes/q2/{page(PRICE_URL, 'x')['source_id']}.json"].quotes[0].quote == CORRECTED
    assert (report.side_effects.blocked, report.side_effects.escaped) == (0, 0)


def test_a_fork_of_the_parent_with_the_subagents_result(seeded: Seeded) -> None:
    nothing = {"sub_question": "q2", "notes": [], "summary": [], "unresolved": True, "tried": ["price"]}
    at = seeded.call_at("task", f"Sub-question q2: {PRICE}")
    report = seeded.fork(at, answer=[f"task={json.dumps(nothing)}"])
    [run] = report.group.runs
    assert run.status == "done", run
    assert not {"web_search", "fetch_page"} & set(served(run))
    after = seeded.report_of(run)
    assert [finding.sub_question for finding in after.findings] == ["q1"]
    assert after.open_questions == [f"q2: no source answers {PRICE}; tried: price"]


def test_two_reports_are_compared_finding_by_finding(seeded: Seeded, tmp_path: Path) -> None:
    [run] = seeded.corrected.group.runs
    project = tmp_path / "project"
    project.mkdir()
    (project / "agentctl.yaml").write_text(
        json.dumps(
            {
                "profiles": {
                    "prod": {"store": seeded.source.prod, "access": "read"},
                    "trial": {"store": seeded.source.debug, "access": "read"},
                },
                "workflows": {
                    "research_report": {
                        "graph": str(REPOSITORY / "graphs/research_report/graph.py:build_graph"),
                        "renderer": str(REPOSITORY / "graphs/research_report/view.yaml"),
                    }
                },
            }
        )
    )
    found = run_cli("diff", "prod::t", f"trial::{run.thread}", cwd=project, terminal=True, width=200)
    assert found.code == 0, found.err
    assert "0.44 euros" in found.out
    assert "f2" in found.out
    assert BERTHS not in found.out.partition("f2")[2][:400]


def test_the_sandbox_is_in_parity_with_production_and_publishes_nothing(seeded: Seeded) -> None:
    production, sandbox = seeded.world.tools(), registry()
    for real, stub in zip(production, sandbox, strict=True):
        assert (real.name, real.effect, real.schema) == (stub.name, stub.effect, stub.schema)
        assert real.tool.description == stub.tool.description
        assert sandbox.answers(stub.name)
    report = seeded.state["structured_response"].model_dump(mode="json")
    args = {"artifact": "a", "report": report}
    first, second = (json.loads(registry()["publish_report"].invoke(args)) for _ in range(2))
    [real_one] = seeded.world.published("t")
    assert first == second
    assert set(real_one) - set(first) == {"report", "reference"}
    assert MemoryWeb().asked == []
