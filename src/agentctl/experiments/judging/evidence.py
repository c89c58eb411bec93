"""Evidence of an experiment, kept in its case: debug threads before they are made, runs, calls, recording, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentctl.casebook.ledger import add_report, add_runs, add_threads, keep_recording
from agentctl.records.cases import Case
from agentctl.records.copies import Place
from agentctl.records.runs import RunGroup
from agentctl.sandbox.recordings import Recording


@dataclass(frozen=True, slots=True)
class Evidence:
    """One command's entry into a case.

    Attributes:
        case: The open case.
        now: The clock, UTC.
    """

    case: Case
    now: Callable[[], datetime]

    def threads(self, threads: Sequence[Place], kind: str) -> None:
        """Notes debug threads that are about to be made, so that closing the case finds them whatever happens."""
        add_threads(self.case, threads, kind=kind, now=self.now())

    def keep(
        self,
        verb: str,
        source: Place,
        groups: Sequence[tuple[str, RunGroup]],
        recording: Recording,
        document: Mapping[str, object],
    ) -> None:
        """Keeps the recording that answered, every run with its calls, and the command's JSON document.

        Args:
            verb: The command.
            source: The checkpoint that the runs started from.
            groups: Runs by kind, `replay` or `fork`.
            recording: What the tools answered in the source thread.
            document: What the command answers under `--json`.
        """
        keep_recording(self.case, recording.to_json())
        for kind, group in groups:
            add_runs(self.case, group.runs, kind=kind, source=source, now=self.now())
        add_report(self.case, verb, document)
