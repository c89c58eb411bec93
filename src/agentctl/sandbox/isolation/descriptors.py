"""The open files that a process was started with."""

from __future__ import annotations

import os
from collections.abc import Collection


def close_others(keep: Collection[int]) -> None:
    """Closes every descriptor of this process but 0, 1, 2 and those to keep."""
    kept = sorted({0, 1, 2, *keep})
    for below, above in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(below + 1, above)
