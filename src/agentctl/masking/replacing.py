"""The second pass: values with tokens in place of what is personal, and every other byte as it was."""

from __future__ import annotations

from datetime import date
from typing import Final

from agentctl.masking.cache import Cache
from agentctl.masking.fields import Field, Fields
from agentctl.masking.issuing import Tokens
from agentctl.masking.keys import Key
from agentctl.masking.learned import Learned
from agentctl.masking.plausible import kind_of_text, secret_span
from agentctl.masking.rules import MaskRules
from agentctl.masking.tally import Found, Tally
from agentctl.masking.texts import Texts
from agentctl.masking.tokens.dates import date_token
from agentctl.masking.trees import json_text, packed
from agentctl.masking.trees.nodes import Blob, Change, Extension, Items, Node, Text, Whole
from agentctl.masking.typed import Part, is_looked_into, parts_of
from agentctl.masking.walking import leaves
from agentctl.records.masking import MaskKind

_TEXT_BYTES: Final = 32 * 1024 * 1024
_PACKED_BYTES: Final = 32 * 1024 * 1024
_LONGEST_REMEMBERED: Final = 1024 * 1024
_NUMBERS: Final[frozenset[MaskKind]] = frozenset({"phone", "card", "national_id", "address", "iban", "other"})
"""Kinds of which an integer can be one."""
_LEAST_NUMBER_DIGITS: Final = 7
_INT64: Final = 1 << 63
_ROOM: Final = 8 * 10**18
"""What is taken off a number of 19 digits that would no longer be one of 64 bits with a sign."""
_MOST_NESTED: Final = 8
"""Texts inside encoded texts that are opened."""


class Replacing:
    """Masks nodes and texts; the same one gives the same answer until something is learned."""

    def __init__(
        self, rules: MaskRules, key: Key, fields: Fields, tokens: Tokens, learned: Learned, tally: Tally
    ) -> None:
        self._key = key
        self._fields = fields
        self._tokens = tokens
        self._learned = learned
        self._tally = tally
        self.texts = Texts(rules, tokens, learned, tally, self._nested)
        self._depth = 0
        self._done_texts: Cache[tuple[str, Field], tuple[str, tuple[Found, ...]]] = Cache(_TEXT_BYTES)
        self._done_packed: Cache[tuple[bytes, int, Field], tuple[bytes, tuple[Found, ...]]] = Cache(_PACKED_BYTES)

    def forget(self) -> None:
        """Forgets answers, after something was learned."""
        self._done_texts.clear()
        self._done_packed.clear()

    def changes(self, node: Node, field: Field) -> list[Change]:
        """Returns what of a value is to be replaced, in its order."""
        changes: list[Change] = []
        for leaf in leaves(node, field, self._fields):
            match leaf.node:
                case Text(value):
                    new: str | int | bytes = self.text(value, leaf.field)
                case Whole(value):
                    new = self._whole(value, leaf.field)
                case Extension(code, value):
                    new = self._extension(code, value, leaf.field)
                case Blob(n_bytes):
                    self._tally.pending.append(Found(None, "", n_bytes))
                    continue
            if new != value:
                changes.append(Change(leaf.node, new))
        return changes

    def text(self, text: str, field: Field) -> str:
        """Returns a text, which may be JSON, masked."""
        if not text or field.reading == "nothing":
            return text
        is_json = text[0] in '{["' or (text[0].isspace() and text.lstrip()[:1] in ("{", "["))
        key = (text, field if is_json or "{" in text or "[" in text else field._replace(path=()))
        done = self._done_texts.get(key)
        if done is not None:
            self._tally.pending.extend(done[1])
            return done[0]
        mark = len(self._tally.pending)
        new = self._text(text, field, is_json=is_json)
        if len(text) <= _LONGEST_REMEMBERED:
            self._done_texts.put(key, (new, self._tally.since(mark)), 2 * len(text))
        return new

    def _text(self, text: str, field: Field, *, is_json: bool) -> str:
        kind = kind_of_text(text, field)
        if kind is not None:
            return self._whole_text(text, kind)
        if is_json:
            try:
                node = json_text.parse(text)
            except ValueError:
                pass
            else:
                changes = self.changes(node, field)
                return json_text.replaced(text, changes) if changes else text
        if field.reading == "text":
            return self._with_embedded(text, field)
        return self.texts.masked(text, field)

    def _with_embedded(self, text: str, field: Field) -> str:
        """Returns a text in which JSON values stand, each read by its fields."""
        parts: list[str] = []
        end = 0
        for start, stop, node in json_text.embedded(text):
            parts.append(self.texts.masked(text[end:start], field))
            inner = text[start:stop]
            parts.append(json_text.replaced(inner, (self._moved(c, start) for c in self.changes(node, field))))
            end = stop
        if not parts:
            return self.texts.masked(text, field)
        return "".join([*parts, self.texts.masked(text[end:], field)])

    @staticmethod
    def _moved(change: Change, start: int) -> Change:
        node = change.node
        match node:
            case Text(value):
                return Change(Text(value, node.start - start, node.end - start), change.new)
            case Whole(number):
                return Change(Whole(number, node.start - start, node.end - start), change.new)
            case _:
                return change

    def _whole_text(self, text: str, kind: MaskKind) -> str:
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        if kind == "secret":
            start = secret_span(text, start)
        value = text[start:end]
        self._tally.pending.append(Found(kind, value))
        return text[:start] + self._tokens.of(kind, value) + text[end:]

    def _whole(self, number: int, field: Field) -> int:
        digits = str(abs(number))
        kind = field.kind
        if kind not in _NUMBERS or field.reading == "nothing":
            if len(digits) < _LEAST_NUMBER_DIGITS or field.reading == "nothing":
                return number
            kind = "phone" if self._tokens.is_known_phone(digits) else self._learned.kind_of_number(digits)
        if kind is None or (kind != "address" and len(digits) < _LEAST_NUMBER_DIGITS):
            return number
        self._tally.pending.append(Found(kind, digits))
        new = self._tokens.of_number(kind, number)
        return new - _ROOM if new >= _INT64 > number else new

    def _extension(self, code: int, data: bytes, field: Field) -> bytes:
        key = (data, code, field)
        done = self._done_packed.get(key)
        if done is not None:
            self._tally.pending.extend(done[1])
            return done[0]
        mark = len(self._tally.pending)
        if not is_looked_into(code):
            self._tally.pending.append(Found(None, "", len(data)))
            new = data
        else:
            changes = [c for part in parts_of(code, packed.parse(data), field) for c in self._part(part)]
            new = packed.replaced(data, changes) if changes else data
        if len(data) <= _LONGEST_REMEMBERED:
            self._done_packed.put(key, (new, self._tally.since(mark)), 2 * len(data))
        return new

    def _part(self, part: Part) -> list[Change]:
        match part.node:
            case Items([Whole(year), Whole(month) as month_node, Whole(day) as day_node]) if (
                part.field.kind == "birth_date"
            ):
                try:
                    born = date(year, month, day)
                except ValueError:
                    return []
                self._tally.pending.append(Found("birth_date", born.isoformat()))
                new = date_token(born, self._key)
                return [Change(month_node, new.month), Change(day_node, new.day)]
            case _:
                return self.changes(part.node, part.field)

    def _nested(self, text: str, field: Field) -> str:
        """Masks a text that was encoded in another one, up to a depth."""
        if self._depth >= _MOST_NESTED:
            return text
        self._depth += 1
        try:
            return self.text(text, field)
        finally:
            self._depth -= 1
