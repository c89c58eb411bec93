"""A checkpoint's values read in its workflow's words, and two such readings compared."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import jmespath
from jmespath.exceptions import JMESPathError

from agentctl.codec.inert import TYPE, VALUE
from agentctl.experiments.comparing.diff import Tip
from agentctl.experiments.comparing.values_diff import same
from agentctl.experiments.comparing.view_functions import OPTIONS
from agentctl.records.diffs import Diff
from agentctl.records.views import (
    FieldChange,
    FieldView,
    ListView,
    Reading,
    Shown,
    ShownItem,
    ShownList,
    View,
    ViewChange,
    is_code,
)


def in_words(found: Diff, left: Tip, right: Tip, view: View | None) -> Diff:
    """Returns a diff that also says what differs in the workflow's words; as it is without a view."""
    if view is None:
        return found
    sides = read_view_of(view, left.values), read_view_of(view, right.values)
    problems = tuple(dict.fromkeys(problem for side in sides for problem in side.problems))
    return replace(found, view=tuple(compare(*sides)), view_problems=problems)


def read_view_of(view: View, values: Mapping[str, object]) -> Reading:
    """Returns what a view shows of inert channel values; an expression that does not fit them shows nothing."""
    reader = _Reader(view.workflow)
    fields = tuple(reader.field(field, values, field.name) for field in view.fields)
    lists = tuple(reader.list(each, values) for each in view.lists)
    return Reading(view.workflow, fields, lists, tuple(dict.fromkeys(reader.problems)))


def compare(left: Reading, right: Reading) -> Iterator[ViewChange]:
    """Yields what differs between two readings of one view: fields, then each list's items.

    Items are paired by key, those of an equal key in their order; where they stand in the list does not count.
    """
    for one, other in zip(left.fields, right.fields, strict=True):
        if change := _field_change(one, other):
            yield ViewChange(one.name, None, "", "both", (change,), one.path)
    for ours, theirs in zip(left.lists, right.lists, strict=True):
        yield from _compare_items(ours, theirs)


def _compare_items(left: ShownList, right: ShownList) -> Iterator[ViewChange]:
    waiting: dict[str, deque[ShownItem]] = defaultdict(deque)
    for item in right.items:
        waiting[item.key].append(item)
    for item in left.items:
        if not waiting[item.key]:
            yield ViewChange(left.name, item.key, item.title, "left", _all_of(item, "left"), left.path)
            continue
        other = waiting[item.key].popleft()
        pairs = zip(item.fields, other.fields, strict=True)
        if changes := tuple(change for pair in pairs if (change := _field_change(*pair))):
            yield ViewChange(left.name, item.key, other.title, "both", changes, left.path)
    added = {id(item) for queue in waiting.values() for item in queue}
    for item in right.items:
        if id(item) in added:
            yield ViewChange(left.name, item.key, item.title, "right", _all_of(item, "right"), left.path)


def _field_change(left: Shown, right: Shown) -> FieldChange | None:
    sides = _or_none(left), _or_none(right)
    if sides == (None, None) or (same(left.value, right.value) and left.currency == right.currency):
        return None
    return FieldChange(*sides)


def _or_none(shown: Shown) -> Shown | None:
    """Returns what is shown, None for nothing: no value, or an empty text."""
    return None if shown.value in (None, "") else shown


def _all_of(item: ShownItem, side: str) -> tuple[FieldChange, ...]:
    given = [shown for shown in item.fields if _or_none(shown)]
    return tuple(FieldChange(each, None) if side == "left" else FieldChange(None, each) for each in given)


class _Reader:
    """Evaluates the expressions of one view, and notes those that the values do not fit."""

    def __init__(self, workflow: str) -> None:
        self._workflow = workflow
        self.problems: list[str] = []

    def field(self, field: FieldView, data: object, name: str, state: object = None) -> Shown:
        """Returns a field of `data`; of an item of a list, its currency may stand in the `state` instead."""
        currency = field.currency
        if currency and not is_code(currency):
            found = self._search(currency, data, name) or self._search(currency, state, name)
            currency = found if isinstance(found, str) else ""
        value = self._search(field.path, data, name)
        return Shown(field.name, value, field.format, currency, plain_path(field.path))

    def list(self, view: ListView, values: Mapping[str, object]) -> ShownList:
        found = self._search(view.items, values, view.name, inert=True)
        if found is not None and not isinstance(found, list):
            self._note(view.name, f"{view.items} is no list")
            found = None
        items = [item for item in found or () if item is not None]
        shown = tuple(self._item(view, item, place, values) for place, item in enumerate(items, start=1))
        return ShownList(view.name, shown, plain_path(view.items, of_list=True))

    def _item(self, view: ListView, item: object, place: int, state: object) -> ShownItem:
        key = self._search(view.key, item, view.name) if view.key else place
        title = self._search(view.title, item, view.name) if view.title else None
        fields = tuple(self.field(field, item, f"{view.name}.{field.name}", state) for field in view.fields)
        return ShownItem(_as_text(key), _as_text(title), fields)

    def _search(self, expression: str, data: object, name: str, *, inert: bool = False) -> object:
        try:
            found: object = jmespath.compile(expression).search(data, options=OPTIONS)
        except (JMESPathError, RecursionError) as error:
            self._note(name, " ".join(str(error).split()))
            return None
        return found if inert else _bare(found)

    def _note(self, name: str, reason: str) -> None:
        self.problems.append(f"view of {self._workflow}: {name}: {reason}")


def _bare(value: object) -> object:
    """Returns an inert value without the marks of its types: a decimal is its text, a model its fields."""
    if isinstance(value, Mapping):
        if VALUE in value and TYPE in value:
            return _bare(value[VALUE])
        return {key: _bare(each) for key, each in value.items() if key != TYPE}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else " ".join(map(_as_text, _parts(value)))


def _parts(value: object) -> Sequence[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else [str(value)]


def plain_path(expression: str, *, of_list: bool = False) -> str:
    """Returns where an expression stands in the state, `a.b` as changes name it; '' where it is more than a path.

    Of a list that is what it goes through: `a.b` for `a.b[]` and `entries(a.b)`, not for `a.b[?c]`, which leaves some
    out. Of `a || b` it is `a`: where that is missing there is nothing in the state to name.
    """
    return ".".join(_keys(jmespath.compile(expression).parsed, of_list) or ())


_THROUGH = ("projection", "value_projection", "flatten")


def _keys(node: Mapping[str, object], of_list: bool) -> tuple[str, ...] | None:
    children = node.get("children")
    inner = children if isinstance(children, list) else []
    if node["type"] == "field":
        return (str(node["value"]),)
    if node["type"] == "subexpression":
        parts = [_keys(child, False) for child in inner]
        return None if None in parts else tuple(key for part in parts for key in part or ())
    if node["type"] == "or_expression":
        return _keys(inner[0], of_list)
    if of_list and (node["type"] in _THROUGH or (node["type"] == "function_expression" and node["value"] == "entries")):
        return _keys(inner[0], True)
    return None
