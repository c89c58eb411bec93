"""The first pass: what the fields of a value say is personal, and what its texts introduce."""

from __future__ import annotations

from typing import Final

from agentctl.masking.cache import Cache
from agentctl.masking.fields import Field, Fields
from agentctl.masking.issuing import Tokens
from agentctl.masking.learned import Learned
from agentctl.masking.plausible import kind_of_text
from agentctl.masking.texts import Texts
from agentctl.masking.trees import json_text, packed
from agentctl.masking.trees.nodes import Extension, Node, Text, Whole
from agentctl.masking.typed import is_looked_into, parts_of
from agentctl.masking.walking import KEY, KEY_OF_WORDS, leaves
from agentctl.records.masking import MaskKind

_SEEN_BYTES: Final = 16 * 1024 * 1024
_LEAST_NUMBER_DIGITS: Final = 7


class Learning:
    """Learns from values; each text and each packed object once."""

    def __init__(self, fields: Fields, texts: Texts, tokens: Tokens, learned: Learned) -> None:
        self._fields = fields
        self._texts = texts
        self._tokens = tokens
        self._learned = learned
        self._seen: Cache[tuple[int, Field], bool] = Cache(_SEEN_BYTES)

    def node(self, node: Node, field: Field) -> None:
        """Learns from a value."""
        for leaf in leaves(node, field, self._fields):
            match leaf.node:
                case Text(value):
                    if leaf.field not in (KEY, KEY_OF_WORDS) and not self._has_seen(value, leaf.field):
                        self._text(value, leaf.field)
                case Whole(value) if leaf.field.kind and len(str(abs(value))) >= _LEAST_NUMBER_DIGITS:
                    self._add(leaf.field.kind, str(abs(value)))
                case Extension(code, data) if is_looked_into(code) and not self._has_seen(data, leaf.field):
                    for part in parts_of(code, packed.parse(data), leaf.field):
                        self.node(part.node, part.field)
                case _:
                    pass

    def _text(self, text: str, field: Field) -> None:
        if field.reading == "nothing":
            return
        kind = kind_of_text(text, field)
        if kind is not None:
            self._add(kind, text.strip())
            return
        if text[:1] in '{["' or text.lstrip()[:1] in ("{", "["):
            try:
                node = json_text.parse(text)
            except ValueError:
                pass
            else:
                self.node(node, field)
                return
        if field.reading == "text":
            for start, end, node in json_text.embedded(text):
                self.node(node, field)
                text = text[:start] + " " * (end - start) + text[end:]
            for hit, written in self._texts.introduced(text):
                self._add(hit.kind, written)

    def _add(self, kind: MaskKind, text: str) -> None:
        if kind == "phone":
            phone = self._tokens.phone_of(text)
            if phone is not None:
                self._tokens.remember(phone)
        else:
            self._learned.add(kind, text)

    def _has_seen(self, value: str | bytes, field: Field) -> bool:
        key = (hash(value), field)
        if self._seen.get(key):
            return True
        self._seen.put(key, True, 0)
        return False
