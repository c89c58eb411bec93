"""The production tools: the back office over HTTP, effects exactly once, nothing real outside production."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import ClientOptions, EffectClient, access_from_environment, effect_client, json_text
from graphs.common.owners import caller_of
from graphs.common.services import Retries
from graphs.support_refunds.catalog import registry_of
from graphs.support_refunds.memory import preferences_namespace
from graphs.support_refunds.policy import CURRENT_POLICY

DEBUG_IDENTITY = "support-agent@debug"
_SERVICES = ("orders", "policies", "refunds", "emails", "tickets")


class ProductionTools:
    """The tools over the back office. The idempotency key of an effect is `THREAD:OPERATION:CALL_ID`.

    Args:
        client: Calls the services.
    """

    def __init__(self, client: EffectClient) -> None:
        self._client = client

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
        return self._client.read("orders", order_id)

    def get_refund_policy(self, topic: str, runtime: ToolRuntime) -> str:
        """Reads the policy that the thread is judged by."""
        version = runtime.state.get("policy_version") or CURRENT_POLICY
        return self._client.read("policies", f"{version}/{topic}")

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
        self._client.refuse_outside_production("remember_preference")
        if runtime.store is None:
            raise ToolException("there is no memory store: nothing was remembered")
        owner = caller_of(runtime.config["configurable"]).owner
        runtime.store.put(preferences_namespace(owner), name, {"value": value})
        return json_text({"remembered": name, "value": value})

    def _cause(self, service: str, operation: str, body: Mapping[str, Any], runtime: ToolRuntime) -> str:
        # Call ids are the model's here, so the operation is told in the key.
        call_id = f"{operation}:{runtime.tool_call_id}"
        return self._client.cause(service, operation, body, config=runtime.config, call_id=call_id)


def production_tools(
    base_url: str, *, retries: Retries | None = None, **options: Unpack[ClientOptions]
) -> ToolRegistry:
    """Builds the production registry over the back office at an address; see `effect_client`."""
    return ProductionTools(effect_client(_SERVICES, base_url, retries=retries, **options)).registry()


def registry_from_environment(env: Mapping[str, str] = os.environ) -> ToolRegistry:
    """Builds the production registry from SUPPORT_BACKOFFICE_URL, SUPPORT_SERVICE_IDENTITY and SUPPORT_DATABASE_URL.

    Outside production the address alone is needed: reads may run, under an identity that may do nothing else.

    Raises:
        KeyError: a variable is missing.
    """
    access = access_from_environment("SUPPORT", env, debug_identity=DEBUG_IDENTITY)
    return production_tools(
        env["SUPPORT_BACKOFFICE_URL"], identity=access.identity, database_url=access.database_url, env=env
    )
