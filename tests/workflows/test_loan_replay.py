"""Replays of loan cases, from every checkpoint: the same route, every call from the recording, nothing outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.replay import replay
from agentctl.records.runs import RunReport
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.steps import StepReader
from graphs.loan_underwriting.graph import build_graph
from graphs.loan_underwriting.model import make_model
from sandbox_tools.loan import registry
from tests.support.experiments import experiment_on
from tests.support.loan import APPROVE, REVIEWER, applicant, apply, loan_world, resume, staff

REVIEWED, DECLINED = "app-7F3K", "app-2M8Q"


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A case that a person approved and one that was declined, run for real; nobody outside hears of them again."""
    folder = tmp_path_factory.mktemp("loans")
    store = folder / "prod.sqlite"
    with loan_world(folder) as bank, SqliteSaver.from_conn_string(str(store)) as saver:
        graph = bank.graph(saver)
        apply(graph, bank.put_applicant(bureau={"score": 530}), applicant(REVIEWED))
        resume(graph, staff(REVIEWED), APPROVE)
        apply(graph, bank.put_applicant(bureau={"open_defaults": 1}), applicant(DECLINED))
        calls = bank.backoffice.counters()
        yield store
        assert bank.backoffice.counters() == calls


@contextmanager
def sandboxed(store: Path, thread: str, debug: Path, **settings: Any) -> Iterator[Experiment]:
    """The workflow over its sandbox, answered from a thread's recording."""
    tools = registry()
    graph = build_graph(tools, model=make_model(env={}))
    policy = Policy(registry=tools, effects=Effects({}, (tools,)))
    with experiment_on(store, graph, debug, policy=policy, **settings) as opened:
        yield replace(opened, recording=record_thread(opened.source, thread))


@dataclass(frozen=True)
class Outcome:
    """What a replay came to."""

    run: RunReport
    values: dict[str, Any]


def _replays(experiment: Experiment, thread: str) -> Iterator[Outcome]:
    """Replays a thread from each checkpoint of its root namespace from which something runs, oldest first."""
    ids = sorted(read_tree(experiment.source, thread, "").ids)
    planned = StepReader(experiment.source, thread, "").next(ids)
    for id in (id for id, nodes in planned.items() if nodes):
        report = replay(experiment, Target(thread, id, "", store=experiment.source.info.url, profile="prod"))
        (run,) = report.group.runs
        with SqliteSaver.from_conn_string(experiment.debug.url) as saver:
            graph = experiment.graph.copy(update={"checkpointer": saver})
            yield Outcome(run, graph.get_state({"configurable": {"thread_id": run.thread}}).values)


@pytest.mark.parametrize(
    ("thread", "route", "decision"), [(REVIEWED, "review", "approve"), (DECLINED, "finalize", "decline")]
)
def test_a_replay_from_any_checkpoint_takes_the_recorded_route_and_calls_nothing_outside(
    production: Path, tmp_path: Path, thread: str, route: str, decision: str
) -> None:
    with sandboxed(production, thread, tmp_path / "debug.sqlite", configurable=REVIEWER) as experiment:
        outcomes = list(_replays(replace(experiment, answers=(APPROVE,)), thread))
    assert {outcome.run.status for outcome in outcomes} == {"done"}
    assert {(outcome.values["route"], outcome.values["final_decision"]) for outcome in outcomes} == {(route, decision)}
    served = {call.served_by for outcome in outcomes for call in outcome.run.tool_calls}
    assert served == {"recorded"}
    assert len(outcomes) >= 6
