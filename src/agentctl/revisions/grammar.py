"""The grammar of revisions: text to a small tree and back.

    REV   = ATOM { ~[n] }
    ATOM  = head | root | ID | step:N | before:NODE[:k] | after:NODE[:k] | call:NAME_OR_ID[:k]
          | interrupt[:k] | error[:k] | at:TIME
    range = A..B | A...B

A name that would be misread (it holds `@`, `..`, or ends in `:2` or `~2`) is written as a JSON string: `before:"a~2"`.
`str()` of a tree is its canonical text, which parses to an equal tree.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from agentctl.errors import RevisionSyntaxError, UsageError
from agentctl.revisions.times import parse_time

Span = tuple[int, int]

ATOMS: Final = (
    "head, root, an id (full, or its last 4 or more hex digits), step:N, before:NODE[:k], after:NODE[:k], "
    "call:NAME_OR_ID[:k], interrupt[:k], error[:k], at:TIME; each may be followed by ~n"
)

_BARE: Final = ("head", "root", "interrupt", "error")
_VALUED: Final = {
    "step": "step:N",
    "before": "before:NODE",
    "after": "after:NODE",
    "call": "call:NAME_OR_ID",
    "at": "at:TIME",
}
_HOPS = re.compile(r"(?:~\d{0,9})+$")
_HOP = re.compile(r"~(\d*)")
_ID_CHAR = re.compile(r"[A-Za-z0-9_.\-]")
_OCCURRENCE = re.compile(r":([+-]?\d{1,9})$")
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest checkpoint of the branch."""

    def __str__(self) -> str:
        return "head"


@dataclass(frozen=True, slots=True)
class Root:
    """The oldest checkpoint of the lineage."""

    def __str__(self) -> str:
        return "root"


@dataclass(frozen=True, slots=True)
class Id:
    """A full checkpoint id, or a suffix of one."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Step:
    """A super-step number; -1 is the input."""

    number: int

    def __str__(self) -> str:
        return f"step:{self.number}"


@dataclass(frozen=True, slots=True)
class Visit:
    """A node about to run (`before`) or just run (`after`). `k` counts visits from 1, or from -1 at the end."""

    side: Literal["before", "after"]
    node: str
    k: int | None = None

    def __str__(self) -> str:
        return f"{self.side}:{_quoted(self.node, colons=True)}{_occurrence(self.k)}"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call by tool name or call id. `k` counts its occurrences from 1, or from -1 at the end."""

    name: str
    k: int | None = None

    def __str__(self) -> str:
        return f"call:{_quoted(self.name, colons=False)}{_occurrence(self.k)}"


@dataclass(frozen=True, slots=True)
class Stop:
    """A checkpoint whose step stopped to ask (`interrupt`) or failed (`error`)."""

    kind: Literal["interrupt", "error"]
    k: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}{_occurrence(self.k)}"


@dataclass(frozen=True, slots=True)
class At:
    """The last checkpoint not later than a time; the text was checked and is read against the clock on resolving."""

    time: str

    def __str__(self) -> str:
        return f"at:{self.time}"


Atom = Head | Root | Id | Step | Visit | Call | Stop | At


@dataclass(frozen=True, slots=True)
class Revision:
    """One checkpoint: an atom and how many parents above it. `span` is where it stood in the text it came from."""

    atom: Atom
    parents: int = 0
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        hops = "" if self.parents == 0 else "~" if self.parents == 1 else f"~{self.parents}"
        return f"{self.atom}{hops}"


@dataclass(frozen=True, slots=True)
class Range:
    """`left..right`: after `left` up to `right`. `left...right` (`symmetric`): both sides since they parted."""

    left: Revision
    right: Revision
    symmetric: bool = False
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        return f"{self.left}{'...' if self.symmetric else '..'}{self.right}"


HEAD: Final = Revision(Head())


