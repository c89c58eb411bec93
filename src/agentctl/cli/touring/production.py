"""The production store of a tour: made anew by real runs, then only looked at."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from agentctl.cli.touring.stage import Stage
from agentctl.config.debug import sqlite_file
from agentctl.config.load import STORE_VARIABLE, Config
from agentctl.config.profiles import DEBUG
from agentctl.errors import AgentctlError, ConfigError, Refused, UsageError
from agentctl.sandbox.failures import graph_failed
from agentctl.stores.fingerprint import fingerprint
from agentctl.stores.open import open_reader
from agentctl.stores.urls import hide_password, parse_store_url

FOLDER = Path(".agentctl") / "tour"
DATABASE = "prod.sqlite"
DEBUG_DATABASE = "debug.sqlite"


@dataclass(frozen=True, slots=True)
class Production:
    """A seeded store.

    Attributes:
        url: Its address as the seeding application has it.
        profile: The profile that names it in the project, or ''.
        told: By thread, what the customer was told last.
    """

    url: str = field(repr=False)
    profile: str
    told: Mapping[str, str]

    @property
    def shown(self) -> str:
        """The store by profile, or by address without its password."""
        return self.profile or hide_password(self.url)

    @property
    def prefix(self) -> str:
        """What stands in front of a thread in a target."""
        return f"{self.profile}::" if self.profile else ""

    @property
    def exports(self) -> tuple[str, ...]:
        """Commands of a shell after which targets without a profile are in this store."""
        if self.profile:
            return ()
        shown = hide_password(self.url)
        return (f"export {STORE_VARIABLE}={shlex.quote(shown)}" + ("" if shown == self.url else "  # your password"),)

    def environ(self, environ: Mapping[str, str], reading: str) -> Mapping[str, str]:
        """Returns an environment in which targets without a profile are in this store, read at `reading`."""
        return environ if self.profile else {**environ, STORE_VARIABLE: reading}


def seed_production(
    stages: Sequence[Stage], config: Config, project: Path, staging: Path, store: str | None, *, now: datetime
) -> Production:
    """Seeds the store by running every workflow for real.

    Without `store` that is the project's own SQLite file, replaced only once all went well.

    Args:
        stages: The workflows' stages.
        config: The project's configuration.
        project: Its folder.
        staging: An empty folder on the same file system, to seed in.
        store: `postgresql://...`, or None.
        now: Days in the incidents are counted back from this.

    Raises:
        UsageError: `store` is no Postgres database.
        Refused: it holds threads that seeding would go on with.
        GraphFailed: a workflow or what it calls raised.
    """
    if store is not None:
        if parse_store_url(store).kind != "postgres":
            raise UsageError(
                f"--store takes postgresql://..., not {store}", hint=f"without it the tour seeds {FOLDER / DATABASE}"
            )
        _refuse_used(store, {thread for stage in stages for thread in stage.threads})
        return Production(store, "", _seeded(stages, store, now))
    told = _seeded(stages, str(staging / DATABASE), now)
    target = project / FOLDER
    _replace(staging, target)
    return Production(str(target / DATABASE), _profile_of(config, target / DATABASE), told)


@contextmanager
def reading_url(production: Production) -> Generator[tuple[str, tuple[str, ...]]]:
    """Gives the address to look at the store with, and warnings: in Postgres that of a role that may only SELECT."""
    if parse_store_url(production.url).kind != "postgres":
        yield production.url, ()
        return
    from agentctl.stores.postgres.reading_role import reading_role

    with reading_role(parse_store_url(production.url).location) as url:
        if url is None:
            yield production.url, ("no role that may only SELECT could be made: looked as the user of --store",)
        else:
            yield url, ()


def forget_earlier_walk(project: Path) -> None:
    """Deletes the debug store and the cases of the tour before this one."""
    folder = project / FOLDER
    for path in folder.glob(f"{DEBUG_DATABASE}*"):
        path.unlink()
    if (folder / "cases").is_dir():
        shutil.rmtree(folder / "cases")


def _seeded(stages: Iterable[Stage], url: str, now: datetime) -> dict[str, str]:
    try:
        return {thread: reply for stage in stages for thread, reply in stage.seed(url, now=now).items()}
    except AgentctlError:
        raise
    except Exception as error:
        raise graph_failed("seeding", error) from error


def _refuse_used(store: str, threads: set[str]) -> None:
    if not any(name.endswith(".checkpoints") for name in fingerprint(store)):
        return
    reader = open_reader(store)
    try:
        taken = sorted({head.thread for head in reader.heads()} & threads)
    finally:
        reader.close()
    if taken:
        raise Refused(
            f"{hide_password(store)} holds thread {taken[0]} already ({len(taken)} of those that the tour makes)",
            hint="give the tour a new database: createdb agentctl_tour",
        )


def _replace(staging: Path, target: Path) -> None:
    """Moves the seeded files to where the project has them; the database itself goes last."""
    target.mkdir(parents=True, exist_ok=True)
    new = sorted(staging.glob("prod*"), key=lambda path: path.name == DATABASE)
    for stale in target.glob(f"{DATABASE}-*"):
        stale.unlink()
    for path in new:
        path.replace(target / path.name)


def _profile_of(config: Config, file: Path) -> str:
    """Returns the profile whose store is this file, or ''."""
    for name in config.profile_names:
        if name == DEBUG:
            continue
        try:
            found = sqlite_file(config.store_of(name).url)
        except (ConfigError, Refused):
            continue
        if found == file:
            return name
    return ""
