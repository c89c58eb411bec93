"""How the tool calls of all cases were answered, from their ledgers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from agentctl.casebook.cases import list_cases
from agentctl.casebook.files import read_lines
from agentctl.casebook.ledger import CALLS
from agentctl.records.audit import CaseEffects

_STUBBED = ("stub",)
_RECORDED = ("recorded", "recorded_again", "answered")


def sum_effects(root: Path) -> tuple[CaseEffects, ...]:
    """Returns the counts of each case, the one opened last first. Creates nothing.

    Args:
        root: The folder of all cases.

    Raises:
        StoreError: a case.json is damaged.
    """
    return tuple(_effects(summary.case.name, summary.case.folder) for summary in list_cases(root))


def _effects(name: str, folder: Path) -> CaseEffects:
    calls, n_damaged = read_lines(folder / CALLS)
    by = Counter(str(call.get("served_by")) for call in calls)
    recorded, stubbed = sum(by[kind] for kind in _RECORDED), sum(by[kind] for kind in _STUBBED)
    known = (recorded, stubbed, by["live"], by["blocked"], by["escaped"])
    return CaseEffects(name, len(calls), *known, other=len(calls) - sum(known), n_damaged=n_damaged)
