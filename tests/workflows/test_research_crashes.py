"""A real process killed between publication and checkpoint; another one resumes the thread."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from tests.support.killed import Killed
from tests.support.research import (
    PRICE,
    ResearchWorld,
    analyst,
    brief,
    offered,
    research,
)
from tests.support.stored import is_postgres
from tests.support.stores import saver_at


@pytest.mark.real_process
@pytest.mark.parametrize(
    ("store_url", "when", "keys"),
    [("sqlite", "before-row", "expired"), ("postgres", "before-row", "expired"), ("sqlite", "after-row", "kept")],
    indirect=["store_url"],
)
def test_after_kill_9_the_thread_resumes_and_the_report_was_published_once(
    desk: ResearchWorld, killed: Killed, store_url: str, when: str, keys: str
) -> None:
    database_url = store_url if is_postgres(store_url) else desk.database_url
    killed("dying_research", store_url, database_url, desk.backoffice.url, when)
    assert len(desk.published("t")) == 1
    if keys == "expired":
        desk.backoffice.expire_keys()
    with saver_at(store_url) as saver:
        graph = desk.graph(saver, tools=desk.tools(database_url=database_url))
        assert graph.get_state(analyst()).next == ("tools",)
        state = graph.invoke(None, analyst(), durability="sync")
        assert graph.get_state(analyst()).values["outcome"] == "published"
        assert [review["by"] for review in graph.get_state(analyst()).values["reviews"]] == ["rev-1"]
    [publication] = desk.published("t")
    assert state["structured_response"].model_dump(mode="json") == publication["report"]
    assert desk.backoffice.counters()["effects"] == {"publication": 1}


@pytest.mark.parametrize("dying", ["price", "https://"], ids=["one of them", "all of them"])
def test_a_worker_that_dies_while_subagents_search_loses_no_finished_search(desk: ResearchWorld, dying: str) -> None:
    saver = InMemorySaver()
    graph = desk.graph(saver)

    def dies(tool: str, subject: str) -> None:
        if tool == "fetch_page" and dying in subject:
            raise KeyboardInterrupt

    desk.web.before = dies
    with pytest.raises(KeyboardInterrupt):
        research(graph, analyst())
    desk.web.before = lambda tool, subject: None
    n_searches = desk.web.n_asked("web_search")
    graph.invoke(None, analyst(), durability="sync")
    assert desk.web.n_asked("web_search") == n_searches == 2
    assert [finding.sub_question for finding in offered(graph, analyst()).findings] == ["q1", "q2"]


def test_a_thread_that_was_parked_resumes_in_another_process(desk: ResearchWorld, tmp_path: Path) -> None:
    url = str(tmp_path / "parked.sqlite")
    with saver_at(url) as saver:
        research(desk.graph(saver), analyst(), brief(PRICE))
    with saver_at(url) as saver:
        graph = desk.graph(saver, tools=desk.tools())
        assert [finding.confidence for finding in offered(graph, analyst()).findings] == ["medium"]
