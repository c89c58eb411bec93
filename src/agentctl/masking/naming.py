"""Whether a name holds personal data: of a thread, a namespace, a case, a memory item."""

from __future__ import annotations

from agentctl.masking.masker import Masker


def is_personal(name: str, masker: Masker) -> bool:
    """Says whether masking would change a name."""
    return masker.text(name, "id") != name
