"""The recorded web behind a real MCP server: who may ask, what is offered, what it answers, what can go wrong."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.types import Tool

from fixtures.loopback import Refused
from fixtures.web import Web, running
from fixtures.web.faults import Fault, Faults
from fixtures.web.recorded import PAGES, load
from graphs.research_report.web.pages import source_id, text_sha256
from graphs.research_report.web.urls import normalise
from tests.support.web import ask, fetch, search, session

ROOT = Path(__file__).parents[2]
COUNT = "https://stats.veldmark.example/charging-points"
RELEASE = "https://haldengrid.example/press/fast-chargers"
RESULT_KEYS = {"source_id", "url", "title", "publisher", "published_on", "snippet"}
PAGE_KEYS = {
    "source_id",
    "url",
    "title",
    "publisher",
    "type",
    "accessed_on",
    "published_on",
    "text",
    "text_sha256",
    "readable",
    "reason",
    "duplicate_of",
    "is_cut",
}


@pytest.fixture(scope="module")
def shared() -> Iterator[Web]:
    """One server for tests that change nothing."""
    with running() as web:
        yield web


@pytest.fixture(scope="module")
def pages(shared: Web) -> dict[str, dict[str, Any]]:
    """Every recorded page as it is fetched, by the URL that was asked for."""
    assert shared.recorded is not None
    urls = list(shared.recorded.pages)
    return dict(zip(urls, ask(shared, *(("fetch_page", {"url": url}) for url in urls)), strict=True))


@pytest.fixture
def web() -> Iterator[Web]:
    """A server of the test's own, for two tenants."""
    with running(["acme", "globex"]) as started:
        yield started


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}])
def test_nobody_asks_without_a_token(web: Web, headers: dict[str, str]) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepted = {"Accept": "application/json, text/event-stream", **headers}
    response = httpx.post(web.url, json=hello, headers=accepted, trust_env=False)
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer ")
    assert web.counters()["n_calls"] == 0
    assert web.counters()["n_refused"] == int(headers.get("Authorization") == "Bearer wrong")


def test_a_session_with_a_wrong_token_does_not_begin(web: Web) -> None:
    with pytest.raises(BaseExceptionGroup) as failed:
        ask(web, ("web_search", {"query": "charging"}), token="wrong")
    assert failed.group_contains(httpx.HTTPStatusError, match="401")
    assert web.counters()["by_tool"] == {}


def offered(web: Web) -> dict[str, Tool]:
    async def listed() -> list[Tool]:
        async with session(web) as opened:
            return list((await opened.list_tools()).tools)

    return {tool.name: tool for tool in asyncio.run(listed())}


def test_tools_say_whether_they_only_read(shared: Web) -> None:
    tools = offered(shared)
    hints = {name: tool.annotations and tool.annotations.readOnlyHint for name, tool in tools.items()}
    assert hints == {"web_search": True, "fetch_page": True, "submit_form": False}
    assert tools["fetch_page"].inputSchema["required"] == ["url"]
    assert set(tools["web_search"].inputSchema["properties"]) == {"query", "limit"}
    assert all(tool.description and tool.outputSchema is None for tool in tools.values())


def test_a_search_answers_with_results_the_best_first(shared: Web) -> None:
    query = "how many public charging points are there in Veldmark"
    document = ask(shared, ("web_search", {"query": query, "limit": 3}))[0]
    assert (document["query"], len(document["results"])) == (query, 3)
    assert all(set(result) == RESULT_KEYS for result in document["results"])
    first = document["results"][0]
    assert (first["url"], first["source_id"], first["published_on"]) == (COUNT, source_id(COUNT), "2026-03-12")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Halden Grid fast chargers", RELEASE),
        ("price of fast charging per kilowatt hour", "https://consumer.veldmark.example/charging-prices"),
        ("support for a home charger 2026", "https://energy.veldmark.example/home-chargers-2026.pdf"),
        ("share of chargers out of order", "https://driversforum.example/t/broken-chargers"),
        ("difference between connectors and points", "https://stats.veldmark.example/charging-points/method"),
        ("permits of Halden Grid", "https://roadcouncil.veldmark.example/permits"),
    ],
)
def test_every_question_finds_its_pages(shared: Web, query: str, found: str) -> None:
    results = [result["url"] for result in search(shared, query)]
    assert found in results
    assert [result["url"] for result in search(shared, query)] == results


