"""Seeded production stores of each workflow, and the incidents as test cases."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from fixtures.backoffice import BackOffice
from fixtures.incidents.common import Experiment

REPOSITORY = Path(__file__).parents[2]
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SUPPORT = "support_refunds"
_WORKFLOWS: Mapping[str, Mapping[str, str]] = yaml.safe_load((REPOSITORY / "agentctl.yaml").read_text("utf-8"))[
    "workflows"
]
WORKFLOWS = tuple(name for name, flow in _WORKFLOWS.items() if "incidents" in flow)


@dataclass(frozen=True)
class SeededStore:
    """A production store with its back office still running.

    `folder` has a configuration over this repository's workflow; `profile` names the store in it, '' for one that
    AGENTCTL_STORE has to name; `environ` is what the production tools need for reading; `counters` returns what all of
    the outside world counted.
    """

    folder: Path
    url: str
    profile: str
    backoffice: BackOffice
    environ: Mapping[str, str]
    counters: Callable[[], Mapping[str, Any]]


def experiments(workflow: str = SUPPORT) -> dict[str, tuple[str, Experiment]]:
    """Every experiment of every incident, variants too, by a name, with the thread that it is about."""
    found = {}
    for incident in _module(workflow, "files").load_incidents():
        for number, experiment in enumerate((incident.experiment, *incident.variants)):
            name = f"{incident.name}-{number}" if number else incident.name
            found[name] = (incident.thread, experiment)
    return found


@contextmanager
def seeded_store(
    folder: Path,
    url: str = "",
    workflow: str = SUPPORT,
    *,
    only: Collection[str] | None = None,
    n_ordinary: int = 3,
) -> Iterator[SeededStore]:
    """Seeds incidents among a few ordinary threads: into a SQLite file of the folder, or a Postgres database.

    Check files are where the incidents say, from the folder.

    Args:
        folder: Where all of it lies; made where missing.
        url: The database; '' for a file.
        workflow: Whose incidents.
        only: Names of incidents; None for all.
        n_ordinary: How many ordinary threads.
    """
    folder.mkdir(exist_ok=True)
    incidents = REPOSITORY / _WORKFLOWS[workflow]["incidents"]
    with _module(workflow, "stage").stage(incidents, folder, n_ordinary=n_ordinary) as stage:
        chosen = [one for one in _module(workflow, "files").load_incidents() if only is None or one.name in only]
        stage.run(url or str(folder / "prod.sqlite"), now=NOW, incidents=chosen)
        (folder / "fixtures").symlink_to(REPOSITORY / "fixtures")
        (folder / "agentctl.yaml").write_text(yaml.safe_dump(_configuration(folder, workflow)), encoding="utf-8")
        store = url or str(folder / "prod.sqlite")
        yield SeededStore(folder, store, "" if url else "prod", stage.backoffice, stage.environ, stage.counters)


def _module(workflow: str, name: str) -> Any:
    folder = Path(_WORKFLOWS[workflow]["incidents"])
    return importlib.import_module(".".join((*folder.parts, name)))


def _configuration(folder: Path, workflow: str) -> dict[str, object]:
    flow = {key: str(REPOSITORY / text) for key, text in _WORKFLOWS[workflow].items()}
    return {
        "profiles": {"prod": {"store": str(folder / "prod.sqlite"), "access": "read"}},
        "workflows": {workflow: flow},
    }
