"""What is kept of a thread: deletion, encryption, and rows that an earlier version of the graph wrote."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.incidents.support.seeding import last_reply
from graphs.common.answers import AnswerClaims, answer
from graphs.common.deletion import delete_case
from graphs.common.effects import application_database
from graphs.support_refunds.memory import preferences_namespace
from graphs.support_refunds.state import GRAPH_VERSION
from tests.support.backoffice import SupportWorld, customer, resume, say, staff
from tests.support.stored import is_postgres, rows_naming

ROWS = Path(__file__).parent / "rows"
SECRET = "My name is Jane Roe."


def test_deleting_a_case_leaves_nothing_of_it_in_any_table(
    world: SupportWorld, stores: tuple[Any, Any], store_url: str
) -> None:
    saver, memory = stores
    database_url = store_url if is_postgres(store_url) else world.database_url
    world.put_order("A100", "delivered", delivered_days_ago=3)
    graph = world.graph(saver, memory=memory, tools=world.tools(database_url=database_url))
    database = application_database(database_url)
    for thread, user in (("case-gone", "u-gone"), ("case-kept", "u-kept")):
        say(graph, customer(thread, user_id=user), "From now on I prefer store credit.")
    say(graph, customer("case-gone", user_id="u-gone"), "Order A100 is broken, refund me.")
    claims = AnswerClaims(database)
    answer(graph, staff("case-gone", user_id="u-gone"), {"decision": "approve"}, claims=claims)
    before = rows_naming(database_url, "case-gone")
    assert before["outbound_requests"] == 3
    assert before["answer_claims"] == 1
    namespace = preferences_namespace({"tenant": "acme", "user_id": "u-gone"})
    deleted = delete_case("case-gone", saver=saver, memory=memory, namespace=namespace, database=database)
    assert (deleted.n_rows, deleted.n_items) == (4, 1)
    for url in {store_url, database_url}:
        assert set(rows_naming(url, "case-gone").values()) == {0}
        assert set(rows_naming(url, "u-gone").values()) == {0}
    assert memory.search(namespace) == []
    assert saver.get_tuple(customer("case-gone")) is None
    assert graph.get_state(customer("case-kept", user_id="u-kept")).values["messages"]
    assert memory.get(preferences_namespace({"tenant": "acme", "user_id": "u-kept"}), "refund_method") is not None


def test_encrypted_threads_are_read_back_and_hold_no_plain_text(
    world: SupportWorld, stores: tuple[Any, Any], store_url: str
) -> None:
    saver, _ = stores
    saver.serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    world.put_order("A100", "delivered", delivered_days_ago=3)
    say(world.graph(saver), customer("t"), f"{SECRET} Order A100 is broken, refund me.")
    assert set(rows_naming(store_url, "Jane").values()) == {0}
    state = resume(world.graph(saver), staff("t"), {"decision": "approve"})
    assert SECRET in state["messages"][0].content
    assert "is on its way" in last_reply(state["messages"])
    saver.serde = EncryptedSerializer.from_pycryptodome_aes(key=b"another key here")
    with pytest.raises(ValueError, match="MAC check failed"):
        world.graph(saver).get_state(customer("t"))


def test_without_encryption_the_same_scan_would_have_found_the_text(
    world: SupportWorld, stores: tuple[Any, Any], store_url: str
) -> None:
    say(world.graph(stores[0]), customer("t"), SECRET)
    assert sum(rows_naming(store_url, "Jane").values()) > 0


def test_a_thread_parked_under_version_1_resumes_under_the_present_version(world: SupportWorld, tmp_path: Path) -> None:
    world.put_order("A100", "delivered", delivered_days_ago=4)
    store = tmp_path / "v1.sqlite"
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript((ROWS / "support_refunds_v1.sql").read_text(encoding="utf-8"))
    with SqliteSaver.from_conn_string(str(store)) as saver:
        graph = world.graph(saver)
        parked = graph.get_state(customer("parked-v1"))
        assert parked.values["graph_version"] == 1 < GRAPH_VERSION
        assert {"approvals", "preferences", "asked_on", "approval_problem"}.isdisjoint(parked.values)
        assert parked.next == ("approve_refund",)
        state = resume(graph, staff("parked-v1"), {"decision": "approve"})
        assert last_reply(state["messages"]) == "Your refund of 120.00 EUR for order A100 is on its way."
        assert len(world.backoffice.effects("refund")) == 1
        again = say(graph, customer("parked-v1"), "Where is order A100?")
        assert again["graph_version"] == GRAPH_VERSION


def test_a_thread_that_stopped_before_its_tools_under_version_1_resumes_too(
    world: SupportWorld, tmp_path: Path
) -> None:
    world.put_order("A100", "in_transit")
    store = tmp_path / "v1.sqlite"
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript((ROWS / "support_refunds_v1.sql").read_text(encoding="utf-8"))
    with SqliteSaver.from_conn_string(str(store)) as saver:
        graph = world.graph(saver)
        assert graph.get_state(customer("stopped-v1")).next == ("tools",)
        state = graph.invoke(None, customer("stopped-v1"), durability="sync")
    assert last_reply(state["messages"]) == "Order A100 is in transit."
