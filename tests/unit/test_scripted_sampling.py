"""A scripted model samples as it is told, also where the temperature is given with the tools."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from agentctl.testing import ScriptedModel, Turn


@tool
def look() -> str:
    """Looks."""
    return ""


@pytest.mark.parametrize(("given", "expected"), [({}, 0.0), ({"temperature": 0.7}, 0.7)])
def test_a_temperature_that_is_bound_with_tools_reaches_the_script(given: dict[str, float], expected: float) -> None:
    model = ScriptedModel(script=lambda turn: AIMessage(f"{turn.temperature} {turn.tools}"))
    answer = model.bind_tools([look], **given).invoke("go")
    assert answer.text == f"{expected} ('look',)"


def test_a_slip_needs_a_draw_below_its_rate_at_that_temperature() -> None:
    assert Turn((), temperature=1.0, draw=0.3).slips(0.4)
    assert not Turn((), temperature=0.5, draw=0.3).slips(0.4)
