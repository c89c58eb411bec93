"""A real process killed between an effect and its checkpoint; another one resumes the thread."""

from __future__ import annotations

import pytest

from fixtures.incidents.support.seeding import last_reply
from tests.support.backoffice import SupportWorld, customer
from tests.support.killed import Killed
from tests.support.stored import is_postgres
from tests.support.stores import saver_at


@pytest.mark.real_process
@pytest.mark.parametrize(
    ("when", "keys"), [("before-row", "kept"), ("before-row", "expired"), ("after-row", "expired")]
)
def test_after_kill_9_the_thread_resumes_and_the_refund_was_paid_once(
    world: SupportWorld, killed: Killed, store_url: str, when: str, keys: str
) -> None:
    world.put_order("A100", "lost")
    database_url = store_url if is_postgres(store_url) else world.database_url
    killed("dying", store_url, database_url, world.backoffice.url, when)
    assert len(world.backoffice.effects("refund")) == 1
    if keys == "expired":
        world.backoffice.expire_keys()
    with saver_at(store_url) as saver:
        graph = world.graph(saver, tools=world.tools(database_url=database_url))
        assert graph.get_state(customer("t")).next == ("tools",)
        state = graph.invoke(None, customer("t"), durability="sync")
    assert last_reply(state["messages"]) == "Your refund of 120.00 EUR for order A100 is on its way."
    assert world.backoffice.counters()["effects"] == {"refund": 1, "email": 1, "ticket": 1}
