"""A graph whose node ends or holds its process in the way that its input names."""

import os
import signal
import sys
import time
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    way: str
    done: str


def first(state: State) -> dict[str, Any]:
    return {"done": "first"}


async def last(state: State) -> dict[str, Any]:
    end = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else -1
    match os.environ.get("WAY", "none"):
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hold":
            time.sleep(600)
        case "wait":
            print("waiting", flush=True)
            while True:
                time.sleep(0.01)
        case "forged":
            message = b'{"is":"AskRows","it":{"thread":"another","ns":"","ids":null,"metadata":true}}'
            os.write(end, len(message).to_bytes(8, "big") + message)
    return {"done": "last"}


graph = (
    StateGraph(State).add_node("first", first).add_node("last", last).add_edge(START, "first").add_edge("first", "last")
).compile()
