"""HTML without what a reader never sees: scripts, styles, comments, and elements that are hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

_NEVER_SHOWN = (
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
)
_NEVER_SHOWN_XPATH = " | ".join(f"//{tag}" for tag in _NEVER_SHOWN) + " | //input[@type='hidden']"
_HIDDEN_XPATH = "//*[@hidden or @aria-hidden='true']"
_HIDING = re.compile(
    r"display:none|visibility:(hidden|collapse)|content-visibility:hidden|opacity:0*(\.0+)?%?(;|!|$)"
    r"|font-size:0*(\.0+)?(px|em|rem|pt|%)?(;|!|$)|(text-indent|left|top|right|margin-left|margin-top):-\d{3,}"
    r"|clip:rect\(0|clip-path:(inset\((50|100)%|circle\(0)|transform:scale\(0\)|color:transparent"
)
_NO_SIZE = re.compile(r"(^|;)(max-)?(height|width):0(px|em|rem|%)?(;|!|$)")
_OVERFLOW = re.compile(r"overflow(-[xy])?:(hidden|clip)")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_AT_BLOCK = re.compile(r"@[^{;]*(;|\{(?:[^{}]*\{[^{}]*\})*[^{}]*\})")
_SIMPLE = re.compile(r"(?P<tag>[a-z][a-z0-9]*)?(?P<marks>([.#][\w-]+)*)", re.IGNORECASE)


def parse(text: str) -> HtmlElement | None:
    """Parses a page; None where nothing is left of it.

    Args:
        text: The page, decoded.
    """
    # Bytes and an explicit encoding: lxml refuses a str that declares one.
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=False)
    try:
        tree = document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return None
    return tree if isinstance(tree, HtmlElement) else None


def without_hidden(tree: HtmlElement) -> HtmlElement:
    """Removes, in place, what a reader never sees, and returns the tree.

    Hidden is what the element itself, its inline style or a style sheet inside the page hides; style sheets that the
    page would load are not loaded.
    """
    hidden_selectors = list(_hiding_selectors(tree))
    for element in tree.xpath(_NEVER_SHOWN_XPATH):
        _drop(element)
    for element in tree.xpath(_HIDDEN_XPATH):
        _drop(element)
    for element in tree.xpath("//*[@style]"):
        if hides(element.get("style", "")):
            _drop(element)
    for selector in hidden_selectors:
        for element in tree.xpath(selector):
            _drop(element)
    return tree


def hides(declarations: str) -> bool:
    """Tells whether CSS declarations make an element invisible."""
    text = re.sub(r"\s+", "", _COMMENT.sub("", declarations)).lower()
    return bool(_HIDING.search(text) or (_NO_SIZE.search(text) and _OVERFLOW.search(text)))


def _hiding_selectors(tree: HtmlElement) -> Iterator[str]:
    for style in tree.xpath("//style"):
        # Rules inside @media and its like hold for some readers only.
        sheet = _AT_BLOCK.sub("", _COMMENT.sub("", style.text or ""))
        for selectors, declarations in _RULE.findall(sheet):
            if hides(declarations):
                yield from filter(None, map(_xpath, selectors.split(",")))


def _xpath(selector: str) -> str | None:
    """Returns the XPath of a selector of one element, None for a relation between several."""
    found = _SIMPLE.fullmatch(selector.strip())
    if found is None or not found[0] or (found["tag"] or "").lower() in ("html", "body"):
        return None
    conditions = "".join(
        f"[@id='{mark[1:]}']"
        if mark.startswith("#")
        else f"[contains(concat(' ', normalize-space(@class), ' '), ' {mark[1:]} ')]"
        for mark in re.findall(r"[.#][\w-]+", found["marks"])
    )
    return f"//{(found['tag'] or '*').lower()}{conditions}"


def _drop(element: HtmlElement) -> None:
    # `drop_tree` keeps the text behind the element; a root has no parent to drop it from.
    if element.getparent() is not None:
        element.drop_tree()
