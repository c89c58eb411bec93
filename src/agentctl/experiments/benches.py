"""Where the work of a command is done: in its own process, or in one that holds nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Protocol, TextIO

from agentctl.experiments.experiment import DebugStore, Experiment, Target
from agentctl.experiments.isolated.outside import Isolation
from agentctl.experiments.judging.checks import parse_checks
from agentctl.experiments.prepare import prepared, refuse_same_store
from agentctl.experiments.settings import GraphSource, Settings
from agentctl.experiments.works import R, Work
from agentctl.records.copies import Place
from agentctl.records.runs import Plan
from agentctl.sandbox.recordings import Recording
from agentctl.stores.base import Reader


class Bench(Protocol):
    """Where the work of one command is done."""

    @property
    def recording(self) -> Recording:
        """What the tools answered in the source thread; known once the work is done."""
        ...

    def do(self, work: Work[R]) -> R:
        """Does a work and returns its answer. One bench does one."""
        ...


@dataclass(frozen=True, slots=True)
class Given:
    """What a command gives to its work.

    Attributes:
        source: Where the target lives; only read.
        debug: Where debug threads go.
        target: The checkpoint.
        graph: The application.
        settings: What a person chose for the runs.
        checks: What failing means, as the command line has it: it may name code.
        branch: Tip of the branch whose recorded answers come first; None for the newest tip above the target.
    """

    source: Reader
    debug: DebugStore
    target: Target
    graph: GraphSource
    settings: Settings
    checks: tuple[str, ...] = ()
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Hearing:
    """Who hears what happens meanwhile.

    Attributes:
        plan: Given the plan before anything is copied or run.
        threads: Given the debug threads and `replay` or `fork` before they are made.
        output: Given what the graph's code prints, a line at a time, from another thread.
    """

    plan: Callable[[Plan], None]
    threads: Callable[[Sequence[Place], str], None]
    output: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Here:
    """See `Bench`: this process. `experiment` can run."""

    experiment: Experiment
    target: Target

    @property
    def recording(self) -> Recording:
        """See `Bench.recording`."""
        return self.experiment.recording

    def do(self, work: Work[R]) -> R:
        """See `Bench.do`."""
        return work.do(self.experiment, self.target)


@contextmanager
def here(given: Given, hearing: Hearing, output: TextIO) -> Iterator[Here]:
    """Gives the bench in this process, the graph loaded for the time of the block.

    Args:
        given: What the command gives.
        hearing: Who hears of plan and threads.
        output: Where what the graph's code prints goes, as it is.

    Raises:
        AgentctlError: see `agentctl.experiments.prepare.prepared`.
        Refused: the debug store is the source itself.
    """
    refuse_same_store(given.source, given.debug.writer, given.target)
    with (
        redirect_stdout(output),
        prepared(
            given.source,
            given.debug,
            given.target,
            given.graph,
            given.settings,
            check=parse_checks(given.checks, given.settings.cwd),
            branch=given.branch,
            on_plan=hearing.plan,
            on_threads=hearing.threads,
        ) as experiment,
    ):
        yield Here(experiment, given.target)


@contextmanager
def open_bench(
    given: Given, isolation: Isolation, hearing: Hearing, *, environ: Mapping[str, str], output: TextIO
) -> Iterator[Bench]:
    """Gives the bench that a person chose.

    Args:
        given: What the command gives.
        isolation: What a person chose for the process.
        hearing: Who hears what happens.
        environ: The command's environment.
        output: Where what the graph's code prints in this process goes.
    """
    if isolation.level == "off":
        with here(given, hearing, output) as bench:
            yield bench
        return
    from agentctl.experiments.isolated.apart import apart

    with apart(given, isolation, hearing, environ=environ) as far:
        yield far
