"""What every node of the workflow works with: tools, policies, settings, and the time of its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langchain_core.runnables import RunnableConfig

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.calls import Called, call_tool
from graphs.common.versions import policy_of
from graphs.loan_underwriting.policy import Policy
from graphs.loan_underwriting.state import AuditEvent, Settings

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Returns the present time, UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Kit:
    """The kit. Nothing in the nodes reaches outside but through its tools and the memory store.

    Attributes:
        tools: The tool registry.
        policies: Every version of the policy.
        defaults: Settings that a run's configuration may override.
        clock: Returns the present time, UTC.
    """

    tools: ToolRegistry
    policies: Mapping[str, Policy]
    defaults: Settings
    clock: Clock

    def settings(self, config: RunnableConfig) -> Settings:
        """Returns the settings of a run."""
        return self.defaults.over(config.get("configurable", {}))

    def now(self, config: RunnableConfig) -> datetime:
        """Returns the time of a run, UTC.

        A caller that puts `now` into `configurable` has it kept with the checkpoints, so that a replay judges by the
        same day as the run that it repeats.
        """
        now = self.settings(config).now
        return self.clock() if now is None else datetime.fromisoformat(now).astimezone(UTC)

    def policy(self, state: Mapping[str, Any], config: RunnableConfig) -> Policy:
        """Returns the policy that a case was scored by, or the one in force where it was not scored yet."""
        return policy_of(self.policies, state.get("policy_version") or self.settings(config).policy_version)

    def call(self, tool: str, args: Mapping[str, Any], *, id: str, config: RunnableConfig) -> Called:
        """Calls a tool and keeps the call; see `call_tool`."""
        return call_tool(self.tools, tool, args, id=id, config=config)


def audit(event: str, at: datetime, detail: str = "") -> AuditEvent:
    """Returns an audit event: staff, references and versions may stand in it, personal data may not."""
    return AuditEvent(event=event, at=at.isoformat(), detail=detail)
