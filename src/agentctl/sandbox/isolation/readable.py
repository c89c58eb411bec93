"""Which files a confined process may read: all but other processes' and some that are kept from it.

The kernel's rules only allow. What is not to be read is left out by allowing everything around it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

_PROCESSES: Final = Path("/proc")
_KEPT_IN_HOME: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", ".password-store", ".netrc", ".pgpass",
    ".pg_service.conf", ".my.cnf", ".git-credentials", ".pypirc", ".npmrc", ".vault-token", ".config/gcloud",
    ".config/gh", ".config/rclone", ".local/share/keyrings", ".mozilla", ".config/google-chrome",
)  # fmt: skip


def private_places(home: Path) -> tuple[Path, ...]:
    """Returns where keys and passwords of a person usually are; no graph needs them from there."""
    return tuple(home / name for name in _KEPT_IN_HOME)


def readable_places(kept: Collection[Path]) -> Iterator[Path]:
    """Yields places that together hold every file but other processes' (their command line, say) and what is kept.

    A file that is made later beside something that is kept is not among them. Links need no place of their own.
    """
    closed = {place.resolve() for place in kept if os.path.exists(place)}  # noqa: PTH110 -- false where it may not be asked
    levels = {level for place in (_PROCESSES, *closed) for level in place.parents}
    yield from _around(Path("/"), closed, levels)


def _around(level: Path, closed: Collection[Path], levels: Collection[Path]) -> Iterator[Path]:
    for place in _entries(level, levels):
        if place == _PROCESSES:
            yield from _own_of_processes()
        elif place in levels and place not in closed:
            yield from _around(place, closed, levels)
        elif place not in closed:
            yield place


def _entries(level: Path, levels: Collection[Path]) -> list[Path]:
    """Returns what a folder holds but links; where it may not be listed, what is known to be there."""
    try:
        with os.scandir(level) as entries:
            return [Path(entry.path) for entry in entries if not entry.is_symlink()]
    except OSError:
        return [place for place in levels if place.parent == level and place != level]


def _own_of_processes() -> Iterator[Path]:
    """Yields what /proc holds about the machine and about this process; what it starts cannot read about itself."""
    with os.scandir(_PROCESSES) as entries:
        for entry in entries:
            if not entry.is_symlink() and (not entry.name.isdigit() or entry.name == str(os.getpid())):
                yield Path(entry.path)
