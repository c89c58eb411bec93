"""A copy inside one Postgres is compared where it lies: a server that stores other rows than it is given is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from agentctl.errors import StoreError
from agentctl.stores.copying.execute import copy
from agentctl.stores.copying.selection import for_copy
from agentctl.stores.open import open_reader, open_writer
from tests.catalog import CATALOG, run_case
from tests.support.copies import stock_saver
from tests.support.postgres import new_database

_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_CASE = CATALOG["fan out"]


@pytest.fixture(scope="module")
def url(postgres_url: str) -> Iterator[str]:
    with new_database(postgres_url) as made:
        with stock_saver(made) as saver:
            run_case(_CASE, saver)
        with psycopg.connect(made, autocommit=True) as connection:
            connection.execute("CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
            for table in _TABLES:
                connection.execute(
                    f"CREATE TRIGGER spoil BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION spoil()"
                )
        yield made


def _copy(url: str, *names: str, body: str = "") -> None:
    """Copies the thread in its own database, in which `body` is done to each row of a table that is inserted."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body} RETURN NEW; END$$"
        )
    with closing(open_reader(url)) as reader, closing(open_writer(url)) as writer:
        head = reader.rows(_CASE.thread)[0].id
        plan = for_copy(reader, _CASE.thread, "", head, "all", names[0])
        copy(reader, writer, [replace(plan, as_thread=name) for name in names])


def _n_rows(url: str, thread: str) -> list[int]:
    with psycopg.connect(url) as connection:
        counted = [
            connection.execute(f"SELECT count(*) FROM {table} WHERE thread_id = %s", (thread,)).fetchone()
            for table in _TABLES
        ]
    return [found[0] for found in counted if found is not None]


def test_what_a_server_stores_as_it_was_given_is_copied(url: str) -> None:
    _copy(url, "first", "second")
    assert _n_rows(url, "first") == _n_rows(url, "second") == _n_rows(url, _CASE.thread)
    assert all(_n_rows(url, "first"))


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("checkpoints", "NEW.metadata := NEW.metadata || '{\"step\": 99}'::jsonb;"),
        ("checkpoints", "NEW.parent_checkpoint_id := NULL;"),
        ("checkpoint_blobs", "NEW.blob := NEW.blob || 'x'::bytea;"),
        ("checkpoint_blobs", "RETURN NULL;"),
        ("checkpoint_writes", "NEW.task_path := 'elsewhere';"),
        ("checkpoint_writes", "NEW.type := 'null';"),
        ("checkpoint_writes", "IF NEW.idx = 0 THEN RETURN NULL; END IF;"),
    ],
)
@pytest.mark.parametrize("spoiled", ["spoiled", "spoiled clone"])
def test_a_row_that_is_stored_otherwise_takes_the_copies_back(url: str, table: str, change: str, spoiled: str) -> None:
    body = f"IF TG_TABLE_NAME = '{table}' AND NEW.thread_id = '{spoiled}' THEN {change} END IF;"
    with pytest.raises(StoreError, match=f"{spoiled} was taken back: {table} .* did not read back"):
        _copy(url, "spoiled", "spoiled clone", body=body)
    assert _n_rows(url, "spoiled") == _n_rows(url, "spoiled clone") == [0, 0, 0]


def test_a_row_too_many_takes_the_copy_back(url: str) -> None:
    row = "'added', '', 'one', '{}'::jsonb, '{}'::jsonb"
    body = (
        "IF TG_TABLE_NAME = 'checkpoint_blobs' AND NEW.thread_id = 'added' THEN INSERT INTO checkpoints"
        f" (thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata) VALUES ({row})"
        " ON CONFLICT DO NOTHING; END IF;"
    )
    with pytest.raises(StoreError, match="added was taken back: checkpoints"):
        _copy(url, "added", body=body)
    assert _n_rows(url, "added") == [0, 0, 0]
