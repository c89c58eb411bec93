"""A whole tour of a project, from the first seed to the last comparison."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path

from agentctl.cli.env import Env
from agentctl.cli.touring.production import (
    DATABASE,
    DEBUG_DATABASE,
    FOLDER,
    Production,
    forget_earlier_walk,
    reading_url,
    seed_production,
)
from agentctl.cli.touring.stage import Stage, staged
from agentctl.cli.touring.walk import Ground, Tell, story, walk
from agentctl.config.load import Config
from agentctl.config.workflows import Workflow
from agentctl.experiments.isolated.outside import VARIABLE as ISOLATION
from agentctl.records.runs import SideEffects
from agentctl.records.tour import Incident, TourItem, TourReport
from agentctl.render import tour as rendering
from agentctl.stores.fingerprint import differences, fingerprint
from agentctl.stores.urls import hide_password


def visit(env: Env, config: Config, workflows: Sequence[Workflow], store: str | None, tell: Tell) -> TourReport:
    """Seeds a production store, walks every incident in it, and tells whether anything moved meanwhile.

    Args:
        env: The world.
        config: The project's configuration.
        workflows: Which have incidents.
        store: A Postgres database to seed instead of the project's SQLite file, or None.
        tell: Shows parts of the walk as they come.
    """
    assert config.file is not None
    project = config.file.parent
    with _stages(workflows, project) as (stages, staging):
        n_incidents = sum(len(stage.incidents) for stage in stages)
        tell([rendering.opening(project, n_incidents, hide_password(store) if store else str(FOLDER / DATABASE))])
        production = seed_production(stages, config, project, staging, store, now=env.now())
        forget_earlier_walk(project)
        rows, counted = fingerprint(production.url), [stage.counters() for stage in stages]
        with reading_url(production) as (url, warnings):
            ground = _ground(env, project, production, url)
            tell(rendering.seeded(len(production.told), production.shown, warnings))
            walked = [
                _walk(ground, workflow.name, incident, production, tell)
                for workflow, stage in zip(workflows, stages, strict=True)
                for incident in stage.incidents
            ]
        return TourReport(
            store=production.shown,
            items=tuple(item for item, _ in walked),
            side_effects=_together([effects for _, effects in walked]),
            backoffice_unchanged=counted == [stage.counters() for stage in stages],
            changed=differences(rows, fingerprint(production.url)),
            next=_next(env, project, production, stages[0].incidents[0]),
            warnings=warnings,
        )


@contextmanager
def _stages(workflows: Sequence[Workflow], project: Path) -> Generator[tuple[list[Stage], Path]]:
    """Opens every workflow's stage, and gives an empty folder on the project's file system."""
    (project / FOLDER.parent).mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="seeding-", dir=project / FOLDER.parent) as staging, ExitStack() as open_:
        scratch = [Path(open_.enter_context(tempfile.TemporaryDirectory(prefix="backoffice-"))) for _ in workflows]
        yield (
            [open_.enter_context(staged(flow, project, place)) for flow, place in zip(workflows, scratch, strict=True)],
            Path(staging),
        )


def _ground(env: Env, project: Path, production: Production, url: str) -> Ground:
    """Returns where incidents are walked: in this process, unless the shell says otherwise, as a walk has many steps.

    What moved outside is counted at the end, whatever holds the runs.
    """
    cwd = env.cwd if env.cwd.is_relative_to(project) else project
    return Ground(
        env=env,
        cwd=cwd,
        environ={ISOLATION: "off", **production.environ(env.environ, url)},
        flags=("--debug-store", _from(cwd, project / FOLDER / DEBUG_DATABASE)),
        store=production.shown,
        prefix=production.prefix,
    )


def _from(cwd: Path, file: Path) -> str:
    """Returns a file as a flag names it: short where the process stands in `cwd`, absolute where it does not."""
    return os.path.relpath(file, cwd) if cwd == Path.cwd() else str(file)


def _walk(
    ground: Ground, workflow: str, incident: Incident, production: Production, tell: Tell
) -> tuple[TourItem, SideEffects]:
    tell(rendering.incident_head(incident, production.told.get(incident.thread, ""), ground.env.width))
    return walk(ground, workflow, incident, tell)


def _together(each: Sequence[SideEffects]) -> SideEffects:
    totals: Mapping[str, int] = {
        field.name: sum(getattr(effects, field.name) for effects in each) for field in fields(SideEffects)
    }
    return SideEffects(**totals)


def _next(env: Env, project: Path, production: Production, first: Incident) -> tuple[str, ...]:
    """Returns what to type next: where to stand, then one incident from the customer to a dataset."""
    stand = [] if env.cwd.is_relative_to(project) else [f"cd {shlex.quote(os.path.relpath(project, env.cwd))}"]
    own = project / ".venv" / "bin" / "agentctl"
    if own.exists() and shutil.which("agentctl", path=env.environ.get("PATH")) != str(own):
        stand.append("export PATH=$PWD/.venv/bin:$PATH")
    return (*stand, *production.exports, *story(first, production.prefix))
