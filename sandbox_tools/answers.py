"""What the sandboxes answer with: references that are the same for the same request, or no answer at all."""

from __future__ import annotations

import hashlib


class NoAnswer(RuntimeError):
    """The sandbox holds no answer to this call."""


def reference(kind: str, *parts: str) -> str:
    """Returns what the receiver of an effect would have called it: two letters of what it is, and a digest of it."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
    return f"{kind}_sandbox_{digest[:10]}"
