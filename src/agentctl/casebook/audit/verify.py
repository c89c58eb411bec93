"""Checking a log: every line against its own hash and the line before it, and the end against the head.

The hashes have no key: they tell that a log was changed. A person who may write the folder can make a whole new log
that fits. An anchor tells that, a line's number and hash that were kept elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agentctl.casebook.audit.chain import START, Line, read_line
from agentctl.casebook.audit.log import HEAD, LOG, Head, read_head
from agentctl.casebook.files import locked
from agentctl.errors import StoreError, UsageError
from agentctl.records.audit import AuditFault, Verification

_ANCHOR = re.compile(r"(?P<n>[1-9]\d*):(?P<hash>[0-9a-f]{16,64})")


def parse_anchor(text: str) -> tuple[int, str]:
    """Returns the number of a line and the beginning of its hash.

    Raises:
        UsageError: it is not `N:HASH`.
    """
    match = _ANCHOR.fullmatch(text)
    if match is None:
        raise UsageError(f"--anchor takes N:HASH, not {text!r}", hint="as agentctl audit verify prints it")
    return int(match["n"]), match["hash"]


def verify(folder: Path, anchor: tuple[int, str] | None = None) -> Verification:
    """Returns what is wrong with a log. Nothing is written but the folder's lock.

    Args:
        folder: Where the log is; it need not exist.
        anchor: Number and hash of a line that was kept elsewhere.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        if not folder.is_dir():
            return Verification(folder, 0, "", tuple(_missing_anchor(anchor)))
        with locked(folder):
            data = (folder / LOG).read_bytes() if (folder / LOG).exists() else b""
            faults = []
            try:
                head = read_head(folder)
            except ValueError as error:
                head = None
                faults.append(AuditFault("damaged", None, f"{HEAD} is damaged: {error}"))
    except OSError as error:
        raise StoreError(f"the audit log in {folder} cannot be read: {error.strerror}") from error
    texts = data.split(b"\n")
    torn = texts.pop()
    lines = [read_line(text) for text in texts]
    found = [*_chain(lines)]
    if torn:
        found.append(AuditFault("cut", len(texts) + 1, "the line has no end: its writer was cut off, or it was cut"))
    if head is not None or not faults:
        found += _against_head(lines, head)
    if head is not None and not found and len(data) != head.n_bytes:
        found.append(AuditFault("damaged", None, f"the log has {len(data)} bytes, {HEAD} tells of {head.n_bytes}"))
    if anchor is not None:
        found += _against_anchor(lines, *anchor)
    last = lines[-1] if lines else None
    return Verification(folder, len(lines), last.hash if last else "", (*faults, *found))


def _chain(lines: list[Line | None]) -> Iterator[AuditFault]:
    """Yields what does not fit from line to line; what follows a fault is judged from there on."""
    n, prev = 0, START
    for place, line in enumerate(lines, 1):
        if line is None:
            yield AuditFault("damaged", place, "not a line of the log")
            n, prev = n + 1, ""
            continue
        if not line.fits:
            yield AuditFault("edited", place, "its hash is not that of its text")
        if line.n > n + 1:
            yield AuditFault("gap", place, f"entries {n + 1} to {line.n - 1} are missing before it")
        elif line.n <= n:
            yield AuditFault("order", place, f"entry {line.n} stands after entry {n}")
        elif prev and line.prev != prev:
            yield AuditFault("order", place, "it does not follow the line before it")
        n, prev = line.n, line.hash


def _against_head(lines: list[Line | None], head: Head | None) -> Iterator[AuditFault]:
    if head is None:
        if lines:
            yield AuditFault("missing", None, f"there is no {HEAD}, so a cut at the end cannot be told")
        return
    if len(lines) < head.n:
        yield AuditFault("cut", len(lines) or None, f"the log ends here; its head tells of {head.n} entries")
        return
    covered = lines[head.n - 1] if head.n else None
    if covered is not None and covered.hash != head.hash:
        yield AuditFault("edited", head.n, f"it is not the line that {HEAD} was written for")
    if len(lines) > head.n:
        yield AuditFault("uncovered", head.n + 1, f"{HEAD} ends before it: a command was cut off, or it was added")


def _against_anchor(lines: list[Line | None], n: int, found: str) -> Iterator[AuditFault]:
    if n > len(lines):
        yield AuditFault("anchor", None, f"the anchor is of entry {n}, and the log has {len(lines)}")
        return
    line = lines[n - 1]
    if line is None or not line.hash.startswith(found):
        yield AuditFault("anchor", n, "it is not the line that the anchor was made of: the log was written anew")


def _missing_anchor(anchor: tuple[int, str] | None) -> Iterator[AuditFault]:
    if anchor is not None:
        yield from _against_anchor([], *anchor)
