"""What is kept of a research thread: deletion, encryption, and rows that version 1 of the graph wrote."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from graphs.common.answers import AnswerClaims, answer
from graphs.common.deletion import delete_case
from graphs.common.effects import application_database
from graphs.common.owners import caller_of
from graphs.research_report.preferences import remember_preference, user_namespace
from graphs.research_report.state import GRAPH_VERSION
from tests.support.research import (
    APPROVE,
    PRICE,
    ResearchWorld,
    analyst,
    asked,
    brief,
    offered,
    research,
    resume,
    reviewer,
)
from tests.support.stored import is_postgres, rows_naming

ROWS = Path(__file__).parent / "rows" / "research_report_v1.sql.gz"


def _n_rows_naming(url: str, text: str) -> int:
    return sum(rows_naming(url, text).values())


def test_deleting_a_job_leaves_nothing_of_it_in_any_table(
    desk: ResearchWorld, stores: tuple[Any, Any], store_url: str
) -> None:
    saver, memory = stores
    database_url = store_url if is_postgres(store_url) else desk.database_url
    remember_preference(memory, caller_of({"tenant": "acme", "user_id": "u-gone"}), "audience", "nobody")
    graph = desk.graph(saver, memory=memory, tools=desk.tools(database_url=database_url))
    research(graph, analyst("job-gone", user_id="u-gone"), brief(PRICE))
    database = application_database(database_url)
    answer(graph, reviewer("job-gone", user_id="u-gone"), APPROVE, claims=AnswerClaims(database))
    assert _n_rows_naming(store_url, "job-gone") > 50
    namespace = user_namespace({"tenant": "acme", "user_id": "u-gone"})
    deleted = delete_case("job-gone", saver=saver, memory=memory, namespace=namespace, database=database)
    assert (deleted.n_rows, deleted.n_items) == (2, 1)
    for url in {store_url, database_url}:
        assert _n_rows_naming(url, "job-gone") == 0
        assert _n_rows_naming(url, "u-gone") == 0


def test_encrypted_threads_are_read_back_and_hold_no_plain_text(
    desk: ResearchWorld, stores: tuple[Any, Any], store_url: str
) -> None:
    saver, _ = stores
    saver.serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    research(desk.graph(saver), analyst(), brief(PRICE))
    assert _n_rows_naming(store_url, "0.31 euros") == 0
    assert "0.31 euros" in offered(desk.graph(saver), analyst()).findings[0].statement


def test_without_encryption_the_same_scan_would_have_found_the_text(
    desk: ResearchWorld, stores: tuple[Any, Any], store_url: str
) -> None:
    research(desk.graph(stores[0]), analyst(), brief(PRICE))
    assert _n_rows_naming(store_url, "0.31 euros") > 0


def test_a_thread_parked_under_version_1_resumes_under_the_present_version(desk: ResearchWorld, tmp_path: Path) -> None:
    store = tmp_path / "v1.sqlite"
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript(gzip.decompress(ROWS.read_bytes()).decode())
    with SqliteSaver.from_conn_string(str(store)) as saver:
        graph = desk.graph(saver)
        parked = graph.get_state(analyst("parked-v1"))
        assert parked.values["graph_version"] == 1 < GRAPH_VERSION
        assert {"policy_version", "reviews", "review_problem"}.isdisjoint(parked.values)
        assert "quotes" not in asked(graph, analyst("parked-v1")), "version 1 asked as the stock middleware does"
        state = resume(graph, reviewer("parked-v1"), APPROVE)
        [review] = graph.get_state(analyst("parked-v1")).values["reviews"]
    [publication] = desk.published("parked-v1")
    assert state["structured_response"].model_dump(mode="json") == publication["report"]
    assert (review["by"], review["report_sha256"]) == ("rev-1", publication["sha256"])
