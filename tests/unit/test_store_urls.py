"""What the text of `--store` means, and that no password is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.config.places import same_store
from agentctl.errors import Refused, StoreError
from agentctl.stores.open import open_reader, open_writer
from agentctl.stores.urls import StoreUrl, hide_password, parse_store_url


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("threads.sqlite", StoreUrl("sqlite", "threads.sqlite")),
        ("./a b/threads.db", StoreUrl("sqlite", "a b/threads.db")),
        ("/srv/app/threads", StoreUrl("sqlite", "/srv/app/threads")),
        ("sqlite:///threads.sqlite", StoreUrl("sqlite", "threads.sqlite")),
        ("sqlite:////srv/threads.sqlite", StoreUrl("sqlite", "/srv/threads.sqlite")),
        ("postgresql://u@h/db", StoreUrl("postgres", "postgresql://u@h/db")),
        (
            "postgres://u:p@h:5432/db?sslmode=require",
            StoreUrl("postgres", "postgresql://u:p@h:5432/db?sslmode=require"),
        ),
        ("postgresql+psycopg://u@h/db", StoreUrl("postgres", "postgresql://u@h/db")),
        ("PostgreSQL://u@h/db", StoreUrl("postgres", "postgresql://u@h/db")),
        ("app/stores.py:production", StoreUrl("saver", "app/stores.py", "production")),
        ("/srv/stores.py:Savers.make", StoreUrl("saver", "/srv/stores.py", "Savers.make")),
        ("stores.py", StoreUrl("sqlite", "stores.py")),
        ("https://Agents.example.com/", StoreUrl("server", "https://agents.example.com")),
        ("http://127.0.0.1:2024", StoreUrl("server", "http://127.0.0.1:2024")),
        ("HTTPS://h/Team/agents/", StoreUrl("server", "https://h/Team/agents")),
    ],
)
def test_every_form_names_its_kind_and_place(text: str, expected: StoreUrl) -> None:
    assert parse_store_url(text) == expected


def test_a_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/ann")
    assert parse_store_url("~/threads.sqlite") == StoreUrl("sqlite", "/users/ann/threads.sqlite")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty text"),
        (":memory:", "no file to read"),
        ("sqlite://", "no file to read"),
        ("sqlite:///:memory:", "no file to read"),
        ("sqlite://threads.sqlite", "names a host"),
        ("https://", "no address of an Agent Server"),
        ("https://h?api_key=secret", "no address of an Agent Server: https://h$"),
        ("mysql://u:secret@h/db", "no kind of store is called mysql"),
    ],
)
def test_what_cannot_be_opened_is_an_error_with_a_hint(text: str, message: str) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        parse_store_url(text)
    assert caught.value.exit_code == 4
    assert "--store" in (caught.value.hint or "")
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("text", ["https://ann:secret@h", "http://ann@h", "https://ann:a/secret@h"])
def test_a_password_in_the_address_of_a_server_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(StoreError, match="no user and no password") as caught:
        parse_store_url(text)
    assert "LANGGRAPH_API_KEY" in (caught.value.hint or "")
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:secret@h:5432/db", "postgresql://ann:***@h:5432/db"),
        ("postgresql://ann:se:c@re/t@h/db", "postgresql://ann:***@h/db"),
        ("postgresql://ann:sec?ret@h/db", "postgresql://ann:***@h/db"),
        ("postgresql://ann@h/db", "postgresql://ann@h/db"),
        ("postgresql://h:5432/db", "postgresql://h:5432/db"),
        (
            "postgresql:///db?user=ann&password=secret&sslmode=require",
            "postgresql:///db?user=ann&password=***&sslmode=require",
        ),
        ("postgresql:///db?sslpassword=secret", "postgresql:///db?sslpassword=***"),
        ("/srv/threads.sqlite", "/srv/threads.sqlite"),
    ],
)
def test_a_password_is_hidden_and_the_rest_stays(url: str, shown: str) -> None:
    assert hide_password(url) == shown


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_no_password_shows_whatever_it_is_made_of(password: str) -> None:
    marked = f"<{password}>"
    assert marked not in hide_password(f"postgresql://ann:{marked}@db.example.com:5432/agents?sslmode=require")


def test_a_schema_is_refused_where_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="only Postgres has schemas"):
        open_reader(str(tmp_path / "threads.sqlite"), schema="agents")


def test_a_saver_cannot_be_a_target(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        open_writer(f"{tmp_path}/stores.py:production")
    assert "--to" in (caught.value.hint or "")


def test_an_agent_server_cannot_be_a_target() -> None:
    with pytest.raises(Refused, match="takes no stored rows") as caught:
        open_writer("https://agents.example.com")
    assert "--to" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("https://Agents.example.com/", "https://agents.example.com"),
        ("threads.sqlite", "sqlite:///./threads.sqlite"),
        ("postgres://app:secret@DB.example/prod", "postgresql://reader@db.example:5432/prod?sslmode=require"),
        ("postgresql://app@/prod?host=/run/pg", "postgresql:///prod?host=/run/pg&user=app"),
        ("postgresql://h/a%20b", "postgresql://h?dbname=a%20b"),
    ],
)
def test_one_store_is_known_however_it_is_spelled(first: str, second: str) -> None:
    assert same_store(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("threads.sqlite", "other.sqlite"),
        ("postgresql://h/prod", "postgresql://h/debug"),
        ("postgresql://h/prod", "postgresql://h:5433/prod"),
        ("postgresql://h/prod", "prod"),
        ("https://h/a", "https://h/b"),
    ],
)
def test_different_stores_are_told_apart(first: str, second: str) -> None:
    assert not same_store(first, second)


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "threads.sqlite").touch()
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "threads.sqlite")
    assert same_store(str(tmp_path / "threads.sqlite"), str(tmp_path / "link.sqlite"))
