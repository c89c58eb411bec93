"""Small words that several renderings share: ages, ids, counts, sizes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from agentctl.revisions.shortids import short_ids


def age(at: datetime | None, now: datetime) -> str:
    """Returns how long ago in one short word: `12s`, `5m`, `3h`, `2d`, `7w`; `?` where unknown."""
    if at is None:
        return "?"
    seconds = max(0, int((now - at).total_seconds()))
    for size, unit in ((604800, "w"), (86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or (seconds >= size and unit != "w"):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Returns `1 checkpoint`, `6 checkpoints`, `1,000 checkpoints`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def size(n_bytes: int) -> str:
    """Returns `812 B`, `3 KB`, `4.2 MB`."""
    value = float(n_bytes)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def names(nodes: Collection[str]) -> str:
    """Returns node names with multiplicity, `tools x3`, or `-` for none."""
    if not nodes:
        return "-"
    counted: dict[str, int] = {}
    for node in nodes:
        counted[node] = counted.get(node, 0) + 1
    return ", ".join(node if n == 1 else f"{node} x{n}" for node, n in counted.items())


def percent_interval(interval: tuple[float, float]) -> str:
    """Returns `[57 %, 100 %]`."""
    low, high = interval
    return f"[{low * 100:.0f} %, {high * 100:.0f} %]"


__all__ = ["age", "count", "names", "percent_interval", "short_ids", "size"]
