"""What a copy did."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final, Literal

from agentctl.records.masking import MaskReport


def command(verb: str, *words: str) -> str:
    """Returns `agentctl VERB WORD...` as it can be pasted into a shell."""
    return shlex.join(("agentctl", *verb.split(), *words))


MASKED: Final = "agentctl_masked"
"""Metadata of a thread whose personal data was masked when it was copied, and of what was made from it."""

COPY_MARK: Final = "agentctl_op"
"""Metadata that a copy made by agentctl has. Source: `provenance`, agentctl/experiments/experiment.py."""

Scope = Literal["lineage", "all", "point"]


@dataclass(frozen=True, slots=True)
class Place:
    """A thread in a store; `id` is a checkpoint where one is meant, `profile` the name that reaches the store."""

    store: str
    thread: str
    id: str | None = None
    profile: str = ""

    @property
    def target(self) -> str:
        """The text that points here on the command line."""
        thread = f"{self.profile}::{self.thread}" if self.profile else self.thread
        return f"{thread}@{self.id}" if self.id else thread


@dataclass(frozen=True, slots=True)
class CopyReport:
    """Counts are rows written; `n_bytes` is the size of the copied values. `verified` means read back and equal.

    `masking` is what was masked to make it, None where nothing was masked on the way.
    """

    source: Place
    target: Place
    n_checkpoints: int
    n_writes: int
    n_blobs: int
    n_bytes: int
    verified: bool
    masked: bool = False
    dry_run: bool = False
    warnings: tuple[str, ...] = ()
    masking: MaskReport | None = None
