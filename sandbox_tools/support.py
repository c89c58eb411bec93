"""The support workflow's sandbox: every tool with an effect is a stub; the policy is read from its versioned files.

An order that the recording does not hold is not invented: `lookup_order` has no answer here, so such a call is blocked
until a person gives one, or lets it read live.
"""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import json_text
from graphs.support_refunds.catalog import registry_of
from graphs.support_refunds.policy import CURRENT_POLICY, Policy, load_policies
from sandbox_tools.answers import NoAnswer, reference


class SupportSandbox:
    """Answers without a back office: pure functions of their arguments, so that every run gets the same.

    Args:
        policies: Every version of the policy.
    """

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._policies = policies

    def lookup_order(self, order_id: str) -> str:
        """Has no answer.

        Raises:
            NoAnswer: always.
        """
        raise NoAnswer(f"no recorded order {order_id}")

    def get_refund_policy(self, topic: str, runtime: ToolRuntime) -> str:
        """Reads the policy that the thread is judged by."""
        version = str(runtime.state.get("policy_version") or CURRENT_POLICY)
        policy = self._policies.get(version)
        answer = policy.answer(topic) if policy is not None else None
        if answer is None:
            raise ToolException(f"policies refused: there is no policy {version} on {topic}")
        return json_text(answer)

    def issue_refund(
        self, order_id: str, amount: str, currency: str, reason: str, method: str = "original_payment"
    ) -> str:
        """Accepts every refund, and pays none."""
        refund_id = reference("rf", order_id, amount, currency, reason, method)
        answer = {"refund_id": refund_id, "order_id": order_id, "amount": amount, "currency": currency}
        return json_text({**answer, "method": method, "status": "accepted"})

    def send_email(self, order_id: str, subject: str, body: str) -> str:
        """Queues every e-mail, and sends none."""
        return json_text(
            {"message_id": reference("em", order_id, subject, body), "order_id": order_id, "status": "queued"}
        )

    def update_ticket(self, ticket_id: str, status: str, note: str) -> str:
        """Takes every update, and keeps none."""
        return json_text(
            {"note_id": reference("nt", ticket_id, status, note), "ticket_id": ticket_id, "status": status}
        )

    def remember_preference(self, name: str, value: str) -> str:
        """Takes every preference, and keeps none."""
        return json_text({"remembered": name, "value": value})


def registry() -> ToolRegistry:
    """Builds the sandbox registry: the names, argument schemas and effects of production, nothing behind them."""
    sandbox = SupportSandbox(load_policies())
    return registry_of(
        {
            "lookup_order": sandbox.lookup_order,
            "get_refund_policy": sandbox.get_refund_policy,
            "issue_refund": sandbox.issue_refund,
            "send_email": sandbox.send_email,
            "update_ticket": sandbox.update_ticket,
            "remember_preference": sandbox.remember_preference,
        },
        unanswered=("lookup_order",),
    )
