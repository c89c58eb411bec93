"""The production tools: the back office over HTTP, effects exactly once, nothing real outside production."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import httpx
from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.outbound import OutboundLog
from graphs.common.owners import caller_of
from graphs.common.services import CircuitBreaker, Effect, Retries, Service, ServiceRefused, cause
from graphs.support_refunds.application import application_database
from graphs.support_refunds.catalog import registry_of
from graphs.support_refunds.memory import preferences_namespace
from graphs.support_refunds.policy import CURRENT_POLICY

PRODUCTION = "production"
DEBUG_IDENTITY = "support-agent@debug"
_NO_DATABASE = "sqlite:///:memory:"
_SERVICES = ("orders", "policies", "refunds", "emails", "tickets")


class NotProduction(RuntimeError):
    """A tool with an effect was called outside production: it refuses, whatever else is configured."""


class ProductionTools:
    """The tools over the back office.

    Args:
        http: Client with base address, timeout and identity header.
        log: The outbound requests.
        env: Where AGENTCTL_ENV is read, at each call.
        retries: For transient errors.
        breaker: Makes the circuit breaker of one service.
    """

    def __init__(
        self,
        http: httpx.Client,
        log: OutboundLog,
        env: Mapping[str, str],
        retries: Retries,
        breaker: Callable[[], CircuitBreaker],
    ) -> None:
        self._services = {name: Service(name, http, breaker(), retries) for name in _SERVICES}
        # Their own breakers: look-ups that work must not close the breaker of effects that fail.
        self._records = {name: Service(f"{name} look-up", http, breaker(), retries) for name in _SERVICES}
        self._log = log
        self._env = env

    def registry(self) -> ToolRegistry:
        """Returns them as the workflow takes them."""
        return registry_of(
            {
                "lookup_order": self.lookup_order,
                "get_refund_policy": self.get_refund_policy,
                "issue_refund": self.issue_refund,
                "send_email": self.send_email,
                "update_ticket": self.update_ticket,
                "remember_preference": self.remember_preference,
            }
        )

    def lookup_order(self, order_id: str) -> str:
        """Reads an order."""
        return _text(_answer(lambda: self._services["orders"].get(f"/orders/{order_id}")))

    def get_refund_policy(self, topic: str, runtime: ToolRuntime) -> str:
        """Reads the policy that the thread is judged by."""
        version = runtime.state.get("policy_version") or CURRENT_POLICY
        return _text(_answer(lambda: self._services["policies"].get(f"/policies/{version}/{topic}")))

    def issue_refund(
        self,
        order_id: str,
        amount: str,
        currency: str,
        reason: str,
        runtime: ToolRuntime,
        method: str = "original_payment",
    ) -> str:
        """Pays a refund."""
        body = {"order_id": order_id, "amount": amount, "currency": currency, "reason": reason, "method": method}
        return self._cause("refunds", "issue_refund", body, runtime)

    def send_email(self, order_id: str, subject: str, body: str, runtime: ToolRuntime) -> str:
        """Sends an e-mail."""
        return self._cause("emails", "send_email", {"order_id": order_id, "subject": subject, "body": body}, runtime)

    def update_ticket(self, ticket_id: str, status: str, note: str, runtime: ToolRuntime) -> str:
        """Updates a ticket."""
        body = {"ticket_id": ticket_id, "status": status, "note": note}
        return self._cause("tickets", "update_ticket", body, runtime)

    def remember_preference(self, name: str, value: str, runtime: ToolRuntime) -> str:
        """Writes to the memory store; the key is the preference, so a repeat changes nothing."""
        self._refuse_outside_production("remember_preference")
        if runtime.store is None:
            raise ToolException("there is no memory store: nothing was remembered")
        owner = caller_of(runtime.config["configurable"]).owner
        runtime.store.put(preferences_namespace(owner), name, {"value": value})
        return _text({"remembered": name, "value": value})

    def _cause(self, service: str, operation: str, body: Mapping[str, Any], runtime: ToolRuntime) -> str:
        self._refuse_outside_production(operation)
        thread = str(runtime.config["configurable"]["thread_id"])
        key = f"{thread}:{operation}:{runtime.tool_call_id}"
        records = self._records[service]
        effect = Effect(key, thread, operation, f"/{service}", body, look_up=lambda: _found(records, service, key))
        return _text(_answer(lambda: cause(effect, self._services[service], self._log)))

    def _refuse_outside_production(self, operation: str) -> None:
        if self._env.get("AGENTCTL_ENV") != PRODUCTION:
            raise NotProduction(f"{operation} refuses to run: AGENTCTL_ENV is not {PRODUCTION}")


def production_tools(
    base_url: str,
    *,
    identity: str,
    database_url: str,
    env: Mapping[str, str] = os.environ,
    http: httpx.Client | None = None,
    timeout_s: float = 5.0,
    retries: Retries | None = None,
    breaker: Callable[[], CircuitBreaker] = CircuitBreaker,
) -> ToolRegistry:
    """Builds the production registry.

    Args:
        base_url: The back office.
        identity: The service identity that calls are made under.
        database_url: The application's database: `sqlite:///file` or `postgresql://...`.
        env: Tools with an effect refuse unless its AGENTCTL_ENV is `production`.
        http: A client to use, made by `http_client`; by default one that keeps no connection open.
        timeout_s: Per request, for the default client.
        retries: For transient errors.
        breaker: Makes the circuit breaker of one service.
    """
    log = OutboundLog(application_database(database_url))
    client = http or http_client(base_url, identity=identity, timeout_s=timeout_s, keep_alive=False)
    return ProductionTools(client, log, env, retries or Retries(), breaker).registry()


def http_client(base_url: str, *, identity: str, timeout_s: float = 5.0, keep_alive: bool = True) -> httpx.Client:
    """Returns a client for the back office that calls under a service identity.

    Args:
        base_url: The back office.
        identity: The service identity.
        timeout_s: Per request.
        keep_alive: Whether connections are kept for the next call; not where nobody closes the client.
    """
    return httpx.Client(
        base_url=base_url,
        timeout=timeout_s,
        headers={"X-Service-Identity": identity},
        limits=httpx.Limits(max_keepalive_connections=None if keep_alive else 0),
        trust_env=False,
    )


def registry_from_environment(env: Mapping[str, str] = os.environ) -> ToolRegistry:
    """Builds the production registry from SUPPORT_BACKOFFICE_URL, SUPPORT_SERVICE_IDENTITY and SUPPORT_DATABASE_URL.

    Outside production the address alone is needed: reads may run, under an identity that may do nothing else.

    Raises:
        KeyError: a variable is missing.
    """
    is_production = env.get("AGENTCTL_ENV") == PRODUCTION
    return production_tools(
        env["SUPPORT_BACKOFFICE_URL"],
        identity=env["SUPPORT_SERVICE_IDENTITY"] if is_production else DEBUG_IDENTITY,
        database_url=env["SUPPORT_DATABASE_URL"] if is_production else _NO_DATABASE,
        env=env,
    )


def _found(service: Service, path: str, key: str) -> Mapping[str, Any] | None:
    items = service.get(f"/{path}", reference=key)["items"]
    return items[0] if items else None


def _answer(call: Callable[[], Any]) -> Any:
    """Makes a refusal of the service an error that the model reads; an outage stops the run instead."""
    try:
        return call()
    except ServiceRefused as refused:
        raise ToolException(str(refused)) from refused


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