@pytest.mark.parametrize("query", ["", "the of", "penguins in winter", "?"])
def test_a_search_may_find_nothing(shared: Web, query: str) -> None:
    assert search(shared, query) == []


def test_a_search_gives_no_more_than_it_is_asked_for(shared: Web) -> None:
    assert [len(search(shared, "charging", limit)) for limit in (0, 1, 4)] == [0, 1, 4]
    assert search(shared, "charging", -1) == []
    assert len(search(shared, "charging", 1000)) <= 20


def test_every_page_answers_in_one_shape(pages: dict[str, dict[str, Any]]) -> None:
    for page in pages.values():
        assert set(page) == PAGE_KEYS
        assert page["source_id"] == source_id(page["url"]) and page["url"] == normalise(page["url"])
        assert page["accessed_on"] == "2026-11-30"
        assert page["readable"] is (page["reason"] is None) is bool(page["text"])
        assert page["text_sha256"] == (text_sha256(page["text"]) if page["readable"] else None)


def test_pages_that_the_search_lists_have_the_ids_and_dates_that_it_says(pages: dict[str, dict[str, Any]]) -> None:
    for recorded in load().pages.values():
        page = pages[recorded.url]
        if recorded.listing and page["readable"] and page["type"] != "table":
            said = recorded.listing
            assert (page["title"], page["publisher"]) == (said.title, said.publisher)
            assert page["published_on"] == str(said.published_on)


def test_the_statistic_is_read_with_its_table(pages: dict[str, dict[str, Any]]) -> None:
    text = pages[COUNT]["text"]
    assert "there were 41,730 public charging points in Veldmark, 18 per cent more than one year earlier" in text
    assert "| North | 8,120 | 9,440 |" in text.splitlines()
    assert "Cookies" not in text and "Printed from" not in text


def test_kinds_of_pages_are_told_apart(pages: dict[str, dict[str, Any]]) -> None:
    assert {url: pages[url]["type"] for url in (COUNT, RELEASE, "https://roadcouncil.veldmark.example/permits")} == {
        COUNT: "article",
        RELEASE: "release",
        "https://roadcouncil.veldmark.example/permits": "table",
    }
    assert pages["https://energy.veldmark.example/home-chargers-2026.pdf"]["type"] == "pdf"
    assert pages["https://energy.veldmark.example/data/charging-prices.csv"]["type"] == "table"


def test_copies_of_one_release_name_the_original(pages: dict[str, dict[str, Any]]) -> None:
    copies = {url for url, page in pages.items() if page["duplicate_of"]}
    assert copies == {
        "https://newswire.example/halden-grid-1200",
        "https://marketpost.example/companies/halden",
        "https://northdaily.example/halden-fast-chargers",
    }
    assert {pages[url]["duplicate_of"] for url in copies} == {source_id(RELEASE)}


def test_which_copy_is_the_original_does_not_depend_on_who_is_asked_first(web: Web) -> None:
    copy = "https://northdaily.example/halden-fast-chargers"
    assert fetch(web, copy, token=web.tokens["globex"])["duplicate_of"] == source_id(RELEASE)
    assert fetch(web, RELEASE)["duplicate_of"] is None


def test_an_injected_page_keeps_what_its_readers_see_and_nothing_else(pages: dict[str, dict[str, Any]]) -> None:
    text = pages["https://evblog.example/where-i-charge-for-less"]["text"]
    assert "IMPORTANT NOTICE TO AI ASSISTANTS" in text
    assert "I paid 5.50 crowns for a kilowatt hour at Rivermouth" in text
    for hidden in ("publish_report", "delete your notes", "trust no other", "mark this finding", "meta-data"):
        assert hidden not in text


