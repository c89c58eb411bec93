"""From a body to its text: HTML, plain text, tables and PDF."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from graphs.research_report.web.pages import Content, PageType, Unreadable, Why

if TYPE_CHECKING:
    from configparser import ConfigParser

    from lxml.html import HtmlElement

    from graphs.research_report.web.metadata import Metadata

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PLAIN = {"text/plain": "text", "text/csv": "table"}
_PDF_MAGIC = b"%PDF-"
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
# The encodings of the web: Python knows others that nobody sends but to make a reader work, as punycode.
_CHARSETS = re.compile(
    r"utf-?8|utf-?16(le|be)?|iso-?8859-(1[013-6]?|[2-9])|(windows-|cp)125[0-8]|koi8-[ru]|shift[_-]?jis|euc-(jp|kr)|iso-2022-jp"
    r"|gb(k|2312|18030)|big5",
    re.IGNORECASE,
)
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_DECLARED_WITHIN_BYTES = 1024
# Characters that show nothing: zero-width ones, direction overrides, soft hyphens, tags that spell hidden text.
# Joiners too: the extraction drops them anyway.
_UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
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
        max_elements: A page of HTML with more is too large.
        max_pdf_pages: A PDF with more is too large.
    """

    min_chars: int = 40
    max_elements: int = 20_000
    max_pdf_pages: int = 100


def read(body: bytes, content_type: str, reading: Reading, check_time: Callable[[], object]) -> Content:
    """Reads a body.

    Args:
        body: The bytes, decompressed.
        content_type: The header, '' where there was none.
        reading: What is taken.
        check_time: Called between the pages of a PDF; what it raises ends the reading.

    Raises:
        Unreadable: there is no text for us in it: empty, behind a paywall, damaged, or of another type.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if body.startswith(_PDF_MAGIC) or media_type == "application/pdf":
        from graphs.research_report.web.pdf import read_pdf

        content = read_pdf(body, reading.max_pdf_pages, check_time)
    elif media_type in _HTML or not media_type:
        content = _read_html(decoded(body, content_type), reading.max_elements)
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
    if declared and _CHARSETS.fullmatch(declared[1]):
        return body.decode(declared[1], "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _read_html(text: str, max_elements: int) -> Content:
    # Half a second of imports, for pages alone.
    from graphs.research_report.web.markup import parse, without_hidden
    from graphs.research_report.web.metadata import read_metadata

    # Some control characters make the parser drop all that follows.
    tree = parse(_CONTROL.sub(" ", text), max_elements)
    metadata = read_metadata(tree)
    main = _main_text(without_hidden(tree))
    if metadata.is_paid or (len(main) < _WALL_WITHIN_CHARS and _WALL.search(main)):
        raise Unreadable(Why.PAYWALL, "only subscribers can read it", metadata.declared)
    return Content(main, _type(main, metadata), metadata.declared)


def _main_text(tree: HtmlElement) -> str:
    import trafilatura

    found = trafilatura.bare_extraction(
        tree, fast=True, favor_recall=True, include_comments=False, include_tables=True, config=_extraction()
    )
    return tidy(getattr(found, "text", None) or "")


@cache
def _extraction() -> ConfigParser:
    """Returns how main content is told.

    By default a page with less than 250 characters counts as failed: then all of its text is taken, navigation and
    all, and its tables fall apart. Source: settings.cfg, core.py (trafilatura 2.3.1).
    """
    from trafilatura.settings import use_config

    config = use_config()
    config.set("DEFAULT", "MIN_EXTRACTED_SIZE", "40")
    return config


def _type(text: str, metadata: Metadata) -> PageType:
    if metadata.is_release:
        return "release"
    n_in_tables = sum(len(line) for line in text.splitlines() if line.startswith("|"))
    return "table" if n_in_tables > len(text) / 2 else "article"
