"""What a command wants done with an experiment, as values: where it is done is another matter.

A work can be handed to another process and its answer handed back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, TypeVar

from agentctl.experiments.diagnose import diagnose
from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import Forms
from agentctl.experiments.replay import replay
from agentctl.records.runs import DiagnoseReport, ForkReport, ReplayReport
from agentctl.records.views import View

MAX_RUNS: Final = 1000
"""How many runs of a kind one command may make."""

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Work(Protocol[R_co]):
    """Something to do with an experiment on a target. Its values can be pickled."""

    @property
    def report(self) -> type[R_co]:
        """The record that it answers with."""
        ...

    def do(self, experiment: Experiment, target: Target) -> R_co:
        """Does it, and returns the answer."""
        ...


@dataclass(frozen=True, slots=True)
class Replays:
    """Replays of the target. See `agentctl.experiments.replay.replay`."""

    n: int = 1
    report: ClassVar[type[ReplayReport]] = ReplayReport

    def do(self, experiment: Experiment, target: Target) -> ReplayReport:
        """See `Work.do`."""
        return replay(experiment, target, self.n)


@dataclass(frozen=True, slots=True)
class ForkRuns:
    """A fork of the target and its runs. See `agentctl.experiments.fork.fork`."""

    forms: Forms
    n: int = 1
    run: bool = True
    report: ClassVar[type[ForkReport]] = ForkReport

    def do(self, experiment: Experiment, target: Target) -> ForkReport:
        """See `Work.do`."""
        return fork(experiment, target, self.forms, self.n, run=self.run)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A diagnosis of the target. See `agentctl.experiments.diagnose.diagnose`."""

    forms: Forms | None
    n: int = 5
    trust_rest: bool = False
    branch: str | None = None
    options: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    view: View | None = None
    report: ClassVar[type[DiagnoseReport]] = DiagnoseReport

    def do(self, experiment: Experiment, target: Target) -> DiagnoseReport:
        """See `Work.do`."""
        return diagnose(
            experiment,
            target,
            self.forms,
            n=self.n,
            trust_rest=self.trust_rest,
            branch=self.branch,
            options=self.options,
            notes=self.notes,
            view=self.view,
        )
