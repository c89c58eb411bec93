"""Case names: folder names that cannot lead out of the cases' folder."""

from __future__ import annotations

import re
from pathlib import Path

from agentctl.errors import StoreError, UsageError

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_UNSAFE_RUN = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_MADE = 80


def is_case_name(name: str) -> bool:
    """Returns whether a folder of that name may be a case."""
    return _SAFE.fullmatch(name) is not None


def case_folder(root: Path, name: str) -> Path:
    """Returns the folder of a case; it need not exist.

    Raises:
        UsageError: the name is no plain folder name.
        StoreError: a link stands in its place.
    """
    if not _SAFE.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a case",
            hint="names begin with a letter or digit and hold letters, digits, '.', '_' and '-' only",
        )
    folder = root / name
    if folder.is_symlink():
        raise StoreError(f"{folder} is a link, not a case", hint="remove it; cases are plain folders")
    return folder


def name_for(thread: str) -> str:
    """Returns a case name made of a thread id, whatever the id holds."""
    name = _UNSAFE_RUN.sub("-", thread).strip("-._")[:_LONGEST_MADE].rstrip("-._")
    return name or "case"
