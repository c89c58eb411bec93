"""Field log C: updates and forks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph

from agentctl.experiments.runs.debug_threads import make_copies
from agentctl.stores.base import CopyPlan
from agentctl.stores.copying.selection import for_replay
from agentctl.stores.open import open_reader
from agentctl.testing import build_thread
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
