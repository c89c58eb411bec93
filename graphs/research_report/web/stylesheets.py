"""Which elements the style sheets inside a page hide; in time that grows with their length alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_HIDING = re.compile(
    r"display:none|visibility:(hidden|collapse)|content-visibility:hidden|opacity:0*(\.0+)?%?(;|!|$)"
    r"|font-size:0*(\.0+)?(px|em|rem|pt|%)?(;|!|$)|(text-indent|left|top|right|margin-left|margin-top):-\d{3,}"
    r"|clip:rect\(0|clip-path:(inset\((50|100)%|circle\(0)|transform:scale\(0\)|color:transparent"
)
_NO_SIZE = re.compile(r"(^|;)(max-)?(height|width):0(px|em|rem|%)?(;|!|$)")
_OVERFLOW = re.compile(r"overflow(-[xy])?:(hidden|clip)")
_BRACE = re.compile("[{}]")
_SIMPLE = re.compile(r"([a-z][a-z0-9]*)?((?:[.#][\w-]+)*)", re.IGNORECASE)
_MARK = re.compile(r"[.#][\w-]+")
_WHOLE_PAGE = frozenset({"html", "body"})


def hides(declarations: str) -> bool:
    """Tells whether CSS declarations make an element invisible."""
    text = "".join(_without_comments(declarations).split()).lower()
    return bool(_HIDING.search(text) or (_NO_SIZE.search(text) and _OVERFLOW.search(text)))


@dataclass(frozen=True, slots=True)
class Selector:
    """A selector of one element by itself.

    Attributes:
        tag: Its name in lower case, '' for any.
        marks: Its classes with a dot and its id with a hash, all of which it has.
    """

    tag: str
    marks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Hidden:
    """The selectors of what is hidden, by one of their marks, '' for those of a tag alone."""

    by_mark: Mapping[str, frozenset[Selector]]

    def covers(self, tag: str, marks: Iterable[str]) -> bool:
        """Tells whether an element is hidden.

        Args:
            tag: Its name in lower case.
            marks: Its classes with a dot and its id with a hash.
        """
        own = frozenset(marks)
        candidates = (selector for mark in (*own, "") for selector in self.by_mark.get(mark, ()))
        return any(selector.tag in ("", tag) and selector.marks <= own for selector in candidates)


def hidden_by(sheets: Iterable[str]) -> Hidden:
    """Returns what style sheets hide for every reader: rules inside @media and its like are left out.

    Selectors that relate several elements are left out too.
    """
    by_mark: dict[str, set[Selector]] = {}
    for sheet in sheets:
        for selectors, declarations in _rules(_without_comments(sheet)):
            if hides(declarations):
                for selector in filter(None, map(_selector, selectors.split(","))):
                    by_mark.setdefault(min(selector.marks, default=""), set()).add(selector)
    return Hidden({mark: frozenset(selectors) for mark, selectors in by_mark.items()})


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Splits a sheet into the selectors and declarations of its outermost rules; what begins with @ selects nothing."""
    depth, start, selectors = 0, 0, ""
    for brace in _BRACE.finditer(sheet):
        if brace[0] == "{":
            if depth == 0:
                # Statements such as @import end before it.
                selectors = sheet[start : brace.start()].rpartition(";")[2].strip()
                start = brace.end()
            depth += 1
        elif depth > 0:
            depth -= 1
            if depth == 0:
                yield selectors, sheet[start : brace.start()]
                start = brace.end()


def _selector(text: str) -> Selector | None:
    found = _SIMPLE.fullmatch(text.strip())
    if found is None or not found[0] or (found[1] or "").lower() in _WHOLE_PAGE:
        return None
    return Selector((found[1] or "").lower(), frozenset(_MARK.findall(found[2])))


def _without_comments(text: str) -> str:
    kept, at = [], 0
    while (start := text.find("/*", at)) >= 0:
        kept.append(text[at:start])
        end = text.find("*/", start + 2)
        at = len(text) if end < 0 else end + 2
    return "".join([*kept, text[at:]])
