"""Who gives a command: kept with what it writes, and never taken from what another one wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentctl.experiments.experiment import recorded_configurable

BY: Final = "agentctl_by"
"""Metadata of the rows that `run` and `resume` write: who gave the command."""

ACTOR: Final = "actor"
"""Configuration in which the caller of an application is said; what more is said of them begins with `actor_`."""


def thread_configurable(metadata: Mapping[str, object]) -> dict[str, object]:
    """Returns the configuration that a thread recorded and that a further run of it has too.

    Who called when it was recorded is left out: the next caller is somebody else until they say who they are.
    """
    recorded = recorded_configurable(metadata)
    return {key: value for key, value in recorded.items() if key != ACTOR and not key.startswith(f"{ACTOR}_")}