def parse_revision(text: str, *, start: int = 0) -> Revision:
    """Returns the revision that `text[start:]` spells.

    Args:
        text: What the user typed; errors underline a part of it.
        start: Where the revision begins in it.

    Raises:
        RevisionSyntaxError: not a revision, or a range.
    """
    parsed = parse_expression(text, start=start)
    if isinstance(parsed, Range):
        raise RevisionSyntaxError(
            "one checkpoint is wanted here, not a range",
            text=text,
            span=parsed.span,
            hint='history, diff and export take ranges; a name that holds ".." is written in double quotes',
        )
    return parsed


def parse_expression(text: str, *, start: int = 0) -> Revision | Range:
    """Returns the revision or range that `text[start:]` spells.

    Raises:
        RevisionSyntaxError: neither; `span` is the part at fault.
    """
    dots = _find_dots(text, start)
    if dots is None:
        return _revision(text, start, len(text))
    first, last = dots
    if last - first > 3:
        raise _error(text, (first, last), "a range has two or three dots")
    for side, span in (("left", (start, first)), ("right", (last, len(text)))):
        if span[0] == span[1]:
            raise _error(text, (first, last), f"the range has no {side} side", hint="write both, such as root..head")
    if (again := _find_dots(text, last)) is not None:
        raise _error(text, again, "a range has two sides")
    return Range(
        _revision(text, start, first),
        _revision(text, last, len(text)),
        symmetric=last - first == 3,
        span=(start, len(text)),
    )


def parse_call(text: str) -> Call:
    """Returns the call that `NAME_OR_ID[:k]` names, as it stands after `call:`; a text that is no such is a name."""
    try:
        rev = parse_revision(f"call:{text}")
    except RevisionSyntaxError:
        return Call(text)
    return rev.atom if isinstance(rev.atom, Call) and not rev.parents else Call(text)


def _find_dots(text: str, start: int) -> Span | None:
    """Finds the first run of two or more dots outside a quoted name."""
    position = start
    while position < len(text):
        if text[position] == '"' and position > start and text[position - 1] == ":":
            quoted = _read_quoted(text, position)
            position = quoted[1] if quoted else position + 1
        elif text.startswith("..", position):
            end = position
            while end < len(text) and text[end] == ".":
                end += 1
            return position, end
        else:
            position += 1
    return None


def _revision(text: str, start: int, end: int) -> Revision:
    if start == end:
        raise _error(text, (start, end), "a revision is missing")
    match = _HOPS.search(text[start:end])
    hops_at = start + match.start() if match else end
    if hops_at == start:
        raise _error(text, (start, end), "~n needs a revision before it", hint="such as head~2")
    hops = _HOP.findall(text[hops_at:end])
    return Revision(_atom(text, start, hops_at), parents=sum(int(n) if n else 1 for n in hops), span=(start, end))


def _atom(text: str, start: int, end: int) -> Atom:
    body = text[start:end]
    keyword, colon, value = body.partition(":")
    value_at = start + len(keyword) + 1
    if not colon:
        return _word(text, start, end)
    match keyword:
        case "step":
            return Step(_integer(text, value_at, end, "step:N wants the number of a super-step, -1 for the input"))
        case "before" | "after":
            node, k = _name(text, value_at, end, keyword)
            return Visit(keyword, node, k)
        case "call":
            name, k = _name(text, value_at, end, keyword)
            return Call(name, k)
        case "interrupt" | "error":
            return Stop(keyword, _nonzero(text, value_at, end))
        case "at":
            return _at(text, value_at, end)
        case "head" | "root":
            raise _error(text, (value_at - 1, end), f"{keyword} takes nothing after it")
    near = difflib.get_close_matches(keyword.lower(), [*_VALUED, "interrupt", "error"], n=1)
    hint = f"did you mean {near[0]}:{value}? Revisions are {ATOMS}" if near else None
    raise _error(text, (start, value_at - 1), f"unknown revision {keyword}:", hint=hint)


