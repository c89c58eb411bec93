"""Figures in sentences: what number of what unit is said of which year, and whether two sentences contradict."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from graphs.research_report.text import overlap

_MEASURE = (
    r"%|per ?cent|percent|percentage points|(?:million |billion |trillion )?(?:crowns?|euros?|eur|dollars?|usd)|"
    r"million|billion|trillion|mwh|gwh|twh|kwh|mw|gw|kw|kilowatts?|tonnes?|tons?|km|kilometres|hours?|minutes?|days?|"
    r"weeks?|months?|years?"
)
_COUNTED = (
    r"points|connectors|stations|chargers|sites|places|households|drivers|countries|states|cities|ports|berths|ships|"
    r"people|members?|employees|vehicles|cars"
)
_FIGURE = re.compile(
    rf"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)\s*({_MEASURE}|(?:[a-z-]+\s+){{0,3}}?(?:{_COUNTED}))(?!\w)", re.IGNORECASE
)
_COUNT = re.compile(rf"(?:{_COUNTED})$")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NUMBER = re.compile(r"\d[\d.,]*")
_SAME_SUBJECT = 0.2
_SAME_WORDS = 0.5
_ALIASES = {"per cent": "%", "percent": "%", "percentage points": "%", "eur": "euro", "usd": "dollar"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit; `year` is the only year its sentence names, '' where it names none or several."""

    value: Decimal
    unit: str
    year: str


def figures(sentence: str, year: str = "") -> tuple[Figure, ...]:
    """Returns the figures of a sentence, in its order; `year` is when it was written, where it names none itself."""
    named = set(_YEAR.findall(sentence)) or ({year} if year else set())
    of = named.pop() if len(named) == 1 else ""
    return tuple(
        Figure(Decimal(number.replace(",", "")), _unit(unit), of) for number, unit in _FIGURE.findall(sentence)
    )


def contradict(left: str, right: str, *, years: tuple[str, str] = ("", "")) -> bool:
    """Tells whether two sentences give different figures for the same thing at the same time.

    They must speak of the same subject, share a unit and not be of different years: figures of different years are a
    development, not a contradiction. It takes two definitions of one thing for a contradiction too: who reads the
    report should know.

    Args:
        left: A sentence.
        right: Another one.
        years: When they were written.
    """
    if overlap(_without_numbers(left), _without_numbers(right)) < _SAME_SUBJECT:
        return False
    ours, theirs = figures(left, years[0]), figures(right, years[1])
    shared = {figure.unit for figure in ours} & {figure.unit for figure in theirs}
    return any(_differ(ours, theirs, unit) for unit in shared)


def agree(left: str, right: str) -> bool:
    """Tells whether two sentences say the same: a shared figure on one subject, or much the same words."""
    subject = overlap(_without_numbers(left), _without_numbers(right))
    same_figure = {(f.value, f.unit) for f in figures(left)} & {(f.value, f.unit) for f in figures(right)}
    return subject >= _SAME_WORDS or (bool(same_figure) and subject >= _SAME_SUBJECT)


def _differ(ours: tuple[Figure, ...], theirs: tuple[Figure, ...], unit: str) -> bool:
    one, other = ({f for f in side if f.unit == unit} for side in (ours, theirs))
    is_development = not {f.year for f in one} & {f.year for f in other} and "" not in {f.year for f in one | other}
    return not is_development and not {f.value for f in one} & {f.value for f in other}


def _unit(text: str) -> str:
    unit = " ".join(text.casefold().split())
    counted = _COUNT.search(unit)
    unit = counted[0] if counted else _ALIASES.get(unit, unit)
    return unit.removesuffix("s") if len(unit) > 3 else unit


def _without_numbers(sentence: str) -> str:
    return _NUMBER.sub(" ", sentence)
