"""HTML without what a reader never sees: scripts, styles, comments, and elements that are hidden."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from graphs.research_report.web.pages import Unreadable, Why
from graphs.research_report.web.stylesheets import Hidden, hidden_by, hides

_NEVER_SHOWN = frozenset(
    {
        "script",
        "style",
        "noscript",
        "template",
        "iframe",
        "object",
        "embed",
        "svg",
        "canvas",
        "audio",
        "video",
        "dialog",
    }
)


def parse(text: str, max_elements: int) -> HtmlElement:
    """Parses a page.

    Args:
        text: The page, decoded.
        max_elements: How many it may have: extraction takes a second for some ten thousand.

    Raises:
        Unreadable: nothing is left of it, or it has too many elements.
    """
    # Bytes and an explicit encoding: lxml refuses a str that declares one.
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=False)
    try:
        tree = document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        raise Unreadable(Why.EMPTY, "there is no text in it") from error
    if sum(1 for _ in tree.iter()) > max_elements:
        raise Unreadable(Why.SIZE, f"it has more than {max_elements} elements")
    return tree


def without_hidden(tree: HtmlElement) -> HtmlElement:
    """Removes, in place, what a reader never sees, and returns the tree.

    Hidden is what the element itself, its inline style or a style sheet inside the page hides; style sheets that the
    page would load are not loaded.
    """
    hidden = hidden_by(style.text or "" for style in tree.iter("style"))
    for element in [each for each in tree.iter(etree.Element) if _is_hidden(each, hidden)]:
        # `drop_tree` keeps the text behind the element; a root has no parent to drop it from.
        if element.getparent() is not None:
            element.drop_tree()
    return tree


def _is_hidden(element: HtmlElement, hidden: Hidden) -> bool:
    tag = str(element.tag).lower()
    return (
        tag in _NEVER_SHOWN
        or "hidden" in element.attrib
        or element.get("aria-hidden") == "true"
        or hides(element.get("style", ""))
        or hidden.covers(tag, _marks(element))
    )


def _marks(element: HtmlElement) -> Iterator[str]:
    yield from (f".{name}" for name in element.get("class", "").split())
    if name := element.get("id"):
        yield f"#{name}"
