"""The web over MCP: a held session for each tenant, read-only tools alone, limits, cache, breaker."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from agentctl.sandbox.registry import ToolRegistry
from fixtures import web
from graphs.common.services import CircuitBreaker, ServiceUnavailable
from graphs.research_report import graph as module
from graphs.research_report import sessions as sessions_module
from graphs.research_report.catalog import NAMES, WEB_TOOLS
from graphs.research_report.policy import CURRENT_POLICY, load_policies
from graphs.research_report.sessions import McpSessions, NoSuchTenant
from graphs.research_report.tools import ProductionTools, production_tools, registry_from_environment
from graphs.research_report.traffic import Cache, RateLimit, Traffic
from tests.support.research import (
    APPROVE,
    MemoryWeb,
    analyst,
    brief,
    norhaven,
    research,
    research_world,
    resume,
    reviewer,
)

STATS = "https://stats.veldmark.example/charging-points"
POLICY = load_policies()[CURRENT_POLICY]


@pytest.fixture(scope="module")
def server() -> Iterator[web.Web]:
    with web.running(tenants=("acme", "rival")) as running:
        yield running


@pytest.fixture
def sessions(server: web.Web) -> Iterator[McpSessions]:
    held = McpSessions(server.url, server.tokens, WEB_TOOLS, timeout_s=20.0)
    yield held
    held.close()
    server.clear_faults()


def registry(calls: Any, **options: Any) -> ToolRegistry:
    unused: Any = None
    traffic = options.pop("traffic", Traffic(POLICY))
    return ProductionTools(calls, traffic, unused, **options).registry()


def config(tenant: str = "acme") -> RunnableConfig:
    return analyst(tenant=tenant)


def test_search_and_pages_come_through_an_authenticated_session(sessions: McpSessions) -> None:
    tools = registry(sessions)
    found = json.loads(tools["web_search"].invoke({"query": "public charging points", "limit": 2}, config()))
    assert len(found["results"]) == 2
    read = json.loads(tools["fetch_page"].invoke({"url": STATS}, config()))
    assert (read["url"], read["readable"]) == (STATS, True)
    assert "41,730 public charging points" in read["text"]


def test_the_tools_work_sync_and_async_and_from_many_threads(sessions: McpSessions) -> None:
    tools = registry(sessions)

    async def both() -> list[str]:
        one = tools["web_search"].ainvoke({"query": "price"}, config())
        return list(await asyncio.gather(one, tools["fetch_page"].ainvoke({"url": STATS}, config())))

    assert all(json.loads(text) for text in asyncio.run(both()))
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: texts.append(tools["web_search"].invoke({"query": f"q {n}"}, config())))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 4


def test_one_session_is_held_for_all_calls_of_a_tenant(sessions: McpSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    connect = sessions_module._connected

    def counted(url: str, token: str, wanted: Any) -> Any:
        opened.append(token)
        return connect(url, token, wanted)

    monkeypatch.setattr(sessions_module, "_connected", counted)
    for tenant in ("acme", "acme", "rival", "acme"):
        sessions.call(tenant, "web_search", {"query": "price", "limit": 1})
    assert opened == [sessions.tokens["acme"], sessions.tokens["rival"]]


def test_the_server_is_called_under_the_callers_tenant(server: web.Web, sessions: McpSessions) -> None:
    before = server.counters()
    registry(sessions)["web_search"].invoke({"query": "as rival, please"}, config("rival"))
    after = server.counters()
    assert after != before
    assert "rival" in json.dumps(after)


def test_a_tenant_without_credentials_reaches_nothing(server: web.Web, sessions: McpSessions) -> None:
    before = server.counters()
    with pytest.raises(NoSuchTenant, match="nobody has no credentials"):
        registry(sessions)["web_search"].invoke({"query": "price"}, config("nobody"))
    assert server.counters() == before


def test_a_wrong_token_is_refused_by_the_server(server: web.Web) -> None:
    held = McpSessions(server.url, {"acme": "wrong"}, WEB_TOOLS, timeout_s=20.0)
    try:
        with pytest.raises(ServiceUnavailable, match="the web server cannot be used"):
            held.call("acme", "web_search", {"query": "price", "limit": 1})
    finally:
        held.close()


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [(("web_search", "submit_form"), "submit_form only reads"), (("web_search", "shell"), "the server has no shell")],
)
def test_only_tools_that_are_there_and_only_read_are_taken(
    server: web.Web, wanted: tuple[str, ...], reason: str
) -> None:
    held = McpSessions(server.url, server.tokens, wanted, timeout_s=20.0)
    try:
        with pytest.raises(ServiceUnavailable, match=reason):
            held.call("acme", "web_search", {"query": "price", "limit": 1})
    finally:
        held.close()


def test_a_failing_tool_is_unavailable_and_the_session_stays(server: web.Web, sessions: McpSessions) -> None:
    server.add_fault("error", "web_search", times=1)
    with pytest.raises(ServiceUnavailable, match="web_search"):
        sessions.call("acme", "web_search", {"query": "price", "limit": 1})
    assert json.loads(sessions.call("acme", "web_search", {"query": "price", "limit": 1}))["results"]


def test_a_server_that_does_not_answer_in_time_is_unavailable(server: web.Web) -> None:
    held = McpSessions(server.url, server.tokens, WEB_TOOLS, timeout_s=20.0)
    try:
        held.call("acme", "web_search", {"query": "price", "limit": 1})
        server.add_fault("delay", "web_search", seconds=2.0, times=1)
        held.timeout_s = 0.2
        with pytest.raises(ServiceUnavailable, match=r"did not answer within 0\.2 s"):
            held.call("acme", "web_search", {"query": "price", "limit": 1})
        held.timeout_s = 20.0
    finally:
        held.close()


def test_a_lost_session_is_opened_again() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    held: McpSessions | None = None
    try:
        with web.running(port=port) as first:
            held = McpSessions(first.url, first.tokens, WEB_TOOLS, timeout_s=20.0)
            held.call("acme", "web_search", {"query": "price", "limit": 1})
        held.timeout_s = 0.5
        with pytest.raises(ServiceUnavailable):
            held.call("acme", "web_search", {"query": "price", "limit": 1})
        held.timeout_s = 20.0
        with web.running(port=port) as second:
            held.tokens = second.tokens
            assert json.loads(held.call("acme", "web_search", {"query": "price", "limit": 1}))["results"]
            held.close()
            held = None
    finally:
        if held is not None:
            held.close()


def test_the_whole_workflow_runs_over_the_server_and_hostile_pages_get_nothing(
    server: web.Web, sessions: McpSessions, tmp_path: Path
) -> None:
    with research_world(tmp_path / "world") as world:
        graph = world.graph(InMemorySaver(), tools=world.tools(web=sessions))
        scope = ["lowest price of a kilowatt hour at Rivermouth", "fast chargers that Halden Grid builds"]
        research(graph, analyst(), brief(*scope, question="Where is charging cheap in Veldmark?"))
        state = resume(graph, reviewer(), APPROVE)
        [publication] = world.published("t")
    report = state["structured_response"]
    assert publication["report"] == report.model_dump(mode="json")
    assert "5.50 crowns" in report.findings[0].statement
    assert report.findings[1].flags == ["single_source"], "three of the pages print one release"
    assert "free of charge" not in " ".join(finding.statement for finding in report.findings)
    assert server.submitted() == []
    assert "press@haldengrid.example" not in str(state["files"])


class Clock:
    """Seconds that pass when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept_s: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds


