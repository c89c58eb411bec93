"""The production tools: the web over MCP, publication at the back office, nothing real outside production."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from langchain_core.runnables import RunnableConfig

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import ClientOptions, EffectClient, access_from_environment, effect_client, is_production
from graphs.common.owners import caller_of
from graphs.common.services import CircuitBreaker, Retries, ServiceUnavailable
from graphs.research_report.catalog import WEB_TOOLS, registry_of
from graphs.research_report.policy import CURRENT_POLICY, load_policies
from graphs.research_report.report import Report, report_sha256
from graphs.research_report.sessions import McpSessions, WebTools
from graphs.research_report.traffic import Traffic

DEBUG_IDENTITY = "research-agent@debug"
_EVERY_TENANT = "*"


@dataclass(slots=True)
class ProductionTools:
    """The tools over the web server and the back office.

    Attributes:
        web: Calls the web server.
        traffic: Limits and cache of every tenant.
        publishing: Calls the back office.
        breaker: Makes the circuit breaker of one tool.
    """

    web: WebTools
    traffic: Traffic
    publishing: EffectClient
    breaker: Callable[[], CircuitBreaker] = CircuitBreaker
    _breakers: dict[str, CircuitBreaker] = field(init=False)

    def __post_init__(self) -> None:
        self._breakers = {name: self.breaker() for name in WEB_TOOLS}

    def registry(self) -> ToolRegistry:
        """Returns them as the workflow takes them."""
        return registry_of(
            {"web_search": self.web_search, "fetch_page": self.fetch_page, "publish_report": self.publish_report}
        )

    def web_search(self, query: str, config: RunnableConfig, limit: int = 5) -> str:
        """Searches the web."""
        return self._ask("web_search", {"query": query, "limit": limit}, config)

    def fetch_page(self, url: str, config: RunnableConfig) -> str:
        """Reads a page."""
        return self._ask("fetch_page", {"url": url}, config)

    def publish_report(self, artifact: str, report: Report, config: RunnableConfig) -> str:
        """Publishes a report once: the key is its hash, however often it is approved or tried."""
        sha256 = report_sha256(report)
        body = {"artifact": artifact, "sha256": sha256, "report": report.model_dump(mode="json")}
        call_id = f"publish_report:{sha256}"
        return self.publishing.cause("publications", "publish_report", body, config=config, call_id=call_id)

    def _ask(self, tool: str, args: Mapping[str, Any], config: RunnableConfig) -> str:
        """Calls the web server in the caller's tenant; which one that is, no model says."""
        tenant = caller_of(config.get("configurable", {})).owner["tenant"]
        return self.traffic.through(tenant, tool, args, lambda: self._through_breaker(tenant, tool, args))

    def _through_breaker(self, tenant: str, tool: str, args: Mapping[str, Any]) -> str:
        breaker = self._breakers[tool]
        if not breaker.allows():
            raise ServiceUnavailable(f"{tool} keeps failing: its circuit breaker is open")
        try:
            answer = self.web.call(tenant, tool, args)
        except ServiceUnavailable:
            breaker.record(ok=False)
            raise
        breaker.record(ok=True)
        return answer


def production_tools(
    *,
    web: WebTools,
    backoffice_url: str,
    traffic: Traffic | None = None,
    retries: Retries | None = None,
    **options: Unpack[ClientOptions],
) -> ToolRegistry:
    """Builds the production registry.

    Args:
        web: Calls the web server, `McpSessions` for example.
        backoffice_url: The back office.
        traffic: Limits and cache; by default those of the current policy.
        retries: For transient errors of the back office.
        options: How the back office is called; the breaker is each web tool's too.
    """
    publishing = effect_client(("publications",), backoffice_url, retries=retries, **options)
    allowed = traffic or Traffic(load_policies()[CURRENT_POLICY])
    return ProductionTools(web, allowed, publishing, options.get("breaker", CircuitBreaker)).registry()


def registry_from_environment(env: Mapping[str, str] = os.environ) -> ToolRegistry:
    """Builds the production registry from the environment; nothing is connected before it is called.

    RESEARCH_MCP_URL and RESEARCH_MCP_TOKEN (`TENANT=TOKEN` pairs, separated by commas, or one token for all) name the
    web server. In production RESEARCH_BACKOFFICE_URL, RESEARCH_SERVICE_IDENTITY and RESEARCH_DATABASE_URL are needed
    too; outside, reads alone may run.

    Raises:
        KeyError: a variable is missing.
    """
    backoffice_url = env["RESEARCH_BACKOFFICE_URL"] if is_production(env) else "http://127.0.0.1:9"
    access = access_from_environment("RESEARCH", env, debug_identity=DEBUG_IDENTITY)
    return production_tools(
        web=McpSessions(env["RESEARCH_MCP_URL"], _tokens(env["RESEARCH_MCP_TOKEN"]), WEB_TOOLS),
        backoffice_url=backoffice_url,
        identity=access.identity,
        database_url=access.database_url,
        env=env,
    )


def _tokens(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    return {tenant: token for tenant, sign, token in pairs if sign} or {_EVERY_TENANT: text}