def _word(text: str, start: int, end: int) -> Atom:
    body = text[start:end]
    match body:
        case "head":
            return Head()
        case "root":
            return Root()
        case "interrupt" | "error":
            return Stop(body)
    if body in _VALUED:
        raise _error(text, (start, end), f"{body} needs a value: {_VALUED[body]}")
    if body.lower() in (*_BARE, *_VALUED):
        raise _error(text, (start, end), f"unknown revision {body}", hint=f"did you mean {body.lower()}?")
    bad = next((i for i in range(start, end) if not _ID_CHAR.fullmatch(text[i])), None)
    if bad is None:
        bad = next((i for i in (start, end - 1) if text[i] == "."), None)
    if bad is not None:
        raise _error(text, (bad, bad + 1), f"{text[bad]!r} cannot stand in an id")
    return Id(body)


def _name(text: str, start: int, end: int, keyword: str) -> tuple[str, int | None]:
    """Reads `NAME[:k]` or `"NAME"[:k]`."""
    what = _VALUED[keyword]
    if start == end:
        raise _error(text, (start - len(keyword) - 1, end), f"{keyword}: needs a value: {what}")
    if text[start] == '"':
        return _quoted_name(text, start, end)
    match = _OCCURRENCE.search(text, start, end)
    k = int(match.group(1)) if match else None
    if keyword == "call" and k == 0:
        match = k = None
    if match and k == 0:
        raise _error(text, (match.start() + 1, end), "occurrences are counted from 1, or from -1 at the end")
    name_end = match.start() if match else end
    name = text[start:name_end]
    if not name:
        raise _error(text, (start, end), f"{keyword}: needs a value: {what}")
    bad = next((char for char in '@"' if char in name), None)
    if bad is None and keyword != "call" and ":" in name:
        colon = text.index(":", start)
        if colon == text.rindex(":", start, name_end):
            raise _error(text, (colon + 1, end), f"the occurrence of {keyword}:NODE:k is a number")
        bad = ":"
    if bad is not None:
        at = text.index(bad, start)
        hint = f"write the name in double quotes: {keyword}:{json.dumps(name, ensure_ascii=False)}"
        raise _error(text, (at, at + 1), f"a name that holds {bad} is quoted", hint=hint)
    return name, k


def _quoted_name(text: str, start: int, end: int) -> tuple[str, int | None]:
    quoted = _read_quoted(text, start)
    if quoted is None or quoted[1] > end:
        raise _error(text, (start, end), "the quoted name is not a JSON string", hint='such as before:"my node"')
    name, after = quoted
    if not name:
        raise _error(text, (start, after), "the name is empty")
    if after == end:
        return name, None
    if text[after] != ":":
        raise _error(text, (after, end), "only :k may follow a quoted name")
    return name, _nonzero(text, after + 1, end)


def _read_quoted(text: str, start: int) -> tuple[str, int] | None:
    """Reads a JSON string at `start`; returns it and where it ends, or None."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return None
    return (value, end) if isinstance(value, str) else None


def _at(text: str, start: int, end: int) -> At:
    try:
        parse_time(text[start:end], _ANY_TIME)
    except UsageError as exc:
        raise _error(text, (start, end), exc.message, hint=exc.hint) from exc
    return At(text[start:end])


def _integer(text: str, start: int, end: int, wanted: str) -> int:
    body = text[start:end]
    if not re.fullmatch(r"[+-]?\d{1,9}", body):
        raise _error(text, (start, end), wanted)
    return int(body)


def _nonzero(text: str, start: int, end: int) -> int:
    k = _integer(text, start, end, "the occurrence after the colon is a number")
    if k == 0:
        raise _error(text, (start, end), "occurrences are counted from 1, or from -1 at the end")
    return k


def _error(text: str, span: Span, message: str, *, hint: str | None = None) -> RevisionSyntaxError:
    return RevisionSyntaxError(message, text=text, span=span, hint=hint or f"revisions are {ATOMS}")


def _occurrence(k: int | None) -> str:
    return "" if k is None else f":{k}"


def _quoted(name: str, *, colons: bool) -> str:
    """Returns the name as it is written: in quotes where it would be read otherwise."""
    misread = (
        any(char in name for char in '@"')
        or ".." in name
        or name.startswith(".")
        or name.endswith(".")
        or (colons and ":" in name)
        or _OCCURRENCE.search(name)
        or _HOPS.search(name)
        or not name.isprintable()
    )
    return json.dumps(name, ensure_ascii=False) if misread else name
