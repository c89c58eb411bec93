"""The database roles of docs/roles.md: made from the page, each runs its commands and is refused the rest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.store.postgres import PostgresStore
from psycopg import errors

from tests.catalog import CATALOG, config_of, run_case
from tests.support import shop
from tests.support.cli import AGENT, CHECK, EDITED, PATCH, Cli
from tests.support.postgres import database_name, new_database

PAGE = Path(__file__).parents[2] / "docs" / "roles.md"
ROLES = ("agentctl_reader", "agentctl_debug", "agentctl_pruner", "agentctl_runner")
REAL = {"AGENTCTL_ENV": "production"}

CHANGES_OF_TABLES = (
    "TRUNCATE public.checkpoints",
    "DROP TABLE public.checkpoint_writes",
    "ALTER TABLE public.checkpoints ADD COLUMN x int",
    "CREATE TABLE public.mine (x int)",
    "CREATE SCHEMA mine",
)
CHANGES_OF_ROWS = {
    "INSERT": "INSERT INTO public.{} SELECT * FROM public.{} LIMIT 0",
    "UPDATE": "UPDATE public.{} SET thread_id = thread_id WHERE false",
    "DELETE": "DELETE FROM public.{} WHERE false",
}
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


@dataclass(frozen=True, slots=True)
class Database:
    """A database with the roles of the page; their names end in its own, since roles are a server's."""

    url: str
    cli: Cli
    names: Mapping[str, str] = field(repr=False)

    def as_role(self, role: str) -> str:
        return self.url.replace("//postgres@", f"//{self.names[role]}@")

    def may(self, role: str, statement: str) -> bool:
        """Tells whether the database lets a role do something; nothing is done."""
        with psycopg.connect(self.as_role(role)) as connection:
            try:
                connection.execute(statement)  # type: ignore[call-overload]
            except errors.InsufficientPrivilege:
                return False
            finally:
                connection.rollback()
        return True

    def rows(self) -> dict[str, int]:
        with psycopg.connect(self.url) as connection:
            counts = {}
            for table in (*TABLES, "store"):
                found = connection.execute(f"SELECT count(*) FROM public.{table}").fetchone()  # type: ignore[call-overload]
                counts[table] = found[0]
            return counts


