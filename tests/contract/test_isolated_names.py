"""Names of debug threads that are made later: no two commands take one, on either kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.errors import StoreError
from agentctl.experiments.isolated.names import name_locks, take_names
from agentctl.stores.base import Writer
from agentctl.stores.open import open_writer
from tests.support.small_graph import small_thread


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "d.sqlite") if request.param == "sqlite" else request.getfixturevalue("fresh_postgres_url")


@pytest.fixture
def writer(url: str) -> Iterator[Writer]:
    writer = open_writer(url)
    yield writer
    writer.close()


def test_two_commands_at_once_take_different_names_and_an_ended_one_gives_its_own_back(
    url: str, writer: Writer
) -> None:
    with name_locks(url) as first:
        assert take_names(writer, first, "t", "replay", 2) == ("t.replay-1", "t.replay-2")
        with name_locks(url) as second:
            assert take_names(writer, second, "t", "replay", 2) == ("t.replay-3", "t.replay-4")
            assert take_names(writer, second, "t", "fork", 1) == ("t.fork-1",)
        with name_locks(url) as third:
            assert take_names(writer, third, "t", "replay", 1) == ("t.replay-3",)
    with name_locks(url) as fourth:
        assert take_names(writer, fourth, "t", "replay", 1) == ("t.replay-1",)


def test_names_go_on_from_those_in_the_store(url: str, writer: Writer, tmp_path: Path) -> None:
    from agentctl.stores.copying.execute import copy
    from agentctl.stores.copying.selection import for_copy
    from agentctl.stores.open import open_reader

    source = open_reader(str(small_thread(tmp_path)))
    head = source.rows("t")[0].id
    copy(source, writer, [for_copy(source, "t", "", head, "point", "t.replay-7")])
    source.close()
    with name_locks(url) as take:
        assert take_names(writer, take, "t", "replay", 2) == ("t.replay-8", "t.replay-9")


def test_a_link_in_the_place_of_the_lock_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "d.sqlite-names").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="cannot be locked"), name_locks(str(tmp_path / "d.sqlite")):
        pass
    assert (tmp_path / "elsewhere").read_text() == "mine"
