"""The research workflow against a running back office and a web in memory, as tests drive it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from agentctl.sandbox.registry import ToolRegistry
from fixtures.backoffice import BackOffice, running
from fixtures.backoffice.publishing import IDENTITY
from fixtures.incidents.production import tool_options
from graphs.common.effects import http_client, json_text
from graphs.common.services import Retries, ServiceUnavailable
from graphs.research_report.graph import ResearchGraph, build_graph
from graphs.research_report.models import make_models
from graphs.research_report.notes import Note, read_notes, sha256
from graphs.research_report.policy import CURRENT_POLICY, load_policies
from graphs.research_report.report import Report
from graphs.research_report.text import words
from graphs.research_report.tools import production_tools
from graphs.research_report.traffic import Traffic
from graphs.research_report.web.pages import source_id

TODAY = "2026-11-30"
REVIEWER = {"actor": "rev-1", "actor_role": "report_reviewer"}
APPROVE = {"decisions": [{"type": "approve"}]}
QUESTION = "How far is shore power in Norhaven?"
BERTHS, PRICE = "berths with shore power", "price paid by ships"
COUNT_URL, REGISTER_URL, PRICE_URL = (
    "https://count.example/berths",
    "https://register.example/berths",
    "https://price.example/",
)


def page(url: str, text: str, *, published_on: str | None = "2026-05-02", **fields: Any) -> dict[str, Any]:
    """A page as fetch_page answers it."""
    return {
        "source_id": source_id(url),
        "url": url,
        "title": text.splitlines()[0][:60] if text else None,
        "publisher": "Port Office",
        "type": "article",
        "accessed_on": TODAY,
        "published_on": published_on,
        "text": text,
        "text_sha256": sha256(text) if text else None,
        "readable": bool(text),
        "reason": None,
        "duplicate_of": None,
        **fields,
    }


def norhaven() -> list[dict[str, Any]]:
    """Two independent pages on berths that agree, and one on the price."""
    return [
        page(COUNT_URL, "Norhaven counted 120 berths with shore power in 2026. It counts them each spring."),
        page(REGISTER_URL, "The register shows 120 berths with shore power in 2026.", published_on="2026-06-01"),
        page(PRICE_URL, "Ships paid a price of 0.31 euros a kilowatt hour in 2026.", published_on="2026-07-01"),
    ]


@dataclass
class MemoryWeb:
    """A web of a few pages, behind the tools as the MCP server is; counts what it is asked."""

    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    failing: dict[str, int] = field(default_factory=dict)
    before: Callable[[str, str], None] = lambda tool, subject: None

    def hold(self, *pages: Mapping[str, Any]) -> None:
        """Holds these pages and no others, and forgets what was asked."""
        self.pages = {str(each["url"]): dict(each) for each in pages}
        self.asked.clear()
        self.failing.clear()
        self.before = lambda tool, subject: None

    def call(self, tenant: str, tool: str, args: Mapping[str, Any]) -> str:
        """Answers a call, or fails as often as `failing` says."""
        subject = str(args.get("query", args.get("url")))
        self.asked.append((tenant, tool, subject))
        self.before(tool, subject)
        if self.failing.get(tool, 0):
            self.failing[tool] -= 1
            raise ServiceUnavailable(f"{tool} is down")
        if tool == "fetch_page":
            return json_text(self.pages.get(subject) or page(subject, "", reason="gone: HTTP 404"))
        return json_text({"query": subject, "results": self._results(words(subject))[: args["limit"]]})

    def n_asked(self, tool: str) -> int:
        return sum(asked == tool for _, asked, _ in self.asked)

    def _results(self, wanted: frozenset[str]) -> list[dict[str, Any]]:
        scored = [(len(wanted & words(f"{each['title']} {each['text']}")), each) for each in self.pages.values()]
        names = ("source_id", "url", "title", "publisher", "published_on")
        best = sorted((each for each in scored if each[0] * 2 >= len(wanted)), key=lambda each: -each[0])
        return [{**{name: each[name] for name in names}, "snippet": ""} for _, each in best]


@dataclass
class ResearchWorld:
    """A back office, a web, and what builds the workflow over them. The graph is built once for the usual settings."""

    backoffice: BackOffice
    folder: Path
    http: httpx.Client
    web: MemoryWeb
    _graph: ResearchGraph | None = None

    @property
    def database_url(self) -> str:
        return str(self.folder / "application.sqlite")

    def tools(self, **options: Any) -> ToolRegistry:
        """The production registry; it never waits, and keeps no pages between calls."""
        still = Traffic(load_policies()[CURRENT_POLICY], clock=_Growing(), sleep=lambda _: None)
        usual = {
            **tool_options(self.http, identity=IDENTITY, database_url=self.database_url),
            "web": self.web,
            "backoffice_url": self.backoffice.url,
            "traffic": still,
            "retries": Retries(sleep=lambda _: None),
        }
        return production_tools(**{**usual, **options})

    def graph(self, saver: BaseCheckpointSaver[Any], **options: Any) -> ResearchGraph:
        """The workflow over the production tools, with a checkpointer."""
        if options:
            graph = self._built(**options)
        else:
            graph = self._graph = self._graph or self._built()
        graph.checkpointer = saver
        return graph

    def published(self, thread: str) -> list[dict[str, Any]]:
        """What the back office published for a thread."""
        return [each for each in self.backoffice.effects("publication") if each["reference"].startswith(f"{thread}:")]

    def _built(self, **options: Any) -> ResearchGraph:
        tools = options.pop("tools", None) or self.tools()
        model = options.pop("model", None) or make_models(env={})
        return build_graph(tools, model=model, retry_delay_s=0.0, **options)


class _Growing:
    """A clock that is an hour further each time: nothing that is cached by it is ever fresh."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += 3600.0
        return self._now_s


