"""The support workflow against a running back office, as tests drive it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import httpx
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.types import Command

from agentctl.sandbox.registry import ToolRegistry
from fixtures.backoffice import BackOffice, running
from fixtures.backoffice.support import IDENTITY, put_order, put_policy
from fixtures.incidents.production import tool_options
from fixtures.incidents.support.files import order_record
from fixtures.incidents.support.seeding import last_reply
from graphs.common.effects import http_client
from graphs.common.services import Retries
from graphs.support_refunds.graph import SupportGraph, build_graph
from graphs.support_refunds.model import make_model
from graphs.support_refunds.policy import load_policies
from graphs.support_refunds.tools import production_tools

TODAY = date(2026, 11, 30)
APPROVER = {"actor": "lead-3", "actor_role": "refund_approver"}


@dataclass(frozen=True)
class SupportWorld:
    """A back office with its policies, and what builds the workflow over it."""

    backoffice: BackOffice
    folder: Path
    http: httpx.Client

    @property
    def database_url(self) -> str:
        return str(self.folder / "application.sqlite")

    def put_order(self, order_id: str, status: str, total: str = "120.00", **more: Any) -> dict[str, Any]:
        """Stores an order, on which 5.00 is shipping unless said otherwise, and returns its record."""
        entry = {
            "order_id": order_id,
            "status": status,
            "total": total,
            "shipping": "5.00",
            "ordered_days_ago": 20,
            **more,
        }
        record = order_record(entry, TODAY)
        put_order(self.backoffice, record)
        return record

    def tools(self, **options: Any) -> ToolRegistry:
        """The production registry; its retries do not wait."""
        usual = tool_options(self.http, identity=IDENTITY, database_url=self.database_url)
        return production_tools(self.backoffice.url, **{**usual, "retries": Retries(sleep=lambda _: None), **options})

    def graph(
        self,
        saver: BaseCheckpointSaver[Any],
        *,
        tools: ToolRegistry | None = None,
        memory: BaseStore | None = None,
        **options: Any,
    ) -> SupportGraph:
        """The workflow over the production tools, with a checkpointer."""
        model = options.pop("model", None) or make_model(env={})
        graph = build_graph(tools or self.tools(), model=model, memory=memory, **options)
        graph.checkpointer = saver
        return graph


@contextmanager
def support_world(folder: Path) -> Iterator[SupportWorld]:
    """Runs a back office that knows the policies."""
    with running(folder / "backoffice.sqlite") as backoffice, http_client(backoffice.url, identity=IDENTITY) as http:
        for version, policy in load_policies().items():
            for topic in policy.topics:
                put_policy(backoffice, version, topic, policy.answer(topic) or {})
        yield SupportWorld(backoffice, folder, http)


def customer(thread: str, *, user_id: str = "u-1", tenant: str = "acme", **more: Any) -> RunnableConfig:
    """The config of a customer's run."""
    return {
        "configurable": {
            "thread_id": thread,
            "user_id": user_id,
            "tenant": tenant,
            "ticket_id": "T-1",
            "today": TODAY.isoformat(),
            **more,
        }
    }


def staff(thread: str, **more: Any) -> RunnableConfig:
    """The config of an approver's run on a customer's thread."""
    return customer(thread, **{**APPROVER, **more})


def say(graph: SupportGraph, config: RunnableConfig, text: str) -> dict[str, Any]:
    """Sends a customer's message and returns the state."""
    result: dict[str, Any] = graph.invoke({"messages": [HumanMessage(text)]}, config, durability="sync")
    return result


def resume(graph: SupportGraph, config: RunnableConfig, value: object) -> dict[str, Any]:
    """Answers an interrupt with the stock API and returns the state."""
    result: dict[str, Any] = graph.invoke(Command(resume=value), config, durability="sync")
    return result


def converse(graph: SupportGraph, config: RunnableConfig, text: str) -> str:
    """Sends a message, approves whatever is asked, and returns the reply."""
    result = say(graph, config, text)
    while graph.get_state(config).interrupts:
        as_staff: RunnableConfig = {"configurable": {**config["configurable"], **APPROVER}}
        result = resume(graph, as_staff, {"decision": "approve"})
    return last_reply(result["messages"])


def called(messages: list[AnyMessage], name: str) -> list[Mapping[str, Any]]:
    """The tool calls of that name in a conversation."""
    return [call for message in messages for call in getattr(message, "tool_calls", ()) if call["name"] == name]


def answers(messages: list[AnyMessage], name: str) -> list[Any]:
    """The tool messages of that name in a conversation."""
    return [message for message in messages if message.type == "tool" and message.name == name]
