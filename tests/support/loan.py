"""The loan workflow against a running back office, as tests drive it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import httpx
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.types import Command, RetryPolicy

from agentctl.sandbox.registry import ToolRegistry
from fixtures.backoffice import BackOffice, running
from fixtures.backoffice.lending import IDENTITY, put_bureau_file, put_underwriter
from fixtures.documents.loan import Applicant, put_case
from fixtures.incidents.production import tool_options
from graphs.common.effects import http_client
from graphs.common.services import is_transient
from graphs.loan_underwriting.graph import LoanGraph, build_graph
from graphs.loan_underwriting.model import make_model
from graphs.loan_underwriting.state import Application
from graphs.loan_underwriting.tools import production_tools

NOW = "2026-11-30T12:00:00+00:00"
TODAY = date(2026, 11, 30)
APPLICANT = Applicant("ap-1")
APPLICATION: Application = {
    "applicant_id": "ap-1",
    "amount": "12000.00",
    "currency": "EUR",
    "term_months": 48,
    "segment": "consumer",
}
REVIEWER = {"actor": "uw-1", "actor_role": "underwriter"}
SENIOR = {"actor": "uw-9", "actor_role": "senior_underwriter"}
OPERATIONS = {"actor": "ops-1", "actor_role": "operations"}
AT_ONCE = RetryPolicy(max_attempts=3, initial_interval=0.0, jitter=False, retry_on=is_transient)
APPROVE = {"decision": "approve", "reason_code": "COMPENSATING_FACTORS"}
DECLINE = {"decision": "decline", "reason_code": "UNEXPLAINED_CONFLICT"}


@dataclass(frozen=True)
class LoanWorld:
    """A back office with a roster, and what builds the workflow over it."""

    backoffice: BackOffice
    folder: Path
    http: httpx.Client

    @property
    def database_url(self) -> str:
        return str(self.folder / "application.sqlite")

    def put_applicant(
        self, applicant: Applicant = APPLICANT, *, bureau: Mapping[str, Any] | None = None, **case: Any
    ) -> list[dict[str, str]]:
        """Stores an applicant's documents and bureau file, and returns the references."""
        self.put_file(applicant.applicant_id, **dict(bureau or {}))
        return put_case(self.backoffice, applicant.applicant_id, applicant, today=TODAY, **case)

    def put_file(self, applicant_id: str = "ap-1", *, replica: Mapping[str, Any] | None = None, **fields: Any) -> None:
        """Stores a good bureau file but for what is said otherwise."""
        record = {
            "applicant_id": applicant_id,
            "score": 680,
            "open_defaults": 0,
            "n_accounts": 5,
            "monthly_obligations": "350.00",
            "as_of": TODAY.isoformat(),
            **fields,
        }
        put_bureau_file(self.backoffice, record, replica=None if replica is None else {**record, **replica})

    def tools(self, **options: Any) -> ToolRegistry:
        """The production registry."""
        usual = tool_options(self.http, identity=IDENTITY, database_url=self.database_url)
        return production_tools(self.backoffice.url, **{**usual, **options})

    def graph(
        self,
        saver: BaseCheckpointSaver[Any],
        *,
        tools: ToolRegistry | None = None,
        memory: BaseStore | None = None,
        **options: Any,
    ) -> LoanGraph:
        """The workflow over the production tools, with a checkpointer; its retries do not wait."""
        model = options.pop("model", None) or make_model(env={})
        graph = build_graph(tools or self.tools(), model=model, memory=memory, **{"retry": AT_ONCE, **options})
        graph.checkpointer = saver
        return graph


@contextmanager
def loan_world(folder: Path) -> Iterator[LoanWorld]:
    """Runs a back office with two underwriters on its roster."""
    with running(folder / "backoffice.sqlite") as backoffice, http_client(backoffice.url, identity=IDENTITY) as http:
        put_underwriter(backoffice, "uw-1", up_to="25000.00")
        put_underwriter(backoffice, "uw-9", up_to="100000.00")
        yield LoanWorld(backoffice, folder, http)


def applicant(thread: str = "t", **more: Any) -> RunnableConfig:
    """The config of an applicant's run."""
    return {"configurable": {"thread_id": thread, "user_id": "u-1", "tenant": "acme", "now": NOW, **more}}


def staff(thread: str = "t", **more: Any) -> RunnableConfig:
    """The config of the assigned underwriter's run on an applicant's thread."""
    return applicant(thread, **{**REVIEWER, **more})


def application(documents: list[dict[str, str]], **fields: Any) -> dict[str, Any]:
    """A case's input: 12,000 EUR over four years unless said otherwise."""
    return {"application": {**APPLICATION, **fields}, "documents": documents}


def apply(
    graph: LoanGraph, documents: list[dict[str, str]], config: RunnableConfig | None = None, **fields: Any
) -> Any:
    """Opens a case and returns the state it comes to."""
    return graph.invoke(application(documents, **fields), config or applicant(), durability="sync")


def resume(graph: LoanGraph, config: RunnableConfig, value: object) -> Any:
    """Answers the one question of a thread with the stock API and returns the state."""
    (asked,) = graph.get_state(config).interrupts
    return graph.invoke(Command(resume={asked.id: value}), config, durability="sync")


def question(graph: LoanGraph, config: RunnableConfig | None = None) -> dict[str, Any]:
    """What the thread asks."""
    (asked,) = graph.get_state(config or applicant()).interrupts
    value: dict[str, Any] = asked.value
    return value
