"""Text and metadata of a PDF."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING

from graphs.research_report.web.pages import Content, Declared, Unreadable, Why

if TYPE_CHECKING:
    from pypdf import PdfReader


def read_pdf(body: bytes, max_pages: int, check_time: Callable[[], object]) -> Content:
    """Reads a PDF, page by page.

    Args:
        body: The file.
        max_pages: How many it may have.
        check_time: Called before each page; what it raises ends the reading.

    Raises:
        Unreadable: it is damaged, locked by a password, has too many pages, or holds no text (a scan).
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    from graphs.research_report.web.reading import tidy

    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted:
            raise Unreadable(Why.BLOCKED, "the PDF is locked by a password")
        if len(reader.pages) > max_pages:
            raise Unreadable(Why.SIZE, f"the PDF has more than {max_pages} pages")
        texts = []
        for page in reader.pages:
            check_time()
            texts.append(page.extract_text())
        declared = Declared(_named(reader, "title"), _named(reader, "author"), _created_on(reader))
        return Content(tidy("\n".join(texts)), "pdf", declared)
    # A damaged file makes the library fail in ways of its own choosing, and each says the same of the page.
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise Unreadable(Why.DAMAGED, f"the PDF cannot be read: {type(error).__name__}") from error


def _named(reader: PdfReader, name: str) -> str | None:
    from graphs.research_report.web.metadata import MAX_CHARS
    from graphs.research_report.web.reading import tidy

    value = getattr(reader.metadata, name, None)
    return tidy(value).replace("\n", " ")[:MAX_CHARS] or None if isinstance(value, str) else None


def _created_on(reader: PdfReader) -> date | None:
    created = reader.metadata.creation_date if reader.metadata else None
    return created.date() if created else None
