"""What a workflow's view shows and what differs in it, for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import dumps
from agentctl.records.views import FieldChange, Reading, Shown, ShownItem, ViewChange
from agentctl.render.clean import clean, cut

if TYPE_CHECKING:
    from rich.text import Text

N_ITEMS = 10
LONGEST_LABEL = 24
SHORT = 48
"""Two sides that are no longer together stand on one line."""

VALUE = "value"
INDENT = "  "
_NONE = "-"


def value_text(shown: Shown | None) -> str:
    """Returns a labelled value as people write it; a value that its format does not fit is shown as it is."""
    if shown is None or _is_empty(shown):
        return _NONE
    value = shown.value
    if shown.format in ("money", "cents") and (amount := _number(value)) is not None:
        return _money(amount / 100 if shown.format == "cents" else amount, shown.currency)
    if shown.format == "percent" and (share := _number(value)) is not None:
        return f"{_trimmed(round(share * 100, 1))} %"
    if shown.format == "time" and (at := _time(value)) is not None:
        return at
    return _plain(value)


def _is_empty(shown: Shown) -> bool:
    return shown.value is None or shown.value == ""


def _number(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _money(amount: Decimal, currency: str) -> str:
    """Returns `1,234.50 EUR`; digits past the second are kept where they are not zeros."""
    exact = amount.normalize()
    places = max(2, -int(exact.as_tuple().exponent))
    return f"{amount:,.{places}f} {currency}".rstrip()


def _trimmed(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _time(value: object) -> str | None:
    """Returns `2026-11-30 17:04:05 UTC`, from RFC 3339 or seconds since 1970; a day alone is not a time."""
    try:
        if isinstance(value, str) and len(value) > len("2026-11-30"):
            at = datetime.fromisoformat(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            at = datetime.fromtimestamp(value, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    zone = " UTC" if at.tzinfo else ""
    return f"{(at.astimezone(UTC) if at.tzinfo else at):%Y-%m-%d %H:%M:%S}{zone}"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, list) and not any(isinstance(each, dict | list) for each in value):
        return ", ".join(map(_plain, value)) or "none"
    return dumps(value)


def reading_lines(reading: Reading, width: int, *, full: bool) -> Iterator[Text]:
    """Yields what a checkpoint shows: a line a field, a line an item; what there is none of is left out."""
    from rich.text import Text

    fields = [field for field in reading.fields if not _is_empty(field)]
    lists = [each for each in reading.lists if each.items]
    if not fields and not lists:
        return
    yield Text(reading.workflow, "dim")
    names = [field.name for field in fields] + [each.name for each in lists]
    label = min(max(map(len, names)), LONGEST_LABEL) + len(INDENT)
    for field in fields:
        yield _labelled(field.name, value_text(field), label, width, full=full)
    for entry in lists:
        shown = entry.items if full else entry.items[:N_ITEMS]
        for i, item in enumerate(shown):
            yield _labelled(entry.name if i == 0 else "", _item_text(item), label, width, full=full)
        if len(shown) < len(entry.items):
            more = f"{len(entry.items) - len(shown)} more not shown (all: --full)"
            yield Text(INDENT + " " * label + more, "dim")


def _labelled(name: str, text: str, label: int, width: int, *, full: bool) -> Text:
    from rich.text import Text

    room = 1_000_000 if full else max(width - len(INDENT) - label, 24)
    return Text(INDENT).append(f"{cut(name, LONGEST_LABEL):<{label}}", "cyan").append(cut(text, room))


def _item_text(item: ShownItem) -> str:
    return ": ".join(part for part in (_called(item.key, item.title), _facts(item.fields)) if part)


def _facts(fields: Iterable[Shown]) -> str:
    given = (field for field in fields if not _is_empty(field))
    return ", ".join(" ".join((*_label(field.name), value_text(field))) for field in given)


def _label(name: str) -> tuple[str, ...]:
    """What stands before a value of an item: its label, but for the one value that an item is all about."""
    return () if name == VALUE else (name,)


def _called(key: str | None, title: str) -> str:
    return " ".join(part for part in dict.fromkeys((key or "", title)) if part)


def label_width(changes: Sequence[ViewChange], least: int) -> int:
    """Returns the width of a column that holds the labels of changes."""
    return max([least, *(min(len(clean(change.name)), LONGEST_LABEL) + 2 for change in changes)])


def change_lines(changes: Sequence[ViewChange], width: int, label: int) -> Iterator[Text]:
    """Yields what differs, left lines with `-`, right with `+`, and `~` where both sides fit on one line.

    Args:
        changes: Of one diff.
        width: Columns.
        label: Width of the column of labels.
    """
    before = ""
    for change in changes:
        name = "" if change.name == before else change.name
        before = change.name
        for sign, text in _signed(change, width - label):
            yield signed_line(name, sign, text, width, label)
            name = ""


def signed_line(name: str, sign: str, text: str, width: int, label: int) -> Text:
    """Returns one line of a diff: a label, and what is on the side of the sign in its colour."""
    from rich.text import Text

    style = {"-": "red", "+": "green"}.get(sign, "yellow")
    shown = f"{cut(name, label - 1):<{label}}"
    return Text().append(shown, "dim").append(cut(f"{sign} {text}", max(width - label, 24)), style)


def _signed(change: ViewChange, room: int) -> Iterator[tuple[str, str]]:
    """Yields the signed texts of one change."""
    called = _called(change.key, change.title)
    if change.side != "both":
        sign = "-" if change.side == "left" else "+"
        facts = _facts(shown for each in change.fields if (shown := each.left or each.right))
        together = ": ".join(part for part in (called, facts) if part)
        if len(together) + 2 <= room or len(called) <= LONGEST_LABEL:
            yield sign, together
        else:
            yield from ((sign, called), (sign, INDENT + facts))
        return
    for each in change.fields:
        of_item = () if change.key is None else (change.key or change.title, *_label(each.name))
        yield from _both(each, f"{' '.join(of_item)}: " if of_item else "", room)


def _both(change: FieldChange, before: str, room: int) -> Iterator[tuple[str, str]]:
    left, right = (None if side is None or _is_empty(side) else clean(value_text(side)) for side in change.sides)
    if left is not None and right is not None and len(left) + len(right) <= SHORT:
        together = f"{before}{left} -> {right}"
        if len(together) + 2 <= room:
            yield "~", together
            return
    if left is not None:
        yield "-", before + left
    if right is not None:
        yield "+", before + right


def reading_document(reading: Reading | None) -> dict[str, object]:
    """Returns a reading as an object; its lists are empty without a view."""
    fields = reading.fields if reading else ()
    lists = reading.lists if reading else ()
    return {
        "workflow": reading.workflow if reading else None,
        "fields": [_shown(field) for field in fields],
        "lists": [{"name": each.name, "items": [_item(item) for item in each.items]} for each in lists],
    }


def _item(item: ShownItem) -> dict[str, object]:
    return {"key": item.key, "title": item.title, "fields": [_shown(field) for field in item.fields]}


def _shown(shown: Shown) -> dict[str, object]:
    return {"name": shown.name, "value": shown.value, "text": _text_or_none(shown)}


def _text_or_none(shown: Shown | None) -> str | None:
    return None if shown is None or _is_empty(shown) else value_text(shown)


def change_document(change: ViewChange) -> dict[str, object]:
    """Returns a change of a view as an object; values that one side has not are null."""
    return {
        "name": change.name,
        "key": change.key,
        "title": change.title,
        "side": change.side,
        "fields": [
            {
                "name": each.name,
                "left": each.left.value if each.left else None,
                "right": each.right.value if each.right else None,
                "left_text": _text_or_none(each.left),
                "right_text": _text_or_none(each.right),
            }
            for each in change.fields
        ],
    }


def reading_plain(reading: Reading) -> Iterator[Sequence[str]]:
    """Yields `view NAME` and a field's text, or `view NAME KEY` and what an item shows; whole."""
    for field in reading.fields:
        if not _is_empty(field):
            yield f"view {field.name}", value_text(field)
    for entry in reading.lists:
        for item in entry.items:
            said = ": ".join(part for part in (item.title, _facts(item.fields)) if part)
            yield f"view {entry.name} {item.key}".rstrip(), said


def change_plain(change: ViewChange) -> Iterator[Sequence[str | None]]:
    """Yields `view`, sign, label (and key of the item, and label in it), left and right text, a row a value."""
    sign = {"left": "-", "right": "+", "both": "~"}[change.side]
    name = change.name if change.key is None else f"{change.name} {change.key}".rstrip()
    for each in change.fields:
        full = name if change.key is None else f"{name} {each.name}"
        yield "view", sign, full, _text_or_none(each.left), _text_or_none(each.right)
    if not change.fields:
        yield "view", sign, name, *((change.title, None) if change.side == "left" else (None, change.title))
