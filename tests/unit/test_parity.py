"""When a sandbox registry stands for a production registry, and what is said where it does not."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, Field

from agentctl.records.parity import Finding, ToolParity
from agentctl.records.runs import Effect
from agentctl.sandbox.effects import needs_registry
from agentctl.sandbox.offline import ReachedOut, offline
from agentctl.sandbox.parity import compare_registries
from agentctl.sandbox.registry import ToolRegistry


class Line(BaseModel):
    """One line of an order."""

    sku: str
    parts: list[Line] = Field(default_factory=list)


class Pay(BaseModel):
    """Arguments of pay."""

    order_id: str = Field(description="The order.", pattern="^A")
    amount: float
    method: Literal["card", "cash"] = "card"
    line: Line | None = None


def tool(name: str, schema: Any = Pay, description: str = "Pays.") -> StructuredTool:
    def run(**arguments: Any) -> str:
        raise AssertionError("a check calls nothing")

    return StructuredTool.from_function(run, name=name, description=description, args_schema=schema)


def registry(*entries: tuple[StructuredTool, Effect], unanswered: Sequence[str] = ()) -> ToolRegistry:
    made = ToolRegistry()
    for entry, effect in entries:
        made.register(entry, effect=effect, answers=entry.name not in unanswered)
    return made


def findings(found: Sequence[ToolParity]) -> dict[str, list[Finding]]:
    return {each.name: list(each.findings) for each in found if each.findings}


def only(found: Sequence[ToolParity]) -> Finding:
    ((finding,),) = findings(found).values()
    return finding


PRODUCTION = registry((tool("pay"), "write"), (tool("look"), "read"))


def test_equal_registries_have_no_findings_and_are_listed_whole() -> None:
    found = compare_registries(PRODUCTION, registry((tool("pay"), "write"), (tool("look"), "read")), ["pay", "look"])
    assert [(each.name, each.production, each.sandbox, each.answers, each.findings) for each in found] == [
        ("pay", "write", "write", True, ()),
        ("look", "read", "read", True, ()),
    ]


def test_a_read_without_an_answer_is_fine_and_a_write_without_a_stub_is_not() -> None:
    sandbox = registry((tool("pay"), "write"), (tool("look"), "read"), unanswered=["look"])
    assert findings(compare_registries(PRODUCTION, sandbox)) == {}
    sandbox = registry((tool("pay"), "write"), (tool("look"), "read"), unanswered=["pay"])
    assert only(compare_registries(PRODUCTION, sandbox)).code == "no_stub"


def test_a_tool_under_another_name_is_missing_on_one_side_and_unknown_on_the_other_each_naming_the_other() -> None:
    found = findings(compare_registries(PRODUCTION, registry((tool("pays"), "write"), (tool("look"), "read"))))
    assert [(each.code, each.fix) for each in found["pay"]] == [("missing", "rename the sandbox's pays to pay")]
    assert [(each.code, each.fix) for each in found["pays"]] == [("unknown", "production calls it pay")]


def test_a_tool_that_one_side_alone_has_is_named_with_what_to_do() -> None:
    missing = only(compare_registries(PRODUCTION, registry((tool("look"), "read"))))
    assert (missing.code, missing.fix) == ("missing", "register pay in the sandbox registry")
    more = registry((tool("pay"), "write"), (tool("look"), "read"), (tool("gossip"), "state"))
    assert only(compare_registries(PRODUCTION, more)).code == "unknown"


def test_another_effect_is_a_finding_even_where_the_sandbox_is_the_more_careful_one() -> None:
    found = only(compare_registries(PRODUCTION, registry((tool("pay"), "write"), (tool("look"), "write"))))
    assert (found.code, found.message) == ("effect", "read in production, write in the sandbox")


def _without_method(schema: dict[str, Any]) -> None:
    del schema["properties"]["method"]


def _as_text(schema: dict[str, Any]) -> None:
    schema["properties"]["amount"]["type"] = "string"


def _required(schema: dict[str, Any]) -> None:
    schema["required"] = ["order_id"]


def _described(schema: dict[str, Any]) -> None:
    schema["properties"]["order_id"]["description"] = "The customer."


def _nested(schema: dict[str, Any]) -> None:
    schema["$defs"]["Line"]["properties"]["sku"]["type"] = "integer"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_method, "method (string in production, nothing in the sandbox)"),
        (_as_text, 'amount.type ("number" in production, "string" in the sandbox)'),
        (_required, "required"),
        (_described, "order_id.description"),
        (_nested, "line.anyOf"),
    ],
)
def test_another_schema_is_named_by_the_argument_that_differs(
    change: Callable[[dict[str, Any]], None], said: str
) -> None:
    schema = Pay.model_json_schema()
    change(schema)
    found = only(compare_registries(PRODUCTION, registry((tool("pay", schema), "write"), (tool("look"), "read"))))
    assert found.code == "schema"
    assert said in found.message


def test_names_of_classes_and_where_shared_parts_are_defined_make_no_difference() -> None:
    class Position(BaseModel):
        sku: str
        parts: list[Position] = Field(default_factory=list)

    class Other(BaseModel):
        order_id: str = Field(description="The order.", pattern="^A", title="Number")
        amount: float
        method: Literal["card", "cash"] = "card"
        line: Position | None = None

    Other.model_rebuild(_types_namespace={"Position": Position})
    schema = Other.model_json_schema()
    schema["$defs"]["Position"]["description"] = "One line of an order."
    sandbox = registry((tool("pay", schema), "write"), (tool("look"), "read"))
    assert findings(compare_registries(PRODUCTION, sandbox)) == {}


def test_another_description_is_a_finding_because_the_model_decides_by_it() -> None:
    sandbox = registry((tool("pay", description="Pays at once."), "write"), (tool("look"), "read"))
    assert only(compare_registries(PRODUCTION, sandbox)).code == "description"


def test_a_tool_of_the_graph_that_no_registry_holds_is_named() -> None:
    found = compare_registries(PRODUCTION, PRODUCTION, ["pay", "shred", "shred"])
    assert (found[-1].name, only(found).code) == ("shred", "unregistered")
    assert len(found) == 3


def test_a_schema_without_code_and_a_frameworks_own_tools_need_no_registry() -> None:
    from deepagents.middleware.filesystem import FilesystemMiddleware
    from langchain.agents.middleware import TodoListMiddleware

    assert needs_registry(tool("pay"))
    assert not needs_registry(StructuredTool(name="Report", description="A report.", args_schema=Pay))
    framework = [*TodoListMiddleware().tools, *FilesystemMiddleware().tools]
    assert "execute" in [each.name for each in framework]
    assert [each.name for each in framework if needs_registry(each)] == []


def test_offline_nothing_is_reached_in_any_thread_and_afterwards_everything_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def connect() -> str:
            try:
                with socket.create_connection(("127.0.0.1", port)):
                    return "connected"
            except ReachedOut as error:
                return str(error)

        said: list[str] = []
        with offline():
            thread = threading.Thread(target=lambda: said.append(connect()))
            thread.start()
            thread.join()
            said.append(connect())
            with pytest.raises(ReachedOut, match="start"):
                subprocess.run(["true"], check=False)
        said.append(connect())
    assert said == ["tried to look up 127.0.0.1"] * 2 + ["connected"]


def test_offline_an_address_is_named_where_nothing_had_to_be_looked_up() -> None:
    with socket.socket() as own, offline(), pytest.raises(ReachedOut, match=r"tried to connect 127\.0\.0\.1:9"):
        own.connect(("127.0.0.1", 9))
