"""A deep agent: todos, files in state, a subagent with the only real tool, and a shell that must never run."""

from deepagents import create_deep_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.tools import tool

from tests.catalog.scripted import ScriptedModel
from tests.strangers.scripts import research

WORLD: list[str] = []


@tool
def lookup_order(order_id: str) -> str:
    """Looks an order up."""
    WORLD.append(order_id)
    return f'{{"order_id": "{order_id}", "status": "lost"}}'


def make():
    return create_deep_agent(
        model=ScriptedModel(script=research),
        tools=[],
        middleware=[TodoListMiddleware()],
        subagents=[
            {
                "name": "researcher",
                "description": "Looks things up.",
                "system_prompt": "Look it up.",
                "tools": [lookup_order],
            }
        ],
    )
