"""How a workflow wants its state to be read: labelled fields and lists, what they show, and how two readings differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Format = Literal["text", "money", "cents", "percent", "time"]
FORMATS: Final[tuple[Format, ...]] = ("text", "money", "cents", "percent", "time")

FUNCTIONS: Final = ("reply", "tool_calls", "entries", "from_json")
"""Functions that the expressions of a view have besides those of JMESPath."""


def is_code(currency: str) -> bool:
    """Returns whether the currency of a field is a code itself; else it is a JMESPath to one."""
    return len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()


@dataclass(frozen=True, slots=True)
class FieldView:
    """One labelled value.

    Attributes:
        name: Label.
        path: JMESPath, over the state's values or over an item of a list.
        format: How its text is made.
        currency: Of money: a code such as `EUR`, or a JMESPath to it, of an item also over the state; '' for none.
    """

    name: str
    path: str
    format: Format = "text"
    currency: str = ""


@dataclass(frozen=True, slots=True)
class ListView:
    """A list that is compared item by item.

    Attributes:
        name: Label.
        items: JMESPath over the state's values.
        key: JMESPath over an item: what makes it the same item on both sides; '' for its place in the list.
        title: JMESPath over an item: what it is called beside its key; '' for nothing.
        fields: Its labelled values.
    """

    name: str
    items: str
    key: str = ""
    title: str = ""
    fields: tuple[FieldView, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """The fields and lists of a workflow, in the order that a person reads them."""

    workflow: str
    fields: tuple[FieldView, ...]
    lists: tuple[ListView, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A labelled value as it was found, None where there is none.

    `path` is where it stands in the state, as a change names it; '' where its expression is more than a path.
    """

    name: str
    value: object
    format: Format = "text"
    currency: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item of a list; keys are text, and may repeat. Without one, the place from 1 is the key."""

    key: str
    title: str
    fields: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class ShownList:
    """A list as it was found; `path` as that of a `Shown`."""

    name: str
    items: tuple[ShownItem, ...]
    path: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A checkpoint in its workflow's words. `problems` say which expressions do not fit its values, and why."""

    workflow: str
    fields: tuple[Shown, ...]
    lists: tuple[ShownList, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A labelled value that differs; a side without it is None."""

    left: Shown | None
    right: Shown | None

    @property
    def sides(self) -> tuple[Shown | None, Shown | None]:
        """Left, then right."""
        return self.left, self.right

    @property
    def name(self) -> str:
        """Its label."""
        return next((side.name for side in self.sides if side), "")


@dataclass(frozen=True, slots=True)
class ViewChange:
    """A field that differs, or an item of a list that was added (right), is gone (left) or differs (both).

    Attributes:
        name: Label of the field or of the list.
        key: Key of the item; None for a field.
        title: What the item is called, on its newer side.
        side: Where it is.
        fields: What differs; of an item that only one side has, everything.
        path: Where the field or the list stands in the state, '' where that is not one path.
    """

    name: str
    key: str | None
    title: str
    side: Literal["left", "right", "both"]
    fields: tuple[FieldChange, ...]
    path: str = ""
