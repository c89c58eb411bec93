"""What a store holds, as hashes: equal before and after means that nothing was written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from agentctl.errors import StoreError
from agentctl.stores.urls import parse_store_url


def fingerprint(url: str) -> Mapping[str, str]:
    """Returns a hash of each part of a store: of its tables in Postgres, of its file and those beside it in SQLite.

    Beside a SQLite file lie those whose names begin with its stem: logs, journals, the application's own database.

    Raises:
        StoreError: it cannot be read, or is of another kind.
    """
    target = parse_store_url(url)
    if target.kind == "postgres":
        from agentctl.stores.postgres.fingerprint import hash_tables

        return hash_tables(target.location)
    if target.kind != "sqlite":
        raise StoreError("only databases have fingerprints", hint="give a SQLite file or postgresql://...")
    file = Path(target.location)
    return {path.name: _digest(path) for path in sorted(file.parent.glob(f"{file.stem}*")) if path.is_file()}


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names of the parts that were changed, added or taken away."""
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
