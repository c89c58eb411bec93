"""Masks values one at a time, in two passes over the same rows: what is personal is learned first, then replaced."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.masking.keys import Key
from agentctl.masking.rules import MaskRules
from agentctl.records.masking import MaskReport, ValuePlace
from agentctl.records.rows import Stored


class Masker:
    """One per copy or case. The same value gives the same answer between two calls of `learn`.

    Args:
        rules: What is personal.
        key: What tokens are made with.
    """

    def __init__(self, rules: MaskRules, key: Key) -> None:
        self._rules = rules
        self._key = key

    def learn(self, stored: Stored, place: ValuePlace) -> None:
        """Remembers what a stored value's fields say is personal, so that it is masked in free text too.

        Raises:
            DecodeError: The value cannot be read: damaged, encrypted without a key, a pickle, an unknown form.
        """

    def learn_plain(self, value: object, place: ValuePlace) -> None:
        """Remembers what the fields of a JSON-like value say is personal."""

    def stored(self, stored: Stored, place: ValuePlace) -> Stored:
        """Returns a stored value without personal data: the same object where it has none.

        An encrypted value is opened, masked and sealed again with the same key.

        Raises:
            DecodeError: The value cannot be read: damaged, encrypted without a key, a pickle, an unknown form.
        """
        return stored

    def metadata(self, metadata: Mapping[str, object]) -> Mapping[str, object]:
        """Returns metadata without personal data: the same object where it has none."""
        return metadata

    def plain(self, value: object, place: ValuePlace) -> object:
        """Returns a JSON-like or inert value without personal data: the same object where it has none."""
        return value

    def text(self, text: str, field: str | None = None) -> str:
        """Returns a text without personal data; `field` is the name of the field that it is the value of."""
        return text

    def report(self) -> MaskReport:
        """Returns what was done since the masker was made."""
        return MaskReport(key=self._key.name)