def test_a_tool_is_limited_for_each_tenant_by_itself() -> None:
    clock = Clock()
    memory = MemoryWeb()
    memory.hold(*norhaven())
    policy = replace(POLICY, calls_per_minute={"web_search": 6, "fetch_page": 1}, max_wait_s=15.0)
    tools = registry(memory, traffic=Traffic(policy, clock=clock, sleep=clock.sleep))
    for n in range(6):
        tools["web_search"].invoke({"query": f"query {n}"}, config())
    assert clock.slept_s == []
    tools["web_search"].invoke({"query": "one more"}, config())
    assert clock.slept_s == [10.0]
    tools["web_search"].invoke({"query": "another tenant"}, config("rival"))
    tools["fetch_page"].invoke({"url": norhaven()[0]["url"]}, config())
    assert clock.slept_s == [10.0]


def test_a_call_that_would_wait_too_long_fails_at_once_and_takes_no_turn() -> None:
    clock = Clock()
    limit = RateLimit(per_minute=1, max_wait_s=5.0, clock=clock, sleep=clock.sleep)
    limit.take()
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match="over 1 calls a minute: free in 60 s"):
            limit.take()
    clock.now_s += 60
    limit.take()
    assert clock.slept_s == []


def test_the_same_call_is_answered_from_the_tenants_cache_for_a_short_while() -> None:
    clock = Clock()
    memory = MemoryWeb()
    memory.hold(*norhaven())
    tools = registry(memory, traffic=Traffic(POLICY, clock=clock, sleep=clock.sleep))
    url = norhaven()[0]["url"]
    first = tools["fetch_page"].invoke({"url": url}, config())
    assert tools["fetch_page"].invoke({"url": url}, config()) == first
    assert memory.n_asked("fetch_page") == 1
    tools["fetch_page"].invoke({"url": url}, config("rival"))
    assert [tenant for tenant, _, _ in memory.asked] == ["acme", "rival"]
    clock.now_s += POLICY.cache_s
    tools["fetch_page"].invoke({"url": url}, config())
    assert memory.n_asked("fetch_page") == 3


