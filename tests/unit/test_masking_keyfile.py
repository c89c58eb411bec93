"""The file that keeps the key of a debug store."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_bytes

import pytest

from agentctl.errors import StoreError
from agentctl.masking.keyfile import kept_key, read_key


def test_it_is_made_once_for_its_owner_alone_with_the_folder_it_lies_in(tmp_path: Path) -> None:
    file = tmp_path / "state" / "debug.sqlite.mask-key"
    assert read_key(file) is None
    key = kept_key(file, token_bytes)
    assert kept_key(file, token_bytes) == key == read_key(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_commands_at_the_same_moment_get_the_same_key(tmp_path: Path) -> None:
    file = tmp_path / "mask-key"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: kept_key(file, token_bytes), range(16)))
    assert keys == {read_key(file)}


def test_no_link_is_followed_and_no_folder_or_readable_file_taken(tmp_path: Path) -> None:
    own = tmp_path / "own"
    kept_key(own, token_bytes)
    link = tmp_path / "link"
    link.symlink_to(own)
    with pytest.raises(StoreError, match="cannot be used"):
        kept_key(link, token_bytes)
    with pytest.raises(StoreError, match="it is no file"):
        read_key(tmp_path)
    own.chmod(0o640)
    with pytest.raises(StoreError, match="others may read it") as caught:
        read_key(own)
    assert caught.value.hint == f"chmod 600 {own}"


def test_what_is_no_key_is_not_taken_for_one(tmp_path: Path) -> None:
    file = tmp_path / "mask-key"
    file.touch(mode=0o600)
    with pytest.raises(StoreError, match=r"mask-key, cannot be used: a key for masking has 16 characters or more"):
        kept_key(file, token_bytes)


def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be used") as caught:
        kept_key(tmp_path / "file" / "mask-key", token_bytes)
    assert caught.value.hint is not None and "AGENTCTL_MASK_KEY" in caught.value.hint
