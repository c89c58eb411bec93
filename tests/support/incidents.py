"""Seeded production stores, and the incidents as test cases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from fixtures.backoffice import BackOffice, running
from fixtures.incidents.common import Experiment
from fixtures.incidents.support.files import load_incidents
from fixtures.incidents.support.seeding import seed

REPOSITORY = Path(__file__).parents[2]
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@dataclass(frozen=True)
class SeededStore:
    """A production store with its back office still running.

    `folder` has a configuration over this repository's workflow; `profile` names the store in it, '' for one that
    AGENTCTL_STORE has to name.
    """

    folder: Path
    url: str
    profile: str
    backoffice: BackOffice


def experiments() -> dict[str, tuple[str, Experiment]]:
    """Every experiment of every incident, variants too, by a name, with the thread that it is about."""
    found = {}
    for incident in load_incidents():
        for number, experiment in enumerate((incident.experiment, *incident.variants)):
            name = f"{incident.name}-{number}" if number else incident.name
            found[name] = (incident.conversation.thread, experiment)
    return found


@contextmanager
def seeded_store(folder: Path, url: str = "") -> Iterator[SeededStore]:
    """Seeds every incident among a few ordinary threads: into a SQLite file of the folder, or a Postgres database.

    Check files are where the incidents say, from the folder.
    """
    folder.mkdir(exist_ok=True)
    with running(folder / "backoffice.sqlite") as backoffice:
        seed(url or str(folder / "prod.sqlite"), backoffice, now=NOW, n_ordinary=3)
        (folder / "fixtures").symlink_to(REPOSITORY / "fixtures")
        (folder / "agentctl.yaml").write_text(yaml.safe_dump(_configuration(folder)), encoding="utf-8")
        yield SeededStore(folder, url or str(folder / "prod.sqlite"), "" if url else "prod", backoffice)


def _configuration(folder: Path) -> dict[str, object]:
    document: dict[str, dict[str, dict[str, str]]] = yaml.safe_load((REPOSITORY / "agentctl.yaml").read_text("utf-8"))
    flow = document["workflows"]["support_refunds"]
    return {
        "profiles": {"prod": {"store": str(folder / "prod.sqlite"), "access": "read"}},
        "workflows": {"support_refunds": {key: str(REPOSITORY / text) for key, text in flow.items()}},
    }
