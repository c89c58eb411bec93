"""Field log M: secrets that an application put into its configuration."""

from __future__ import annotations

import json
import os
import threading

import pytest
from langsmith.utils import tracing_is_enabled

from agentctl.records.copies import Place
from agentctl.records.runs import Plan
from agentctl.render.clean import is_secret_name
from agentctl.render.run_documents import plan_object
from agentctl.render.runs import plan_lines
from agentctl.sandbox.environment import environment

_CONFIGURABLE = {"user_id": "u-7", "password": "hunter2", "llm": {"openaiApiKey": "k-123", "region": "eu"}}


def test_m3_a_plan_hides_the_secrets_of_the_recorded_configuration() -> None:
    plan = Plan(Place("db", "t", "c"), ("tools",), (), (), _CONFIGURABLE, "none found", False, "app.py:graph")

    for shown in ("\n".join(plan_lines(plan, "replay")), json.dumps(plan_object(plan))):
        assert "u-7" in shown and "eu" in shown
        assert "hunter2" not in shown and "k-123" not in shown


@pytest.mark.parametrize(
    "name", ["api_key", "OPENAI_API_KEY", "openaiApiKey", "accessToken", "auth-token", "db.password"]
)
def test_names_of_secrets_are_known_however_they_are_spelled(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["author", "passenger", "key", "secretary_name"])
def test_ordinary_names_are_not_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_m3_prompts_stay_out_of_langsmith_also_in_threads_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("AGENTCTL_ENV", "production")
    seen: list[tuple[object, str | None]] = []
    with environment({}):
        thread = threading.Thread(target=lambda: seen.append((tracing_is_enabled(), os.environ.get("AGENTCTL_ENV"))))
        thread.start()
        thread.join()

    assert seen == [(False, None)]
    assert os.environ["LANGSMITH_TRACING"] == "true"
