"""A real process killed between an effect and its checkpoint; another one resumes the thread."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.incidents.support.seeding import last_reply
from tests.support.backoffice import SupportWorld, customer

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The checkpoint store."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    return str(request.getfixturevalue("fresh_postgres_url"))


def _saver(url: str) -> Any:
    return PostgresSaver.from_conn_string(url) if url.startswith("postgres") else SqliteSaver.from_conn_string(url)


@pytest.mark.real_process
@pytest.mark.parametrize(
    ("when", "keys"), [("before-row", "kept"), ("before-row", "expired"), ("after-row", "expired")]
)
def test_after_kill_9_the_thread_resumes_and_the_refund_was_paid_once(
    world: SupportWorld, store_url: str, when: str, keys: str
) -> None:
    world.put_order("A100", "lost")
    database_url = store_url if store_url.startswith("postgres") else world.database_url
    died = subprocess.run(
        [sys.executable, "-m", "tests.support.dying", store_url, database_url, world.backoffice.url, when],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert len(world.backoffice.effects("refund")) == 1
    if keys == "expired":
        world.backoffice.expire_keys()
    with _saver(store_url) as saver:
        graph = world.graph(saver, tools=world.tools(database_url=database_url))
        assert graph.get_state(customer("t")).next == ("tools",)
        state = graph.invoke(None, customer("t"), durability="sync")
    assert last_reply(state["messages"]) == "Your refund of 120.00 EUR for order A100 is on its way."
    assert world.backoffice.counters()["effects"] == {"refund": 1, "email": 1, "ticket": 1}
