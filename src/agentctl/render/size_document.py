"""What a store takes, for pipes and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentctl.records.sizes import FORMULAS, Projection, SizeItem, SizeReport, TableSize
from agentctl.render.machine import document


def plain(report: SizeReport) -> Iterator[Sequence[str | int | float | None]]:
    """Yields one row an item, then one row a figure of the projection.

    An item is its level, thread, ns, channel, name, detail, n_namespaces, n_checkpoints, n_writes, n_values,
    n_distinct, state_bytes, metadata_bytes, write_bytes, stored_bytes, payload_bytes; a figure is `projection`, name
    and value.
    """
    for item in report.items:
        yield (
            report.by,
            item.thread,
            item.ns,
            item.channel,
            item.name,
            item.detail,
            item.n_namespaces,
            item.n_checkpoints,
            item.n_writes,
            item.n_values,
            item.n_distinct,
            item.state_bytes,
            item.metadata_bytes,
            item.write_bytes,
            item.stored_bytes,
            item.payload_bytes,
        )
    if report.projection is not None:
        for name, value in _projection(report.projection).items():
            if isinstance(value, int | float):
                yield ("projection", name, value)


def as_document(report: SizeReport) -> dict[str, object]:
    """Returns the JSON document `agentctl.size/1`."""
    database = report.database
    return document(
        "size",
        {
            "store": report.store,
            "thread": report.thread,
            "by": report.by,
            "n_threads": report.n_threads,
            "total": _item(report.total),
            "items": [_item(item) for item in report.items],
            "n_total": report.n_total,
            "truncated": report.truncated,
            "database": None
            if database is None
            else {
                "disk_bytes": database.disk_bytes,
                "index_bytes": database.index_bytes,
                "free_bytes": database.free_bytes,
                "wal_bytes": database.wal_bytes,
                "tables": [_table(table) for table in database.tables],
            },
            "projection": None if report.projection is None else _projection(report.projection),
            "notes": list(report.notes),
        },
    )


def _item(item: SizeItem) -> dict[str, object]:
    return {
        "thread": item.thread,
        "ns": item.ns,
        "channel": item.channel,
        "name": item.name,
        "detail": item.detail,
        "n_namespaces": item.n_namespaces,
        "n_checkpoints": item.n_checkpoints,
        "n_writes": item.n_writes,
        "n_values": item.n_values,
        "n_distinct": item.n_distinct,
        "unchanged": item.unchanged,
        "state_bytes": item.state_bytes,
        "metadata_bytes": item.metadata_bytes,
        "write_bytes": item.write_bytes,
        "stored_bytes": item.stored_bytes,
        "payload_bytes": item.payload_bytes,
        "amplification": item.amplification,
    }


def _table(table: TableSize) -> dict[str, object]:
    return {
        "name": table.name,
        "n_rows": table.n_rows,
        "value_bytes": table.value_bytes,
        "disk_bytes": table.disk_bytes,
        "index_bytes": table.index_bytes,
        "n_dead_rows": table.n_dead_rows,
    }


def _projection(projection: Projection) -> dict[str, object]:
    return {
        "threads_per_day": projection.assumed.threads_per_day,
        "retention_days": projection.assumed.retention_days,
        "bytes_per_thread": round(projection.bytes_per_thread),
        "median_bytes": round(projection.median_bytes),
        "largest_bytes": projection.largest_bytes,
        "n_threads_kept": projection.n_threads_kept,
        "value_bytes": round(projection.value_bytes),
        "disk_ratio": projection.disk_ratio,
        "disk_bytes": None if projection.disk_bytes is None else round(projection.disk_bytes),
        "formulas": list(FORMULAS),
    }