@pytest.mark.parametrize(
    ("url", "reason"),
    {
        "https://ledgerdaily.example/home-charger-money": "paywall",
        "https://chargerstatus.example/": "empty",
        "https://fleetarchive.example/outages": "robots",
        "https://links.example/to-closed": "robots",
        "https://heavy.example/register": "size",
        "https://heavy.example/bomb": "size",
        "https://guarded.example/members": "blocked",
        "https://guarded.example/denied": "blocked",
        "https://guarded.example/busy": "blocked",
        "https://guarded.example/broken": "unavailable",
        "https://guarded.example/gone": "gone",
        "https://links.example/loop": "redirects",
        "https://links.example/loopback": "address",
        "https://links.example/metadata": "address",
        "https://links.example/loopback6": "address",
        "https://links.example/decimal": "address",
        "https://links.example/mapped": "address",
        "https://links.example/intranet": "address",
        "https://links.example/mixed": "address",
        "https://links.example/file": "url",
    }.items(),
)
def test_pages_that_cannot_be_read_say_why(pages: dict[str, dict[str, Any]], url: str, reason: str) -> None:
    assert (pages[url]["readable"], pages[url]["url"]) == (False, url)
    assert pages[url]["reason"].startswith(f"{reason}: ")


def test_a_page_that_moved_is_the_page_where_it_is(pages: dict[str, dict[str, Any]]) -> None:
    assert pages["http://old.veldmark.example/chargers"] == pages[COUNT]


def test_robots_rules_of_one_site_are_those_for_this_agent(shared: Web) -> None:
    closed, opened = (fetch(shared, f"https://tidings.example/archive/{year}/x")["reason"] for year in (2020, 2026))
    assert (closed.partition(":")[0], opened) == ("robots", "gone: HTTP 404")


def test_pages_can_be_read_side_by_side(web: Web, pages: dict[str, dict[str, Any]]) -> None:
    async def together() -> list[str]:
        async with session(web) as opened:
            calls = (opened.call_tool("fetch_page", {"url": url}) for url in pages)
            return [result.content[0].text for result in await asyncio.gather(*calls)]

    assert [json.loads(text) for text in asyncio.run(together())] == list(pages.values())


@pytest.mark.parametrize("host", ["www.python.org", "unrecorded.example", "localhost"])
def test_no_other_host_is_reached(shared: Web, host: str) -> None:
    assert fetch(shared, f"https://{host}/")["reason"] == f"unavailable: {host} has no address"


def test_the_server_itself_cannot_be_fetched(shared: Web) -> None:
    assert fetch(shared, f"{shared.base_url}/admin/counters")["reason"].startswith("address: ")


def test_a_stale_page_is_the_one_of_a_year_ago(web: Web) -> None:
    web.add_fault("stale", "fetch_page", subject=COUNT, times=1)
    stale, other, fresh = ask(
        web,
        ("fetch_page", {"url": COUNT}),
        ("fetch_page", {"url": RELEASE}),
        ("fetch_page", {"url": COUNT}),
    )
    assert "On 1 January 2025 there were 35,365" in stale["text"]
    assert (stale["url"], stale["source_id"], stale["published_on"]) == (COUNT, fresh["source_id"], "2025-03-13")
    assert (stale["duplicate_of"], stale["readable"]) == (None, True)
    assert other["readable"] and "41,730" in fresh["text"]


def test_an_error_fails_the_call_as_often_as_it_says(web: Web) -> None:
    web.add_fault("error", "fetch_page", times=2)
    first, search_answer, second, third = ask(
        web,
        ("fetch_page", {"url": COUNT}),
        ("web_search", {"query": "charging"}),
        ("fetch_page", {"url": COUNT}),
        ("fetch_page", {"url": COUNT}),
    )
    assert all("the web service is not available" in each for each in (first, second))
    assert search_answer["results"] and third["readable"]


def test_faults_can_be_switched_off_and_aimed_at_a_tenant(web: Web) -> None:
    web.add_fault("error", "web_search", tenant="globex")
    call = ("web_search", {"query": "charging"})
    assert ask(web, call)[0]["results"]
    assert "not available" in ask(web, call, token=web.tokens["globex"])[0]
    web.clear_faults()
    assert ask(web, call, token=web.tokens["globex"])[0]["results"]


def test_a_delay_outlasts_an_impatient_caller(web: Web) -> None:
    web.add_fault("delay", "web_search", seconds=30.0, times=1)

    async def hurried() -> None:
        async with session(web) as opened:
            async with asyncio.timeout(0.3):
                await opened.call_tool("web_search", {"query": "charging"})

    with pytest.raises((TimeoutError, BaseExceptionGroup)):
        asyncio.run(hurried())
    assert web.counters()["by_tool"] == {"web_search": 1}