@pytest.fixture(scope="module")
def database(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with new_database(postgres_url) as url:
        _seed(url)
        names = {role: f"{role}_{database_name(url)}" for role in ROLES}
        page = PAGE.read_text("utf-8")
        with psycopg.connect(url, autocommit=True) as owner:
            for block in re.findall(r"```sql\n(.+?)```", page, re.DOTALL):
                for role, name in names.items():
                    block = re.sub(rf"(?<!SCHEMA ){role}\b", name, block)
                owner.execute(block)
        folder = tmp_path_factory.mktemp("roles")
        found = Database(url, Cli(folder, folder), names)
        _write_project(found)
        yield found
        with psycopg.connect(url, autocommit=True) as owner:
            for name in names.values():
                owner.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")  # type: ignore[call-overload]


def _seed(url: str) -> None:
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        graph = shop.agent()
        graph.checkpointer = saver
        config: Any = config_of(AGENT, user_id="u-1042") | {"metadata": {"workflow": "refunds"}}
        graph.invoke({"messages": [("user", "where is my order?")]}, config, durability="sync")
        run_case(CATALOG["agent corrected"], saver, EDITED)
        run_case(CATALOG["delta"], saver, "delta")
    with PostgresStore.from_conn_string(url) as store:
        store.setup()
        store.put(("users", "u-1042"), "language", {"value": "fr"})


def _write_project(database: Database) -> None:
    app = Path(shop.__file__)
    config = {
        "profiles": {
            "prod": {"store": database.as_role("agentctl_reader"), "default": True},
            "writable": {"store": database.as_role("agentctl_reader"), "access": "write"},
            "upkeep": {"store": database.as_role("agentctl_pruner"), "access": "write"},
            "live": {"store": database.as_role("agentctl_runner"), "access": "write"},
            "debug": {"store": database.as_role("agentctl_debug"), "schema": "agentctl_debug"},
        },
        "workflows": {
            "refunds": {
                "graph": f"{app}:build_graph",
                "sandbox": f"{app}:sandbox",
                "production": f"{app}:production",
            }
        },
    }
    (database.cli.cwd / "agentctl.yaml").write_text(yaml.safe_dump(config), "utf-8")


def test_the_reader_and_the_debug_role_are_enough_to_look_and_to_experiment(database: Database) -> None:
    cli, before = database.cli, database.rows()
    for words in (
        ("threads",),
        ("threads", "--grep", "refund"),
        ("history", AGENT, "--all"),
        ("show", AGENT),
        ("show", AGENT, "--messages"),
        ("resolve", f"{AGENT}@call:lookup_order"),
        ("diff", f"{EDITED}@root...head"),
        ("size",),
        ("doctor", "--all"),
        ("prune", "prod::", "--keep-turns", "1", "--snapshot"),
        ("copy", AGENT),
        ("copy", "delta", "--only", "all"),
        ("replay", f"{AGENT}@before:tools"),
        ("fork", AGENT, "--patch", PATCH, "--no-run"),
        ("export", AGENT, "--dataset", "refunds", "--check", CHECK, "--dry-run"),
        ("prune", "debug::delta.copy-1", "--delete", "--apply"),
        ("case", "close", "support-17"),
    ):
        done = cli(*words)
        assert done.code == 0, (words, done.err)
    assert database.rows() == before


def test_the_database_refuses_the_reader_every_change(database: Database) -> None:
    for table in TABLES:
        assert database.may("agentctl_reader", f"SELECT * FROM public.{table} LIMIT 1")
        for statement in CHANGES_OF_ROWS.values():
            assert not database.may("agentctl_reader", statement.format(table, table)), (table, statement)
    for statement in CHANGES_OF_TABLES:
        assert not database.may("agentctl_reader", statement), statement
    assert not database.may("agentctl_reader", "DELETE FROM public.store")
    refused = database.cli("prune", f"writable::{AGENT}", "--delete", "--apply")
    assert refused.code == 4
    assert "this role may not delete in" in refused.err
    assert database.cli("copy", AGENT, "--to", "writable", "--as", "mine").code == 4


def test_the_database_keeps_the_debug_role_out_of_the_application(database: Database) -> None:
    for table in (*TABLES, "store"):
        assert not database.may("agentctl_debug", f"SELECT * FROM public.{table} LIMIT 1")
        assert not database.may("agentctl_debug", f"DELETE FROM public.{table} WHERE false")
    for statement in CHANGES_OF_TABLES:
        assert not database.may("agentctl_debug", statement), statement


def test_the_pruner_prunes_and_no_more(database: Database) -> None:
    cli = database.cli
    assert cli("prune", "upkeep::delta", "--keep-turns", "1", "--snapshot", "--apply").code == 0
    assert cli("prune", f"upkeep::{EDITED}", "--delete", "--apply").code == 0
    assert cli("history", EDITED).code == 3
    for table in ("checkpoints", "checkpoint_writes"):
        assert not database.may("agentctl_pruner", CHANGES_OF_ROWS["INSERT"].format(table, table))
    assert not database.may("agentctl_pruner", CHANGES_OF_ROWS["UPDATE"].format("checkpoint_writes", ""))
    assert not database.may("agentctl_pruner", "SELECT * FROM public.store")
    assert not database.may("agentctl_pruner", "DELETE FROM public.store")
    for statement in CHANGES_OF_TABLES:
        assert not database.may("agentctl_pruner", statement), statement


def test_the_runner_runs_in_production_and_takes_nothing_away(database: Database) -> None:
    question = '{"messages": [["user", "where is my order?"]]}'
    words = ("run", "refunds", "--thread", "live::new", "--input", question, "--tools", "production")
    done = database.cli(*words, environ={**os.environ, **REAL})
    assert (done.code, done.err if done.code else "") == (0, "")
    assert database.cli("history", "new").code == 0
    for table in TABLES:
        assert not database.may("agentctl_runner", CHANGES_OF_ROWS["DELETE"].format(table))
    for statement in CHANGES_OF_TABLES:
        assert not database.may("agentctl_runner", statement), statement
    refused = database.cli("prune", "live::new", "--delete", "--apply")
    assert refused.code == 4
    assert "this role may not delete in" in refused.err
