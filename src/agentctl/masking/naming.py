"""Names that may hold personal data: of a thread, a namespace, a case, a memory item."""

from __future__ import annotations

from agentctl.masking.masker import Masker


def shown_name(name: str, masker: Masker) -> str:
    """Returns a name with a token where it is personal."""
    return masker.text(name, "id")