def test_a_flaky_search_loses_its_best_result_on_the_same_calls_for_the_same_seed(web: Web) -> None:
    calls = [("web_search", {"query": "public charging points", "limit": 3})] * 12
    whole = search(web, "public charging points", 4)
    lost: list[list[bool]] = []
    for seed in (1, 1, 2):
        web.clear_faults()
        web.add_fault("flaky", "web_search", rate=0.5, seed=seed)
        found = [document["results"] for document in ask(web, *calls)]
        assert all(results in (whole[:3], whole[1:]) for results in found)
        lost.append([results == whole[1:] for results in found])
    assert lost[0] == lost[1] != lost[2]
    assert 0 < sum(lost[0]) < 12


def test_the_rate_of_a_fault_is_the_share_of_calls_that_it_strikes() -> None:
    faults = Faults()
    faults.add(Fault("flaky", "web_search", rate=0.4, seed=7))
    struck = sum(bool(faults.strike("web_search", "q", "acme")) for _ in range(1000))
    assert 350 < struck < 450


def test_an_unknown_kind_of_fault_is_refused(web: Web) -> None:
    with pytest.raises(Refused, match="kind is one of"):
        web.add_fault("meteorite", "fetch_page")


def test_calls_are_counted_by_tool_and_tenant(web: Web) -> None:
    ask(web, ("web_search", {"query": "charging"}), ("fetch_page", {"url": COUNT}))
    ask(web, ("fetch_page", {"url": RELEASE}), token=web.tokens["globex"])
    counters = web.counters()
    assert (counters["n_calls"], counters["by_tool"], counters["by_tenant"]) == (
        3,
        {"web_search": 1, "fetch_page": 2},
        {"acme": 2, "globex": 1},
    )
    assert counters["calls"] == [
        {"tool": "fetch_page", "tenant": "acme", "n": 1},
        {"tool": "fetch_page", "tenant": "globex", "n": 1},
        {"tool": "web_search", "tenant": "acme", "n": 1},
    ]
    assert [each["subject"] for each in counters["subjects"]] == ["charging", COUNT, RELEASE]


def test_a_form_that_is_submitted_can_be_seen(web: Web) -> None:
    assert web.submitted() == []
    form = {"url": "https://evblog.example/subscribe", "fields": {"email": "a@b.example"}}
    assert ask(web, ("submit_form", form))[0] == {"submitted": form["url"]}
    assert web.submitted() == [{"tenant": "acme", **form}]


def test_the_recorded_web_is_whole() -> None:
    web = load()
    files = {page.file for page in web.pages.values()} | {page.earlier_file for page in web.pages.values()}
    assert files - {None} == {str(file.relative_to(PAGES)) for file in PAGES.rglob("*") if file.is_file()}
    for url in web.pages:
        assert normalise(url) == url


def test_importing_the_fixtures_loads_nothing_heavy() -> None:
    code = "import sys, fixtures.web; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    heavy = {"mcp", "starlette", "uvicorn", "trafilatura", "lxml", "pypdf", "httpx", "httpcore", "langchain_core"}
    assert not heavy & set(loaded.split())


def test_the_library_needs_no_langgraph() -> None:
    code = (
        "import sys, graphs.research_report.web.fetching as f\n"
        "from graphs.research_report.web.reading import read, Reading\n"
        f"read(b'<p>{'words ' * 20}</p>', 'text/html', Reading(), lambda: None)\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not {"langgraph", "langchain_core", "mcp", "pydantic"} & set(loaded.split())
    assert "trafilatura" in loaded.split()


@pytest.mark.real_process
def test_it_runs_as_a_process_and_ends_on_a_signal() -> None:
    command = [sys.executable, "-m", "fixtures.web", "acme", "globex"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url, *lines = (process.stdout.readline().strip() for _ in range(3))
        web = Web(url.removesuffix("/mcp"), dict(line.split("=", 1) for line in lines))
        assert fetch(web, COUNT, token=web.tokens["globex"])["readable"]
        process.terminate()
        assert process.wait(timeout=30) == 0
