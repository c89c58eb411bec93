"""Plans as lines: what is long is cut."""

from __future__ import annotations

from agentctl.records.copies import Place
from agentctl.records.runs import Plan
from agentctl.render.runs import MAX_VALUE_CHARS, plan_lines


def test_a_plan_shows_the_beginning_of_a_long_value_of_the_configuration() -> None:
    configurable = {"note": "n" * 20_000, "user_id": "u-7"}
    plan = Plan(Place("db", "t", "c"), ("tools",), (), (), configurable, "none found", False, "app.py:graph")

    (line,) = [line for line in plan_lines(plan, "replay") if "configurable" in line]

    assert line.startswith('  configurable: note="nnn') and line.endswith('..., user_id="u-7"')
    assert len(line) < MAX_VALUE_CHARS + 50
