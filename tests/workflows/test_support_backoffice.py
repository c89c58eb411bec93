"""The back office itself: faults that can be switched, keys that are honoured, a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from fixtures.backoffice import BackOffice
from fixtures.backoffice.support import IDENTITY, put_order
from fixtures.loopback import Refused
from graphs.common.effects import http_client
from tests.support.backoffice import SupportWorld

EMAIL = {"order_id": "A100", "subject": "s", "body": "b"}


def test_a_fault_strikes_as_often_as_it_says(world: SupportWorld) -> None:
    world.put_order("A100", "lost")
    world.backoffice.add_fault("error", "GET /orders", status=500, times=2)
    assert [world.http.get("/orders/A100").status_code for _ in range(3)] == [500, 500, 200]


def test_a_fault_strikes_only_its_subject_and_route(world: SupportWorld) -> None:
    for order in ("A100", "B200"):
        world.put_order(order, "lost")
    world.backoffice.add_fault("error", "GET /orders", subject="A100")
    assert [world.http.get(f"/orders/{order}").status_code for order in ("A100", "B200")] == [503, 200]
    assert world.http.get("/policies/2026-10/lost").status_code == 200


def test_a_stale_fault_reads_the_replica_until_it_is_cleared(world: SupportWorld) -> None:
    record = world.put_order("A100", "lost")
    put_order(world.backoffice, record, replica={**record, "status": "delivered"})
    world.backoffice.add_fault("stale", "GET /orders")
    assert world.http.get("/orders/A100").json()["status"] == "delivered"
    world.backoffice.clear_faults()
    assert world.http.get("/orders/A100").json()["status"] == "lost"


def test_a_dropped_answer_comes_after_the_effect(world: SupportWorld) -> None:
    world.backoffice.add_fault("drop_answer", "POST /emails")
    with pytest.raises(httpx.RemoteProtocolError):
        world.http.post("/emails", json=EMAIL, headers={"Idempotency-Key": "k"})
    assert len(world.backoffice.effects("email")) == 1


def test_a_delay_comes_before_the_effect(world: SupportWorld) -> None:
    world.backoffice.add_fault("delay", "POST /emails", seconds=0.5, times=1)
    with http_client(world.backoffice.url, identity=IDENTITY, timeout_s=0.1) as impatient:
        with pytest.raises(httpx.ReadTimeout):
            impatient.post("/emails", json=EMAIL, headers={"Idempotency-Key": "k"})
        assert world.backoffice.effects("email") == []


def test_a_key_that_stands_for_another_request_is_a_conflict(world: SupportWorld) -> None:
    headers = {"Idempotency-Key": "k"}
    assert world.http.post("/emails", json=EMAIL, headers=headers).status_code == 201
    assert world.http.post("/emails", json={**EMAIL, "body": "other"}, headers=headers).status_code == 409


def test_an_effect_needs_a_key(world: SupportWorld) -> None:
    assert world.http.post("/emails", json=EMAIL).status_code == 400
    assert world.backoffice.counters()["n_effects"] == 0


def test_more_than_was_paid_cannot_be_refunded(world: SupportWorld) -> None:
    world.put_order("A100", "lost", "20.00")
    refund = {"order_id": "A100", "amount": "15.00", "currency": "EUR", "reason": "lost", "method": "original_payment"}
    first = world.http.post("/refunds", json=refund, headers={"Idempotency-Key": "k1"})
    second = world.http.post("/refunds", json=refund, headers={"Idempotency-Key": "k2"})
    assert (first.status_code, second.status_code) == (201, 422)
    assert world.http.get("/orders/A100").json()["refunded"] == "15.00"


def test_an_unknown_kind_of_fault_is_refused(world: SupportWorld) -> None:
    with pytest.raises(Refused, match="kind is one of"):
        world.backoffice.add_fault("meteorite", "GET /orders")


@pytest.mark.real_process
def test_it_runs_as_a_process_and_ends_on_a_signal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fixtures.backoffice", str(tmp_path / "ledger.sqlite")]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        backoffice = BackOffice(process.stdout.readline().strip())
        assert backoffice.counters()["n_calls"] == 0
        process.terminate()
        assert process.wait(timeout=30) == 0
