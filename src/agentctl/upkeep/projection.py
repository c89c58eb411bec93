"""What a store will hold, from assumptions that are stated; `records.sizes.FORMULAS` has the formulas."""

from __future__ import annotations

import statistics
from collections.abc import Collection

from agentctl.records.sizes import Assumptions, DatabaseSize, Projection


def project(assumed: Assumptions, bytes_of_threads: Collection[int], database: DatabaseSize | None) -> Projection:
    """Returns what is kept when as many threads end as begin, each as large as those of the store are now on average.

    Args:
        assumed: How many threads begin, and how long they are kept.
        bytes_of_threads: Stored bytes of each thread that is there.
        database: With the values of every table counted; None projects no disk.
    """
    mean = statistics.fmean(bytes_of_threads) if bytes_of_threads else 0.0
    n_kept = assumed.threads_per_day * assumed.retention_days
    ratio = disk_ratio(database)
    return Projection(
        assumed=assumed,
        bytes_per_thread=mean,
        median_bytes=statistics.median(bytes_of_threads) if bytes_of_threads else 0.0,
        largest_bytes=max(bytes_of_threads, default=0),
        n_threads_kept=n_kept,
        value_bytes=n_kept * mean,
        disk_ratio=ratio,
        disk_bytes=None if ratio is None else n_kept * mean * ratio,
    )


def disk_ratio(database: DatabaseSize | None) -> float | None:
    """Returns how many bytes on disk, indexes included and free pages not, there are for one of values."""
    if database is None:
        return None
    values = sum(table.value_bytes or 0 for table in database.tables)
    return database.used_bytes / values if values else None
