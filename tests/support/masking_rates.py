"""How much masking misses and how much it takes that is nobody's, as the table of docs/masking.md.

`python -m tests.support.masking_rates` writes the table anew.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from agentctl.codec.jsontext import jsonable
from agentctl.masking.keys import Key
from agentctl.masking.masker import Masker
from agentctl.masking.rules import rules_of
from agentctl.records.masking import MaskSettings, ValuePlace
from tests.support.personal import FORMS, HARMLESS, KINDS, harmless_numbers, samples

PAGE = Path(__file__).parents[2] / "docs" / "masking.md"
START = "<!-- measured: python -m tests.support.masking_rates -->"
END = "<!-- end of what was measured -->"
SEED = 7
COUNT = 40
N_HARMLESS = 1000

_STATE = ValuePlace("channel", "state")


def masked(value: object) -> object:
    masker = Masker(rules_of(MaskSettings()), Key(b"k" * 32))
    masker.learn_plain(value, _STATE)
    return masker.plain(value, _STATE)


def texts_in(value: object) -> str:
    return repr(jsonable(value))


def missed() -> Counter[tuple[str, str]]:
    """Samples of which something is left, by kind and form."""
    found: Counter[tuple[str, str]] = Counter()
    for sample in samples(SEED, COUNT):
        left = texts_in(masked(sample.value))
        found[sample.kind, sample.form] += any(secret in left for secret in sample.secrets)
    return found


def false_alarms() -> tuple[int, Counter[str]]:
    """How many of HARMLESS are changed, and how many of the drawn texts with numbers by the kind they are taken for."""
    changed = sum(masked({"content": value}) != {"content": value} for value in HARMLESS)
    kinds: Counter[str] = Counter()
    masker = Masker(rules_of(MaskSettings()), Key(b"k" * 32))
    for text in harmless_numbers(SEED, N_HARMLESS):
        before = masker.report().counts
        masker.text(text)
        kinds.update({kind: 1 for kind, count in masker.report().counts.items() if count != before.get(kind)})
    return changed, kinds


def table() -> str:
    found = missed()
    lines = [
        f"Missed, of {COUNT} values each:",
        "",
        "| kind | field that tells | text that tells | said again elsewhere | nothing tells |",
        "|---|---|---|---|---|",
    ]
    for kind in KINDS:
        cells = [str(found[kind, form]) if (kind, form) in found else "" for form in FORMS]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    changed, kinds = false_alarms()
    taken = ", ".join(f"{count} as {kind}" for kind, count in sorted(kinds.items())) or "none"
    lines += [
        "",
        f"Taken for personal though it is not: {changed} of {len(HARMLESS)} texts and objects of everyday work; of "
        f"{N_HARMLESS} texts with random numbers, {taken}.",
    ]
    return "\n".join(lines)


def with_table(page: str) -> str:
    head, _, rest = page.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n\n{table()}\n\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
