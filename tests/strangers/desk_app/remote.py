"""Tools of a server that is a program of its own, as adapters for MCP make them: async only, with a schema as JSON."""

import asyncio
import json
import sys
from pathlib import Path

from langchain_core.tools import StructuredTool, ToolException
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from .model import Model

SERVER = "import json, sys; from desk_app import world; print(json.dumps(getattr(world, sys.argv[1])(sys.argv[2])))"
SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}


def tool_of_server(name: str, method: str) -> StructuredTool:
    async def call_tool(order_id: str) -> tuple[str, dict]:
        server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", SERVER, method, order_id),
            cwd=Path(__file__).parent.parent,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, complaint = await server.communicate()
        if server.returncode:
            raise ToolException(complaint.decode().strip().splitlines()[-1])
        result = json.loads(said)
        text = result if isinstance(result, str) else json.dumps(result)
        return text, {"server": "desk"}

    return StructuredTool(
        name=name,
        description=f"Asks the desk to {name}.",
        args_schema=SCHEMA,
        coroutine=call_tool,
        response_format="content_and_artifact",
    )


TOOLS = [tool_of_server("lookup_order", "look_up"), tool_of_server("issue_refund", "pay_back")]


async def agent(state: MessagesState) -> dict:
    return {"messages": [await Model().bind_tools(TOOLS).ainvoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("agent", agent)
builder.add_node("tools", ToolNode(TOOLS))
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", tools_condition)
builder.add_edge("tools", "agent")
