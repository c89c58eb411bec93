"""The Postgres that tests run on: found without importing anything, not root, gone when its parent is."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import NoPostgres, binary_folders, identities, running_postgres, usable_binaries

START_AND_WAIT = """
import sys
from tests.support.postgres import running_postgres
with running_postgres() as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def test_a_named_folder_is_the_only_one_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "initdb").touch()
    monkeypatch.setenv("AGENTCTL_PG_BIN", str(tmp_path))
    assert binary_folders() == [tmp_path]
    with pytest.raises(NoPostgres, match=str(tmp_path)):
        usable_binaries(binary_folders(), identities())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
def test_binaries_under_a_closed_folder_are_run_in_a_user_namespace(tmp_path: Path) -> None:
    closed = tmp_path / "home"
    closed.mkdir(mode=0o700)
    link = closed / "bin"
    link.symlink_to(usable_binaries(binary_folders(), identities())[0])
    try:
        _, identity = usable_binaries([link], identities())
    except NoPostgres as error:
        pytest.skip(f"no user namespaces here: {error}")
    assert identity.name == "a user namespace"
    assert closed.stat().st_mode & 0o777 == 0o700


def test_it_is_gone_when_it_is_no_longer_needed() -> None:
    with running_postgres() as url:
        folder = Path(url.partition("host=")[2])
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
def test_it_dies_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", START_AND_WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    folder = Path(parent.stdout.readline().strip().partition("host=")[2])
    server = os.pidfd_open(int((folder / "data" / "postmaster.pid").read_text().splitlines()[0]))
    parent.kill()
    parent.wait()
    ended, _, _ = select.select([server], [], [], 60)
    os.close(server)
    parent.stdin.close()
    parent.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)
    assert ended
