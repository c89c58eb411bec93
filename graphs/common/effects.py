"""The effect client: how production tools call services: effects exactly once, nothing real outside production."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Required, TypedDict, Unpack

import httpx
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException

from graphs.common.answers import CLAIMS_TABLE
from graphs.common.database import Database
from graphs.common.outbound import OUTBOUND_TABLE, OutboundLog
from graphs.common.services import CircuitBreaker, Effect, Retries, Service, ServiceRefused, cause

PRODUCTION = "production"
_NO_DATABASE = "sqlite:///:memory:"


class NotProduction(RuntimeError):
    """A tool with an effect was called outside production: it refuses, whatever else is configured."""


@dataclass(frozen=True, slots=True)
class Access:
    """The service identity that calls are made under, and the application's database, where effects are logged."""

    identity: str
    database_url: str


def access_from_environment(prefix: str, env: Mapping[str, str], *, debug_identity: str) -> Access:
    """Reads PREFIX_SERVICE_IDENTITY and PREFIX_DATABASE_URL in production.

    Elsewhere neither is needed: reads may run, under an identity that may do nothing else, and nothing is logged.

    Raises:
        KeyError: a variable is missing.
    """
    if not is_production(env):
        return Access(debug_identity, _NO_DATABASE)
    return Access(env[f"{prefix}_SERVICE_IDENTITY"], env[f"{prefix}_DATABASE_URL"])


def is_production(env: Mapping[str, str]) -> bool:
    """Tells whether AGENTCTL_ENV says that effects are real."""
    return env.get("AGENTCTL_ENV") == PRODUCTION


class EffectClient:
    """Calls the services of one back office by name.

    Args:
        services: Their names: the first part of each path.
        http: Client with base address, timeout and identity header.
        log: The outbound requests.
        env: Where AGENTCTL_ENV is read, at each call.
        retries: For transient errors, inside one call.
        breaker: Makes the circuit breaker of one service.
    """

    def __init__(
        self,
        services: Collection[str],
        http: httpx.Client,
        log: OutboundLog,
        env: Mapping[str, str],
        retries: Retries,
        breaker: Callable[[], CircuitBreaker] = CircuitBreaker,
    ) -> None:
        self._services = {name: Service(name, http, breaker(), retries) for name in services}
        # Their own breakers: look-ups that work must not close the breaker of effects that fail.
        self._records = {name: Service(f"{name} look-up", http, breaker(), retries) for name in services}
        self._log = log
        self._env = env

    def read(self, service: str, key: str) -> str:
        """Reads one record, as JSON text.

        Raises:
            ToolException: the service refused.
            ServiceUnavailable: it did not answer.
        """
        return json_text(_told(lambda: self._services[service].get(f"/{service}/{key}")))

    def cause(
        self,
        service: str,
        operation: str,
        body: Mapping[str, Any],
        *,
        config: RunnableConfig,
        call_id: str,
        note: Mapping[str, Any] | None = None,
    ) -> str:
        """Causes an effect once under `THREAD:CALL_ID`, and returns the receiver's record as JSON text.

        Args:
            service: Where.
            operation: What it is called in the log of requests.
            body: The request.
            config: Names the thread.
            call_id: The tool call's.
            note: Sent with the request without being part of it.

        Raises:
            NotProduction: AGENTCTL_ENV is not production.
            ToolException: the service refused.
            ServiceUnavailable: the outcome is unknown; the next attempt looks it up.
        """
        self.refuse_outside_production(operation)
        thread = str(config["configurable"]["thread_id"])
        key = f"{thread}:{call_id}"
        path = f"/{service}"
        effect = Effect(key, thread, operation, path, body, lambda: self._found(service, key), note or {})
        return json_text(_told(lambda: cause(effect, self._services[service], self._log)))

    def refuse_outside_production(self, operation: str) -> None:
        """Refuses an effect anywhere but in production.

        Raises:
            NotProduction: AGENTCTL_ENV is not production.
        """
        if not is_production(self._env):
            raise NotProduction(f"{operation} refuses to run: AGENTCTL_ENV is not {PRODUCTION}")

    def _found(self, service: str, key: str) -> Mapping[str, Any] | None:
        items = self._records[service].get(f"/{service}", reference=key)["items"]
        return items[0] if items else None


class ClientOptions(TypedDict, total=False):
    """What an effect client is made with.

    Attributes:
        identity: The service identity that calls are made under.
        database_url: The application's database: `sqlite:///file` or `postgresql://...`.
        env: Effects are refused unless its AGENTCTL_ENV is `production`; by default this process's environment.
        http: A client to use, made by `http_client`; by default one that keeps no connection open.
        timeout_s: Per request, for the default client.
        breaker: Makes the circuit breaker of one service.
        log: The outbound requests; by default those of the database.
    """

    identity: Required[str]
    database_url: Required[str]
    env: Mapping[str, str]
    http: httpx.Client | None
    timeout_s: float
    breaker: Callable[[], CircuitBreaker]
    log: OutboundLog | None


def effect_client(
    services: Collection[str], base_url: str, *, retries: Retries | None = None, **options: Unpack[ClientOptions]
) -> EffectClient:
    """Returns the effect client of a workflow whose database is `application_database`.

    Args:
        services: Their names.
        base_url: The back office.
        retries: For transient errors, inside one call; by default the usual ones.
        options: See `ClientOptions`.
    """
    identity, timeout_s = options["identity"], options.get("timeout_s", 5.0)
    return EffectClient(
        services,
        options.get("http") or http_client(base_url, identity=identity, timeout_s=timeout_s, keep_alive=False),
        options.get("log") or OutboundLog(application_database(options["database_url"])),
        options.get("env", os.environ),
        retries or Retries(),
        options.get("breaker", CircuitBreaker),
    )


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
        verify=_root_certificates(),
    )


@cache
def _root_certificates() -> ssl.SSLContext:
    # Read once: httpx would read every root certificate again for each client.
    return httpx.create_ssl_context(trust_env=False)


def application_database(url: str) -> Database:
    """Returns the database of outbound requests and answers, by URL; nothing is opened yet."""
    return Database(url, (OUTBOUND_TABLE, CLAIMS_TABLE))


def json_text(value: object) -> str:
    """Returns what a tool answers: a value as JSON text."""
    return json.dumps(value, ensure_ascii=False)


def _told(call: Callable[[], Any]) -> Any:
    """Makes a refusal of the service an error that the caller reads; an outage goes on to stop the run instead."""
    try:
        return call()
    except ServiceRefused as refused:
        raise ToolException(str(refused)) from refused
