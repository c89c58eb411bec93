"""Counting what was replaced, so that what is remembered is counted again where it is used again."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from agentctl.records.masking import KINDS, MaskKind, MaskReport, Unmasked, ValuePlace


class Found(NamedTuple):
    """A value that was replaced; with the kind None, bytes that were left alone (`size` of them)."""

    kind: MaskKind | None
    text: str = ""
    size: int = 0


class Tally:
    """What was done; entries wait in `pending` until a whole value is done."""

    def __init__(self) -> None:
        self.pending: list[Found] = []
        self._counts: Counter[MaskKind] = Counter()
        self._distinct: defaultdict[MaskKind, set[int]] = defaultdict(set)
        self._unmasked: defaultdict[str, list[int]] = defaultdict(list)
        self._n_changed = 0

    def since(self, mark: int) -> tuple[Found, ...]:
        """Returns the entries that came after there were `mark` of them."""
        return tuple(self.pending[mark:])

    def settle(self, place: ValuePlace, *, changed: bool) -> None:
        """Counts what is pending: it belongs to one value."""
        for found in self.pending:
            if found.kind is None:
                self._unmasked[str(place)].append(found.size)
            else:
                self._counts[found.kind] += 1
                self._distinct[found.kind].add(hash(found.text))
        self.pending.clear()
        self._n_changed += changed

    def report(self, key: str) -> MaskReport:
        """Returns what was counted."""
        return MaskReport(
            counts={kind: self._counts[kind] for kind in KINDS if self._counts[kind]},
            n_distinct={kind: len(self._distinct[kind]) for kind in KINDS if self._counts[kind]},
            n_values_changed=self._n_changed,
            unmasked=tuple(Unmasked(place, len(sizes), sum(sizes)) for place, sizes in sorted(self._unmasked.items())),
            key=key,
        )