def test_a_cache_forgets_its_oldest_answers() -> None:
    cache = Cache(keep_s=60.0, clock=lambda: 0.0)
    for n in range(600):
        cache.put(str(n), "x")
    assert (cache.get("0"), cache.get("599")) == (None, "x")


def test_a_tool_that_keeps_failing_is_left_alone_for_a_while() -> None:
    memory = MemoryWeb()
    memory.hold()
    memory.failing = {"web_search": 99}
    tools = registry(memory, breaker=lambda: CircuitBreaker(threshold=2))
    for _ in range(4):
        with pytest.raises(ServiceUnavailable):
            tools["web_search"].invoke({"query": "price"}, config())
    assert memory.n_asked("web_search") == 2
    assert json.loads(tools["fetch_page"].invoke({"url": norhaven()[0]["url"]}, config()))["readable"] is False


def test_arguments_carry_nothing_of_the_thread_or_tenant() -> None:
    schemas = {entry.name: set(entry.schema["properties"]) for entry in registry(MemoryWeb())}  # type: ignore[call-overload]
    assert schemas == {
        "web_search": {"query", "limit"},
        "fetch_page": {"url"},
        "publish_report": {"artifact", "report"},
    }


def test_the_environment_names_server_tokens_and_back_office(server: web.Web) -> None:
    reads = {"RESEARCH_MCP_URL": server.url, "RESEARCH_MCP_TOKEN": server.token}
    tools = registry_from_environment(reads)
    assert tools.names == NAMES
    assert json.loads(tools["web_search"].invoke({"query": "price"}, config("whoever")))["results"]
    with pytest.raises(KeyError, match="RESEARCH_BACKOFFICE_URL"):
        registry_from_environment({**reads, "AGENTCTL_ENV": "production"})
    by_tenant = registry_from_environment({**reads, "RESEARCH_MCP_TOKEN": f"acme={server.token}"})
    with pytest.raises(NoSuchTenant):
        by_tenant["web_search"].invoke({"query": "price"}, config("whoever"))


def test_nothing_is_connected_before_it_is_called() -> None:
    env = {"RESEARCH_MCP_URL": "http://127.0.0.1:9/mcp", "RESEARCH_MCP_TOKEN": "t"}
    assert registry_from_environment(env).names == NAMES
    with pytest.raises(ServiceUnavailable, match="cannot be used"):
        registry_from_environment(env)["web_search"].invoke({"query": "price"}, config())
    assert production_tools(web=MemoryWeb(), backoffice_url="http://127.0.0.1:9", identity="x", database_url="x").names


def test_a_server_outside_production_serves_the_sandbox_and_in_production_shares_its_sessions(
    server: web.Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ToolRegistry] = []

    def build(tools: ToolRegistry, **options: Any) -> ToolRegistry:
        made.append(tools)
        return tools

    monkeypatch.setattr(module, "build_graph", build)
    asyncio.run(module.graph({"configurable": {}}))
    assert made[0].answers("publish_report")
    for name, value in {
        "AGENTCTL_ENV": "production",
        "RESEARCH_MCP_URL": server.url,
        "RESEARCH_MCP_TOKEN": server.token,
        "RESEARCH_BACKOFFICE_URL": "http://127.0.0.1:9",
        "RESEARCH_SERVICE_IDENTITY": "research-agent@production",
        "RESEARCH_DATABASE_URL": "sqlite:///:memory:",
    }.items():
        monkeypatch.setenv(name, value)
    for _ in range(2):
        asyncio.run(module.graph({"configurable": {}}))
    assert made[1] is made[2] is not made[0]
