"""A graph whose node tries whatever leads out of its process, and tells what came of it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    question: str
    found: dict[str, str]


def by_httpx() -> str:
    import httpx

    return httpx.get(os.environ["REACH_URL"], timeout=5).text


def by_program() -> str:
    code = f"import urllib.request; print(urllib.request.urlopen({os.environ['REACH_URL']!r}, timeout=5).read())"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=20).stdout


def by_unix_socket() -> str:
    import socket

    with socket.socket(socket.AF_UNIX) as end:
        end.connect(os.environ["REACH_SOCKET"])
        end.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return end.recv(100).decode()


def by_file() -> str:
    Path(os.environ["REACH_FILE"]).write_text("was here")
    return "written"


def by_environment() -> str:
    return os.environ["SECRET_OF_THE_PARENT"]


def by_parent() -> str:
    return Path(f"/proc/{os.getppid()}/environ").read_text(errors="replace").partition("SECRET_OF_THE_PARENT")[1]


def reach(state: State) -> dict[str, Any]:
    print("reaching out \x1b[31m")
    found = {}
    for way in (by_httpx, by_program, by_unix_socket, by_file, by_environment, by_parent):
        try:
            found[way.__name__] = f"ok {way()}"[:40]
        except Exception as error:
            found[way.__name__] = type(error).__name__
    return {"found": {**found, "folder": str(sorted(Path.cwd().iterdir())), "home": str(Path.home() == Path.cwd())}}


graph = StateGraph(State).add_node("reach", reach).add_edge(START, "reach").compile()
