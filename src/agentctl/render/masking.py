"""What was masked, for people, pipes and programs."""

from __future__ import annotations

from agentctl.records.masking import MaskReport
from agentctl.render.words import count, size

_WORDS = {
    "birth_date": ("birth date", "birth dates"),
    "address": ("address", "addresses"),
    "iban": ("IBAN", "IBANs"),
    "ip": ("IP address", "IP addresses"),
    "national_id": ("national id", "national ids"),
    "other": ("other value", "other values"),
}


def mask_words(report: MaskReport) -> str:
    """Returns `2 names, 1 email` of what was replaced, and what could not be looked into."""
    found = ", ".join(count(n, *_WORDS.get(kind, (kind,))) for kind, n in sorted(report.n_distinct.items()) if n)
    left = [
        f"{count(one.n_values, 'value')} of {one.place} ({size(one.n_bytes)}) left as bytes" for one in report.unmasked
    ]
    return "; ".join((found or "nothing personal found", *left))


def mask_counts(report: MaskReport | None) -> str:
    """Returns `email=1,name=2`, '' where nothing was masked."""
    return "" if report is None else ",".join(f"{kind}={n}" for kind, n in sorted(report.n_distinct.items()) if n)


def mask_object(report: MaskReport | None) -> dict[str, object] | None:
    """Returns what was masked as an object, None where nothing was."""
    if report is None:
        return None
    return {
        "key": report.key,
        "values": {kind: n for kind, n in sorted(report.n_distinct.items()) if n},
        "unmasked": [{"place": one.place, "n_values": one.n_values, "n_bytes": one.n_bytes} for one in report.unmasked],
    }
