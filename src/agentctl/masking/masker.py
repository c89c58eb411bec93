"""Masks values one at a time, in two passes over the same rows: what is personal is learned first, then replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Final

from agentctl.codec.encryption import decrypted, is_encrypted, sealed
from agentctl.errors import DecodeError
from agentctl.masking.fields import ROOT, Field, Fields
from agentctl.masking.issuing import Tokens
from agentctl.masking.keys import Key
from agentctl.masking.learned import Learned
from agentctl.masking.learning import Learning
from agentctl.masking.replacing import Replacing
from agentctl.masking.rules import MaskRules
from agentctl.masking.tally import Found, Tally
from agentctl.masking.trees import json_text, objects, packed
from agentctl.masking.trees.nodes import Node
from agentctl.records.masking import MaskReport, ValuePlace
from agentctl.records.rows import Stored

_METADATA: Final = ValuePlace("metadata", "")
_TEXT: Final = ValuePlace("text", "")


class Masker:
    """One per copy or case. The same value gives the same answer between two calls of `learn`.

    Args:
        rules: What is personal.
        key: What tokens are made with.
    """

    def __init__(self, rules: MaskRules, key: Key) -> None:
        self._key = key
        self._fields = Fields(rules.settings)
        self._tally = Tally()
        self._learned = Learned()
        self._tokens = Tokens(key, rules.settings.regions)
        self._replacing = Replacing(rules, key, self._fields, self._tokens, self._learned, self._tally)
        self._learning = Learning(self._fields, self._replacing.texts, self._tokens, self._learned)
        self._is_current = True
        self._lock = RLock()

    def learn(self, stored: Stored, place: ValuePlace) -> None:
        """Remembers what a stored value's fields say is personal, so that it is masked in free text too.

        Raises:
            DecodeError: The value cannot be read: damaged, encrypted without a key, a pickle, an unknown form.
        """
        stored = decrypted(stored)
        match stored.type:
            case "msgpack":
                self._learn(packed.parse(stored.data), place)
            case "json":
                self._learn(_json_node(stored), place)
            case _:
                _require_readable(stored)

    def learn_plain(self, value: object, place: ValuePlace) -> None:
        """Remembers what the fields of a JSON-like value say is personal.

        Raises:
            DecodeError: The value is nested too deeply.
        """
        self._learn(objects.parse(value), place)

    def stored(self, stored: Stored, place: ValuePlace) -> Stored:
        """Returns a stored value without personal data: the same object where it has none.

        An encrypted value is opened, masked and sealed again with the same key.

        Raises:
            DecodeError: The value cannot be read: damaged, encrypted without a key, a pickle, an unknown form.
        """
        opened = decrypted(stored)
        with self._at_work():
            data = self._masked(opened, self._field(place))
            changed = data != opened.data
            self._tally.settle(place, changed=changed)
        if not changed:
            return stored
        masked = Stored(opened.type, data)
        return sealed(masked, stored.type.partition("+")[2]) if is_encrypted(stored) else masked

    def metadata(self, metadata: Mapping[str, object]) -> Mapping[str, object]:
        """Returns metadata without personal data: the same object where it has none."""
        masked = self.plain(metadata, _METADATA)
        return masked if isinstance(masked, Mapping) else metadata

    def plain(self, value: object, place: ValuePlace) -> object:
        """Returns a JSON-like or inert value without personal data: the same object where it has none.

        Raises:
            DecodeError: The value is nested too deeply.
        """
        node = objects.parse(value)
        with self._at_work():
            changes = self._replacing.changes(node, self._field(place))
            self._tally.settle(place, changed=bool(changes))
            return objects.replaced(value, changes) if changes else value

    def text(self, text: str, field: str | None = None) -> str:
        """Returns a text without personal data; `field` is the name of the field that it is the value of."""
        with self._at_work():
            masked = self._replacing.text(text, self._fields.inside(ROOT, field) if field else ROOT)
            self._tally.settle(_TEXT, changed=masked != text)
            return masked

    def report(self) -> MaskReport:
        """Returns what was done since the masker was made."""
        with self._lock:
            return self._tally.report(self._key.name)

    def _field(self, place: ValuePlace) -> Field:
        return self._fields.inside(ROOT, place.name) if place.name else ROOT

    def _learn(self, node: Node, place: ValuePlace) -> None:
        with self._at_work():
            known = self._learned.n_values, self._tokens.n_countries
            self._learning.node(node, self._field(place))
            self._is_current = self._is_current and known == (self._learned.n_values, self._tokens.n_countries)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Lets one caller work at a time, without answers from before something was learned."""
        with self._lock:
            self._tally.pending.clear()
            if not self._is_current:
                self._replacing.forget()
                self._is_current = True
            try:
                yield
            except RecursionError as error:
                raise DecodeError("the value is nested too deeply to be masked") from error

    def _masked(self, stored: Stored, field: Field) -> bytes:
        match stored.type:
            case "msgpack":
                changes = self._replacing.changes(packed.parse(stored.data), field)
                return packed.replaced(stored.data, changes) if changes else stored.data
            case "json":
                changes = self._replacing.changes(_json_node(stored), field)
                if not changes:
                    return stored.data
                return json_text.replaced(_json_text(stored), changes).encode("utf-8", "surrogatepass")
            case _:
                _require_readable(stored)
                if stored.data:
                    self._tally.pending.append(Found(None, "", len(stored.data)))
                return stored.data


def _json_text(stored: Stored) -> str:
    try:
        return stored.data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise DecodeError(f"the JSON value is damaged: {error}") from error


def _json_node(stored: Stored) -> Node:
    try:
        return json_text.parse(_json_text(stored))
    except ValueError as error:
        raise DecodeError(f"the JSON value is damaged: {error}") from error


def _require_readable(stored: Stored) -> None:
    """Raises DecodeError for what is neither nothing nor bytes."""
    if stored.type == "pickle":
        raise DecodeError("the value is a pickle, which runs code when loaded; it is never loaded here")
    if stored.type not in ("null", "empty", "bytes", "bytearray"):
        raise DecodeError(f"the value has the serialization type {stored.type!r}, which is not known here")
