"""What an export wrote, for people, pipes and programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agentctl.records.datasets import ExportReport
from agentctl.render.clean import clean
from agentctl.render.machine import document
from agentctl.render.masking import mask_counts, mask_object, mask_words
from agentctl.render.words import count

if TYPE_CHECKING:
    from rich.console import RenderableType


def human(report: ExportReport, width: int) -> Iterable[RenderableType]:
    """Yields the dataset with its counts, then what was written, one line each."""
    n_replaced = report.n_examples - report.n_new
    replaced = f", {n_replaced} replaced" if n_replaced else ""
    verb = "would hold" if report.dry_run else "holds"
    yield f"{clean(report.dataset)} {verb} {count(report.n_examples, 'example')} of it: {report.n_new} new{replaced}"
    for file in report.files:
        yield f"  {clean(file)}"
    if report.url:
        yield f"  {clean(report.url)}"
    if report.masking is not None and (report.masking.n_distinct or report.masking.unmasked):
        yield from textwrap.wrap(f"masked {mask_words(report.masking)}", width, subsequent_indent="  ")


def plain(report: ExportReport) -> Iterable[Sequence[str | int | None]]:
    """Yields one row: dataset, format, examples, new ones, files, address, masked or not, counts of what was."""
    yield (
        report.dataset,
        report.format,
        report.n_examples,
        report.n_new,
        ",".join(report.files),
        report.url,
        str(report.masked).lower(),
        mask_counts(report.masking),
    )


def as_document(report: ExportReport) -> dict[str, object]:
    """Returns the JSON document `agentctl.export/1`."""
    return document(
        "export",
        {
            "dataset": report.dataset,
            "format": report.format,
            "n_examples": report.n_examples,
            "n_new": report.n_new,
            "files": list(report.files),
            "url": report.url,
            "dry_run": report.dry_run,
            "warnings": list(report.warnings),
            "masked": report.masked,
            "masking": mask_object(report.masking),
        },
    )
