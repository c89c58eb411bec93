"""What a page declares of itself: title, publisher, date of publication, kind, and whether it must be paid for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from lxml.html import HtmlElement

from graphs.research_report.web.pages import Declared

MAX_CHARS = 300
_DATES = (
    "article:published_time",
    "dc.date.issued",
    "dcterms.issued",
    "dc.date",
    "citation_publication_date",
    "publication_date",
    "pubdate",
    "date",
)
_PUBLISHERS = ("og:site_name", "dc.publisher", "citation_publisher", "publisher", "application-name")
_KINDS = ("genre", "dc.type", "article:section", "category")
_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)")
_RELEASE = re.compile(r"press[ -]?release|news ?release|media release", re.IGNORECASE)
_FREE_TYPES = frozenset({"article", "newsarticle", "report", "webpage", "blogposting", "dataset"})


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a page declares.

    Attributes:
        declared: Title, publisher, date.
        is_release: Whether it calls itself a press release.
        is_paid: Whether it says that its text is not free to read.
    """

    declared: Declared
    is_release: bool
    is_paid: bool


def read_metadata(tree: HtmlElement) -> Metadata:
    """Reads what a page declares, from its JSON-LD, its meta elements and its title. The tree is left as it is."""
    meta, linked = _meta(tree), list(_linked(tree))
    article = next((each for each in linked if _types(each) & _FREE_TYPES), {})
    title = meta.get("og:title") or _text(article.get("headline")) or _first(tree, "//h1") or _first(tree, "//title")
    publisher = _name(article.get("publisher")) or _any(meta, _PUBLISHERS)
    published = [_text(article.get("datePublished")), *(meta.get(name) for name in _DATES), _time(tree)]
    kinds = [_text(article.get("genre")), *(meta.get(name) for name in _KINDS)]
    return Metadata(
        Declared(_short(title), _short(publisher), next(filter(None, map(as_date, published)), None)),
        is_release=any(_RELEASE.search(kind) for kind in kinds if kind),
        is_paid=any(_is_false(each.get("isAccessibleForFree")) for each in linked)
        or meta.get("article:content_tier") == "locked",
    )


def as_date(text: str | None) -> date | None:
    """Returns the date that a text begins with, None where it is none."""
    found = _DATE.match(text.strip()) if text else None
    try:
        return date(int(found[1]), int(found[2]), int(found[3])) if found else None
    except ValueError:
        return None


def _meta(tree: HtmlElement) -> dict[str, str]:
    """Returns meta elements by lower-case name; of a repeated one the first."""
    found: dict[str, str] = {}
    for element in tree.xpath("//meta[@content]"):
        name = element.get("property") or element.get("name") or element.get("itemprop")
        if name and element.get("content").strip():
            found.setdefault(name.strip().lower(), element.get("content"))
    return found


def _linked(tree: HtmlElement) -> Iterator[Mapping[str, Any]]:
    for element in tree.xpath("//script[@type='application/ld+json']"):
        try:
            document = json.loads(element.text or "")
        except (ValueError, RecursionError):
            continue
        documents = document if isinstance(document, list) else [document]
        for each in documents:
            if isinstance(each, Mapping):
                graph = each.get("@graph")
                yield from filter(_is_mapping, graph if isinstance(graph, list) else [each])


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _types(linked: Mapping[str, Any]) -> set[str]:
    named = linked.get("@type")
    return {str(name).lower() for name in (named if isinstance(named, list) else [named])}


def _name(value: object) -> str | None:
    return _text(value.get("name")) if isinstance(value, Mapping) else _text(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _is_false(value: object) -> bool:
    return value is False or (isinstance(value, str) and value.lower() == "false")


def _any(meta: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((meta[name] for name in names if name in meta), None)


def _first(tree: HtmlElement, path: str) -> str | None:
    return next((text for element in tree.xpath(path) if (text := element.text_content().strip())), None)


def _time(tree: HtmlElement) -> str | None:
    found = tree.xpath("//time[@pubdate or @itemprop='datePublished']/@datetime")
    return str(found[0]) if found else None


def _short(text: str | None) -> str | None:
    return " ".join(text.split())[:MAX_CHARS] or None if text else None
