"""An application whose threads hold personal data wherever a thread can hold any, and what was planted in them.

Its route hangs on equal values being equal, never on what they are.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, quote_plus

import psycopg
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.store.base import BaseStore
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from agentctl.sandbox.registry import ToolRegistry
from tests.catalog import config_of
from tests.support.stored import is_postgres
from tests.support.stores import stores_at

NAME = "Wilhelmina Oberholzer"
EMAIL = "wilhelmina.oberholzer@posteo.net"
PHONE = "+49 30 23125 148"
CARD = "4556 7375 8689 9855"
IBAN = "DE89 3704 0044 0532 0130 00"
IP = "81.2.69.142"
STREET = "Kastanienallee 71b"
BORN = "1984-03-17"
AADHAAR = "2341 2341 2346"
NICKNAME = "Höpfner-Willi"
BADGE = "KX-771203"
"""Found by a rule of the project alone, as are nicknames."""

PLANTED = (NAME, EMAIL, PHONE, CARD, IBAN, IP, STREET, BORN, AADHAAR, NICKNAME, BADGE)
RULES: dict[str, Any] = {"fields": {"nickname": "name"}, "patterns": {"badge": r"KX-\d{6}"}}
ASKING, FAILED = "complaint-7", "complaint-8"
ORDER = "ORD-1182"


class Contact(BaseModel):
    """A pydantic model in the state."""

    email: str
    phone: str


@dataclass
class Address:
    """A dataclass in the state."""

    street: str
    city: str


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    customer: dict[str, Any]
    contact: Contact
    address: Address
    is_owner: bool
    approved: dict[str, Any]


@tool
def lookup_customer(email: str, full_name: str) -> str:
    """Looks a customer up."""
    found = {"full_name": full_name, "email": email, "iban": IBAN, "card": CARD, "order": ORDER, "total": 120.5}
    return json.dumps(found | {"note": f"{NAME} asked twice, badge {BADGE}, from {IP}"})


def _identify(state: State, config: RunnableConfig) -> dict[str, Any]:
    customer = {"full_name": NAME, "email": EMAIL, "phone": PHONE, "date_of_birth": BORN, "nickname": NICKNAME}
    return {
        "customer": {**customer, "aadhaar": AADHAAR, "order": ORDER},
        "contact": Contact(email=EMAIL, phone=PHONE),
        "address": Address(STREET, "Berlin"),
    }


def _agent(state: State) -> dict[str, Any]:
    customer = state["customer"]
    call = {"name": "lookup_customer", "id": "call_1", "args": {k: customer[k] for k in ("email", "full_name")}}
    return {"messages": [AIMessage(f"Looking for {customer['full_name']}.", id="ai-1", tool_calls=[call])]}


def _judge(state: State, store: BaseStore) -> dict[str, Any]:
    found = json.loads(str(state["messages"][-1].content))
    kept = store.get(("users",), state["customer"]["email"])
    same = found["email"] == state["customer"]["email"] == state["contact"].email
    return {"is_owner": same and kept is not None and kept.value["full_name"] == found["full_name"]}


def _route(state: State) -> str:
    if not state["is_owner"]:
        return "refuse"
    return "fail" if "now" in str(state["messages"][0].content) else "ask"


def _ask(state: State) -> dict[str, Any]:
    customer = state["customer"]
    answer = interrupt({"question": f"Refund {customer['full_name']} at {customer['email']}?", "order": ORDER})
    return {"approved": answer}


def _reply(state: State) -> dict[str, Any]:
    customer = state["customer"]
    text = f"Dear {customer['full_name']}, {ORDER} is refunded; we wrote to {customer['email']}."
    return {"messages": [AIMessage(text, id="ai-2", additional_kwargs={"sent_to": customer["email"]})]}


def _refuse(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage("That is not your order.", id="ai-2")]}


def _fail(state: State) -> dict[str, Any]:
    raise ValueError(f"no account of {state['customer']['email']} ({state['customer']['full_name']})")


def build_graph() -> Any:
    builder = StateGraph(State)
    builder.add_node("identify", _identify)
    builder.add_node("agent", _agent)
    builder.add_node("tools", ToolNode([lookup_customer]))
    for name, node in (("judge", _judge), ("ask", _ask), ("reply", _reply), ("refuse", _refuse), ("fail", _fail)):
        builder.add_node(name, node)
    for first, second in ((START, "identify"), ("identify", "agent"), ("agent", "tools"), ("tools", "judge")):
        builder.add_edge(first, second)
    builder.add_conditional_edges("judge", _route, ["ask", "refuse", "fail"])
    builder.add_edge("ask", "reply")
    builder.add_edge("reply", END)
    return builder


graph = build_graph().compile()


def sandbox() -> ToolRegistry:
    """Tools of experiments, which need none: what was looked up is recorded."""
    return ToolRegistry()


def seed(url: str) -> None:
    """Runs two threads on a store: one that asked and was answered, one that failed."""
    with stores_at(url) as (saver, memory):
        memory.put(("users",), EMAIL, {"full_name": NAME, "likes": f"to be called {NICKNAME}"})
        memory.put(("notes", NAME), BADGE, {"text": f"{NAME} lives at {STREET}"})
        app = build_graph().compile(checkpointer=saver, store=memory)
        said = f"I am {NAME}, born {BORN}; write to {EMAIL} or call {PHONE}. My order is {ORDER}."
        metadata = {"user_email": EMAIL, "remark": f"{NICKNAME} is a VIP"}
        for thread, text in ((ASKING, said), (FAILED, f"{said} And now!")):
            config: Any = config_of(thread) | {"metadata": metadata}
            try:
                app.invoke({"messages": [HumanMessage(text, id="human-1")]}, config, durability="sync")
            except ValueError:
                continue
            answer = {"approved_by": NAME, "email": EMAIL, "note": f"checked with {PHONE}"}
            app.invoke(Command(resume=answer), config, durability="sync")


def forms_of(text: str) -> Iterator[tuple[str, bytes]]:
    """Every way in which a stored byte string can spell a text, each with its name."""
    yield "raw", text.encode()
    yield "JSON", json.dumps(text)[1:-1].encode()
    yield "URL", quote(text, safe="").encode()
    yield "form", quote_plus(text).encode()
    for shift in range(3):
        # What stands before a text moves its base64 by that much; the characters that others share are left out.
        coded = b64encode(b"\0" * shift + text.encode())
        yield f"base64 at {shift}", coded[4 if shift else 0 : len(coded) // 4 * 4 - 4]


def found_in(data: bytes, texts: Iterable[str] = PLANTED) -> set[str]:
    """What of the planted values stands in bytes, and in which form."""
    return {f"{text} ({name})" for text in texts for name, form in forms_of(text) if form in data}


def stored_bytes(url: str) -> bytes:
    """Everything that a store holds: each file of SQLite, or each column of each table of a database."""
    if not is_postgres(url):
        return b"".join(file.read_bytes() for file in sorted(Path(url).parent.glob(f"{Path(url).name}*")))
    with closing(psycopg.connect(url)) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        rows = [row for (name,) in names for row in connection.execute(f'SELECT * FROM "{name}"').fetchall()]
    return b"\n".join(_bytes(value) for row in rows for value in row)


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    return (json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)).encode()


def folder_bytes(folder: Path) -> bytes:
    """The bytes and names of every file of a folder, at any depth."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return b"\n".join(str(file.relative_to(folder)).encode() + b"\n" + file.read_bytes() for file in files)
