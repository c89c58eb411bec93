"""Asking the bureau, and scoring what is known by the policy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphs.common.owners import caller_of, check_owner
from graphs.loan_underwriting import scoring
from graphs.loan_underwriting.catalog import MONEY
from graphs.loan_underwriting.kit import Kit, audit
from graphs.loan_underwriting.services import answered
from graphs.loan_underwriting.state import BureauResult, LoanState


class BureauAnswer(BaseModel):
    """The bureau's answer to an inquiry."""

    model_config = ConfigDict(extra="ignore")

    inquiry_id: str = Field(min_length=1)
    found: bool
    score: int = Field(default=0, ge=0, le=1000)
    open_defaults: int = Field(default=0, ge=0)
    n_accounts: int = Field(default=0, ge=0)
    monthly_obligations: str = Field(default="0.00", pattern=MONEY)
    as_of: date | None = None

    @model_validator(mode="after")
    def _dated(self) -> BureauAnswer:
        if self.found and self.as_of is None:
            raise ValueError("a file needs the day that it is of")
        return self


@dataclass(frozen=True, slots=True)
class Verification:
    """The nodes over what they need: tools, policies, settings, time."""

    kit: Kit

    def pull_bureau(self, state: LoanState, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, Any]:
        """Makes the inquiry that counts, unless its answer is there already."""
        check_owner(state.get("owner"), caller_of(config.get("configurable", {})))
        version = state.get("bureau_version", 1)
        known = state.get("bureau_result")
        if known is not None and known["version"] == version:
            return {}
        applicant_id = state["application"]["applicant_id"]
        args = {"applicant_id": applicant_id, "purpose": "credit_application", "version": version}
        called = self.kit.call("pull_bureau", args, id=f"bureau_pull:{version}", config=config)
        answer = answered("pull_bureau", called, BureauAnswer)
        runtime.stream_writer({"progress": "bureau check done"})
        now = self.kit.now(config)
        result = BureauResult(
            version=version,
            reference=answer.inquiry_id,
            found=answer.found,
            score=answer.score,
            open_defaults=answer.open_defaults,
            n_accounts=answer.n_accounts,
            monthly_obligations=answer.monthly_obligations,
            as_of="" if answer.as_of is None else answer.as_of.isoformat(),
        )
        event = audit("bureau asked", now, f"inquiry {version}")
        return {"bureau_result": result, "calls": called.messages, "audit_events": [event]}

    def score_risk(self, state: LoanState, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, Any]:
        """Scores the case by the policy that it was scored by before, else by the one in force."""
        policy = self.kit.policy(state, config)
        now = self.kit.now(config)
        fields = state["extracted_fields"]
        facts = scoring.Facts(
            application=state["application"],
            birth_date=date.fromisoformat(str(fields["birth_date"])),
            declared_income=Decimal(str(fields["monthly_income"])),
            flags=state.get("flags", []),
            bureau=state["bureau_result"],
            income=state["income_result"],
            on=now.date(),
        )
        risk = scoring.score(facts, policy)
        runtime.stream_writer({"progress": f"scored, to {risk.route}"})
        return {
            "risk_score": risk.score,
            "reason_codes": list(risk.reason_codes),
            "hard_stops": list(risk.hard_stops),
            "indicated": risk.indicated,
            "route": risk.route,
            "policy_version": policy.version,
            "scored_at": now.isoformat(),
            "audit_events": [audit("scored", now, f"policy {policy.version}, to {risk.route}")],
        }


def after_score(state: LoanState) -> str:
    """Reads the route that the score wrote."""
    return "summarize_case" if state["route"] == "review" else "finalize"
