"""From a body to its text: HTML, plain text, tables and PDF."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphs.research_report.web.pages import Content, PageType, Unreadable, Why

if TYPE_CHECKING:
    from lxml.html import HtmlElement

    from graphs.research_report.web.metadata import Metadata

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PLAIN = {"text/plain": "text", "text/csv": "table"}
_PDF_MAGIC = b"%PDF-"
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_DECLARED_WITHIN_BYTES = 1024
# Characters that show nothing: zero-width ones, direction overrides, soft hyphens, tags that spell hidden text.
# Joiners stay: Persian, Indic scripts and emoji need them.
_UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WALL = re.compile(
    r"(subscribe|sign in|log in|register) (now )?to (continue|keep|read|unlock)|to continue reading"
    r"|(article|content|story) is (only |reserved )?(for|available to) (our )?(subscribers|members)"
    r"|already a subscriber",
    re.IGNORECASE,
)
_WALL_WITHIN_CHARS = 1500


@dataclass(frozen=True, slots=True)
class Reading:
    """What is taken of a page.

    Attributes:
        min_chars: A page with less text is empty.
        max_pdf_pages: A PDF with more is too large.
    """

    min_chars: int = 40
    max_pdf_pages: int = 100


def read(body: bytes, content_type: str, reading: Reading) -> Content:
    """Reads a body.

    Args:
        body: The bytes, decompressed.
        content_type: The header, '' where there was none.
        reading: What is taken.

    Raises:
        Unreadable: there is no text for us in it: empty, behind a paywall, damaged, or of another type.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if body.startswith(_PDF_MAGIC) or media_type == "application/pdf":
        from graphs.research_report.web.pdf import read_pdf

        content = read_pdf(body, reading.max_pdf_pages)
    elif media_type in _HTML or not media_type:
        content = _read_html(decoded(body, content_type))
    elif media_type in _PLAIN:
        kind: PageType = "table" if _PLAIN[media_type] == "table" else "text"
        content = Content(tidy(decoded(body, content_type)), kind)
    else:
        raise Unreadable(Why.TYPE, f"it is {media_type}")
    if len(content.text) < reading.min_chars:
        raise Unreadable(Why.EMPTY, "there is no text in it", content.declared)
    return content


def tidy(text: str) -> str:
    """Returns text in one form: NFC, no characters that show nothing, single spaces, no empty lines."""
    seen = _CONTROL.sub(" ", _UNSEEN.sub("", unicodedata.normalize("NFC", text)))
    lines = (" ".join(line.split()) for line in seen.splitlines())
    return unicodedata.normalize("NFC", "\n".join(filter(None, lines)))


def decoded(body: bytes, content_type: str) -> str:
    """Decodes a body by its byte order mark, its header, or what it declares; what cannot be decoded is replaced."""
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return body.decode(encoding, "replace")
    declared = _CHARSET.search(content_type) or _CHARSET.search(body[:_DECLARED_WITHIN_BYTES].decode("latin-1"))
    if declared:
        try:
            return body.decode(declared[1], "replace")
        except LookupError:
            pass
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _read_html(text: str) -> Content:
    # Half a second of imports, for pages alone.
    from graphs.research_report.web.markup import parse, without_hidden
    from graphs.research_report.web.metadata import read_metadata

    tree = parse(text)
    if tree is None:
        raise Unreadable(Why.EMPTY, "there is no text in it")
    metadata = read_metadata(tree)
    main = _main_text(without_hidden(tree))
    if metadata.is_paid or (len(main) < _WALL_WITHIN_CHARS and _WALL.search(main)):
        raise Unreadable(Why.PAYWALL, "only subscribers can read it", metadata.declared)
    return Content(main, _type(main, metadata), metadata.declared)


def _main_text(tree: HtmlElement) -> str:
    import trafilatura

    found = trafilatura.bare_extraction(tree, fast=True, favor_recall=True, include_comments=False, include_tables=True)
    return tidy(getattr(found, "text", None) or "")


def _type(text: str, metadata: Metadata) -> PageType:
    if metadata.is_release:
        return "release"
    n_in_tables = sum(len(line) for line in text.splitlines() if line.startswith("|"))
    return "table" if n_in_tables > len(text) / 2 else "article"