@contextmanager
def research_world(folder: Path) -> Iterator[ResearchWorld]:
    """Runs a back office."""
    folder.mkdir(exist_ok=True)
    with running(folder / "backoffice.sqlite") as backoffice, http_client(backoffice.url, identity=IDENTITY) as http:
        yield ResearchWorld(backoffice, folder, http, MemoryWeb())


def brief(*scope: str, question: str = QUESTION, **fields: Any) -> dict[str, Any]:
    """A run's input: on berths and price, unless said otherwise."""
    return {"question": question, "scope": list(scope) or [BERTHS, PRICE], "audience": "port planners", **fields}


def analyst(thread: str = "t", **more: Any) -> RunnableConfig:
    """The config of an analyst's run."""
    return {"configurable": {"thread_id": thread, "user_id": "u-1", "tenant": "acme", **more}}


def reviewer(thread: str = "t", **more: Any) -> RunnableConfig:
    """The config of a reviewer's run on an analyst's thread."""
    return analyst(thread, **{**REVIEWER, **more})


def research(graph: ResearchGraph, config: RunnableConfig, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Runs a brief until it ends or asks, and returns the state."""
    result: dict[str, Any] = graph.invoke(dict(given or brief()), config, durability="sync")
    return result


def resume(graph: ResearchGraph, config: RunnableConfig, value: object) -> dict[str, Any]:
    """Answers a review with the stock API and returns the state."""
    result: dict[str, Any] = graph.invoke(Command(resume=value), config, durability="sync")
    return result


def asked(graph: ResearchGraph, config: RunnableConfig) -> dict[str, Any]:
    """What the thread waits for."""
    [question] = graph.get_state(config).interrupts
    return dict(question.value)


def offered(graph: ResearchGraph, config: RunnableConfig) -> Report:
    """The report that waits for its review."""
    return Report.model_validate(asked(graph, config)["action_requests"][0]["args"]["report"])


def reject(message: str) -> dict[str, Any]:
    return {"decisions": [{"type": "reject", "message": message}]}


def edit(args: Mapping[str, Any]) -> dict[str, Any]:
    return {"decisions": [{"type": "edit", "edited_action": {"name": "publish_report", "args": dict(args)}}]}


def called(messages: list[AnyMessage], name: str) -> list[Mapping[str, Any]]:
    """The tool calls of that name in a conversation."""
    made = [message for message in messages if isinstance(message, AIMessage)]
    return [call for message in made for call in message.tool_calls if call["name"] == name]


def notes_of(state: Mapping[str, Any]) -> dict[str, Note]:
    """The notes in a state's files, by path."""
    return {note.path: note for note in read_notes(state["files"])}
