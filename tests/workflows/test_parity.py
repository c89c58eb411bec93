"""Every configured workflow's sandbox registry stands for its production registry, without a running service."""

from __future__ import annotations

import shlex

import pytest

from agentctl.testing import run_cli
from tests.support.incidents import REPOSITORY, WORKFLOWS


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_sandbox_and_production_are_the_same_and_every_write_has_a_stub(workflow: str) -> None:
    asked = run_cli("sandbox", "check", workflow, "--json", cwd=REPOSITORY)
    assert asked.code == 6, "its production registry asks the environment where its services are"
    variables = shlex.split(asked.json["error"]["hint"].partition(": add ")[2])
    done = run_cli("sandbox", "check", workflow, *variables, "--json", cwd=REPOSITORY)
    assert done.code == 0, done.out
    (item,) = done.json["items"]
    assert item["findings"] == []
    assert [tool["findings"] for tool in item["tools"] if tool["findings"]] == []
    effects = {tool["production"] for tool in item["tools"]}
    assert effects == {"read", "write"}
    assert all(tool["answers"] for tool in item["tools"] if tool["production"] == "write")
