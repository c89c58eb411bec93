"""What the log's lines say: an opening one before a store is read, a closing one when its command ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from agentctl.casebook.audit.chain import Line, read_line
from agentctl.casebook.audit.log import LOG, append
from agentctl.codec.jsontext import timestamp
from agentctl.errors import StoreError
from agentctl.records.audit import Access, Person, Touched, Use, Why

_OPENED, _CLOSED = "opened", "closed"


def log_opening(
    folder: Path,
    *,
    who: Person,
    command: tuple[str, ...],
    profile: str,
    store: str,
    use: Use,
    why: Why,
    now: datetime,
) -> int:
    """Logs that a store is about to be read or written; returns the number to close it with.

    Args:
        folder: Where the log is.
        who: Who gives the command.
        command: Its words, secrets replaced.
        profile: The profile's name.
        store: Store text, its password replaced.
        use: Whether the store is opened for writing.
        why: Ticket and reason.
        now: The clock, UTC.

    Raises:
        StoreError: the log cannot be written, so nothing may be read.
    """
    fields = {
        "event": _OPENED,
        "at": timestamp(now),
        "user": who.user,
        "host": who.host,
        "command": list(command),
        "profile": profile,
        "store": store,
        "use": use,
        "ticket": why.ticket,
        "reason": why.reason,
    }
    return append(folder, fields)


def log_closing(folder: Path, opening: int, touched: Touched, *, now: datetime) -> None:
    """Logs what a command has read when it ends.

    Raises:
        StoreError: the log cannot be written.
    """
    fields = {
        "event": _CLOSED,
        "at": timestamp(now),
        "opening": opening,
        "threads": list(touched.threads),
        "checkpoints": list(touched.checkpoints),
        "n_threads": touched.n_threads,
        "n_checkpoints": touched.n_checkpoints,
        "n_rows": dict(touched.n_rows),
    }
    append(folder, fields)


def read_accesses(folder: Path) -> tuple[tuple[Access, ...], int]:
    """Returns the reads and writes of a log, oldest first, and how many lines cannot be read. Creates nothing.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        data = (folder / LOG).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return (), 0
    except OSError as error:
        raise StoreError(f"the audit log in {folder} cannot be read: {error.strerror}") from error
    found: dict[int, Access] = {}
    n_damaged = 0
    for text in data.split(b"\n"):
        if not text:
            continue
        line = read_line(text)
        try:
            if line is None:
                raise ValueError("not a line of the log")
            _take(line, found)
        except (ValueError, KeyError, TypeError, AttributeError):
            n_damaged += 1
    return tuple(found.values()), n_damaged


def _take(line: Line, found: dict[int, Access]) -> None:
    fields = line.fields
    at = datetime.fromisoformat(str(fields["at"]))
    if at.tzinfo is None:
        raise ValueError("no UTC time")
    if fields["event"] == _OPENED:
        found[line.n] = _access(line.n, at, fields)
        return
    opening = int(str(fields["opening"]))
    found[opening] = replace(found[opening], touched=_touched(fields), ended_at=at)


def _access(n: int, at: datetime, fields: Mapping[str, object]) -> Access:
    return Access(
        n,
        at,
        Person(str(fields["user"]), str(fields["host"])),
        _texts(fields["command"]),
        str(fields["profile"]),
        str(fields["store"]),
        "write" if fields["use"] == "write" else "read",
        Why(str(fields["ticket"]), str(fields["reason"])),
    )


def _touched(fields: Mapping[str, object]) -> Touched:
    rows = fields["n_rows"]
    if not isinstance(rows, Mapping):
        raise ValueError("no counts")
    return Touched(
        _texts(fields["threads"]),
        _texts(fields["checkpoints"]),
        int(str(fields["n_threads"])),
        int(str(fields["n_checkpoints"])),
        {str(kind): int(str(n)) for kind, n in rows.items()},
    )


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("no list")
    return tuple(str(item) for item in value)
