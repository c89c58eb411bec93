"""Figures in sentences: what number of what unit is said of which year, and whether two sentences contradict."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from graphs.research_report.text import overlap

_UNIT = (
    r"%|per ?cent|percent|percentage points|(?:million |billion |trillion )?(?:crowns?|euros?|eur|dollars?|usd)|"
    r"million|billion|trillion|mwh|gwh|twh|kwh|mw|gw|kw|tonnes?|tons?|km|kilometres|charging points|points|connectors|stations|"
    r"(?:fast )?chargers|sites|places|households|drivers|countries|states|cities|people|members?|hours?|minutes?|days?|"
    r"weeks?|months?|years?"
)
_FIGURE = re.compile(rf"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)\s*({_UNIT})(?!\w)", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_SAME_SUBJECT = 0.34
_ALIASES = {"per cent": "%", "percent": "%", "percentage points": "%", "eur": "euro", "usd": "dollar"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit; `year` is the only year its sentence names, '' where it names none or several."""

    value: Decimal
    unit: str
    year: str


def figures(sentence: str) -> tuple[Figure, ...]:
    """Returns the figures of a sentence, in its order."""
    years = set(_YEAR.findall(sentence))
    year = years.pop() if len(years) == 1 else ""
    return tuple(
        Figure(Decimal(number.replace(",", "")), _unit(unit), year) for number, unit in _FIGURE.findall(sentence)
    )


def contradict(left: str, right: str) -> bool:
    """Tells whether two sentences give different figures for the same thing at the same time.

    They must speak of the same subject, share a unit and not be of different years; figures of different years are a
    development, not a contradiction.
    """
    if overlap(_without_figures(left), _without_figures(right)) < _SAME_SUBJECT:
        return False
    ours, theirs = figures(left), figures(right)
    shared = {figure.unit for figure in ours} & {figure.unit for figure in theirs}
    return any(_differ(ours, theirs, unit) for unit in shared)


def agree(left: str, right: str) -> bool:
    """Tells whether two sentences say the same: a shared figure on one subject, or much the same words."""
    subject = overlap(_without_figures(left), _without_figures(right))
    same_figure = {(f.value, f.unit) for f in figures(left)} & {(f.value, f.unit) for f in figures(right)}
    return subject >= 0.5 or (bool(same_figure) and subject >= _SAME_SUBJECT / 2)


def _differ(ours: tuple[Figure, ...], theirs: tuple[Figure, ...], unit: str) -> bool:
    one, other = ({f for f in side if f.unit == unit} for side in (ours, theirs))
    years = {f.year for f in one} ^ {f.year for f in other}
    if any(years) and "" not in {f.year for f in one | other}:
        return False
    return not {f.value for f in one} & {f.value for f in other}


def _unit(text: str) -> str:
    unit = " ".join(text.casefold().split())
    unit = _ALIASES.get(unit, unit)
    return unit.removesuffix("s") if len(unit) > 3 else unit


def _without_figures(sentence: str) -> str:
    return _YEAR.sub(" ", _FIGURE.sub(" ", sentence))
