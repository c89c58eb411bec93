"""The state: what the deep agent keeps, and what this workflow adds to it. Each key has one writer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from deepagents.graph import DeepAgentState
from langchain.agents import AgentState
from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langgraph.channels.untracked_value import UntrackedValue

from graphs.common.owners import Owner
from graphs.research_report.policy import CURRENT_POLICY

GRAPH_VERSION = 2
CURRENT_PROMPTS = "v2"

Outcome = Literal["published", "unpublished", "partial"]


class Review(TypedDict):
    """What a reviewer decided on one report."""

    report_sha256: str
    decision: Literal["approve", "edit", "reject"]
    by: str
    reason: str


class ResearchState(DeepAgentState):
    """State of a research thread: the agent's own (`messages`, `todos`, `files`, `structured_response`), and this.

    Attributes:
        question: What is asked (input).
        scope: Aspects to cover (input).
        audience: Who reads it (input).
        deadline_s: Wall-clock budget of a run (input).
        previous: The published report to refresh (input).
        owner: Whose thread it is; set once (intake).
        graph_version: Version of the graph's shape when the thread began (intake).
        policy_version: The policy that the thread is held to, from when it began (intake).
        preferences: What the memory store held for this user and team (intake).
        reviews: What reviewers decided, oldest first (review).
        review_problem: What was wrong with the latest answer to a review, '' when nothing was (review).
        outcome: How it ended (wrap-up).
        run_ends_s: Monotonic second at which this run's budget ends; never stored (deadline).
    """

    question: NotRequired[str]
    scope: NotRequired[list[str]]
    audience: NotRequired[str]
    deadline_s: NotRequired[float]
    previous: NotRequired[dict[str, Any]]
    owner: NotRequired[Annotated[Owner, OmitFromInput]]
    graph_version: NotRequired[Annotated[int, OmitFromInput]]
    policy_version: NotRequired[Annotated[str, OmitFromInput]]
    preferences: NotRequired[Annotated[dict[str, Any], OmitFromInput]]
    reviews: NotRequired[Annotated[list[Review], PrivateStateAttr]]
    review_problem: NotRequired[Annotated[str, PrivateStateAttr]]
    outcome: NotRequired[Annotated[Outcome, OmitFromInput, PrivateStateAttr]]
    run_ends_s: NotRequired[Annotated[float, UntrackedValue(float, guard=False)]]


class SubagentState(AgentState[Any]):
    """State of a subagent: its own conversation, the parent's files, and whose thread it works for."""

    owner: NotRequired[Owner]
    policy_version: NotRequired[str]
    preferences: NotRequired[dict[str, Any]]
    run_ends_s: NotRequired[Annotated[float, UntrackedValue(float, guard=False)]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is set up: scalars of `configurable`, which LangGraph keeps in checkpoint metadata.

    Attributes:
        prompts: Version of the prompts of all three roles.
        temperature: The models' sampling temperature; None leaves it to the model.
        policy_version: The policy for new threads.
    """

    prompts: str = CURRENT_PROMPTS
    temperature: float | None = None
    policy_version: str = CURRENT_POLICY

    def over(self, configurable: Mapping[str, Any]) -> Settings:
        """Returns these settings with those that a run's `configurable` names put over them."""
        temperature = configurable.get("temperature", self.temperature)
        return Settings(
            prompts=str(configurable.get("prompt", self.prompts)),
            temperature=None if temperature is None else float(temperature),
            policy_version=str(configurable.get("policy_version", self.policy_version)),
        )
