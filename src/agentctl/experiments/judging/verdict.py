"""The verdict: what N replays and M fork runs say about the cause, from counts and from what was changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentctl.experiments.judging.statistics import SIGNIFICANT, fisher_exact, runs_that_would_tell
from agentctl.records.runs import Cause, RunGroup, RunReport, RunStatus, Substitution, Verdict, VerdictName

Kind = Literal["tool_data", "state", "routing"]

_KINDS: dict[str, Kind] = {
    "--answer": "tool_data",
    "--patch": "tool_data",
    "--set": "state",
    "--update": "state",
    "--memory": "state",
    "--input": "state",
    "--resume": "state",
    "--goto": "routing",
}
_WORDS: dict[Kind, str] = {"tool_data": "tool data", "state": "state", "routing": "routing"}
_LETS_END: dict[RunStatus, str] = {
    "blocked": "--stub NAME=JSON",
    "interrupted": "--resume JSON",
    "timeout": "--timeout SECONDS",
    "step_limit": "--max-steps N",
}


@dataclass(frozen=True, slots=True)
class Untried:
    """A recorded result of the turn that no fork has changed, and the command that would."""

    name: str
    call_id: str
    command: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict is made from.

    Attributes:
        replays: Runs of the unchanged checkpoint.
        forks: Runs of the fork, or None where no form was given.
        substitutions: What the fork changed.
        fields: The changed paths, `lookup_order.status`.
        untried: Recorded results of the turn that the fork left as they were.
        trust_rest: The user says that those were checked.
        has_check: Whether failing was defined at all.
    """

    replays: RunGroup
    forks: RunGroup | None = None
    substitutions: tuple[Substitution, ...] = ()
    fields: tuple[str, ...] = ()
    untried: tuple[Untried, ...] = ()
    trust_rest: bool = False
    has_check: bool = True


def decide(evidence: Evidence) -> Verdict:
    """Returns the verdict that the counts allow, by the table of docs/verdict.md."""
    replays, forks = evidence.replays, evidence.forks
    p_value = None
    if forks and forks.n and replays.n:
        p_value = fisher_exact(replays.n_failed, replays.n, forks.n_failed, forks.n)
    if not evidence.has_check:
        return _verdict(
            evidence,
            "inconclusive",
            "No check says what failing means, so replies are only grouped: --check 'reply contains TEXT'.",
            None,
        )
    if replays.n == 0:
        return _undecided(evidence, replays, "replay")
    if replays.n_failed == 0:
        sentence = f"None of {replays.n} replays fails: the recorded state does not lead to the failure."
        return _verdict(evidence, "not_reproduced", sentence, p_value)
    if replays.n_failed < replays.n:
        return _nondeterminism(evidence, p_value)
    if forks is None:
        sentence = f"All {replays.n} replays fail; nothing was changed yet."
        return _verdict(evidence, "inconclusive", sentence, None, commands=_tries(evidence))
    if forks.n == 0:
        return _undecided(evidence, forks, "fork run")
    if forks.n_failed == forks.n:
        return _still_fails(evidence, p_value)
    if p_value is not None and p_value < SIGNIFICANT:
        return _cause(evidence, p_value)
    return _too_few(evidence, p_value)


def kind_of(substitutions: Sequence[Substitution]) -> Kind:
    """Returns which verdict the changed things stand for; tool data before routing before state where mixed."""
    kinds = {_KINDS[change.form.split(" ", 1)[0]] for change in substitutions}
    return next(kind for kind in ("tool_data", "routing", "state") if kind in kinds)


def group_replies(runs: Sequence[RunReport]) -> list[tuple[str, int]]:
    """Returns the distinct replies of ended runs with their counts, most frequent first."""
    return Counter(run.reply or "(no reply)" for run in runs if run.status == "done").most_common()


def p_text(p_value: float) -> str:
    """Returns `p = 0.008`, or `p < 0.001`."""
    return f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"


def _verdict(
    evidence: Evidence,
    name: VerdictName,
    sentence: str,
    p_value: float | None,
    *,
    commands: tuple[str, ...] = (),
    blamed: bool = False,
    remaining: tuple[float, float] | None = None,
) -> Verdict:
    cause = Cause(evidence.substitutions, evidence.fields) if blamed else Cause()
    return Verdict(name, sentence, cause, p_value, remaining, commands)


def _what(evidence: Evidence) -> str:
    names = [change.call[0] if change.call else change.path or change.form for change in evidence.substitutions]
    whose = " and ".join(dict.fromkeys(names))
    match kind_of(evidence.substitutions):
        case "tool_data":
            return f"{whose}'s result corrected"
        case "routing":
            return f"{whose} run next instead"
        case "state":
            return f"{whose} changed"


def _cause(evidence: Evidence, p_value: float) -> Verdict:
    forks = evidence.forks
    assert forks is not None
    kind = kind_of(evidence.substitutions)
    left = "the failure is gone" if forks.n_failed == 0 else f"{forks.n_failed} of {forks.n} still fail"
    sentence = f"{_WORDS[kind]}. With {_what(evidence)} {left} ({p_text(p_value)})."
    return _verdict(evidence, kind, sentence, p_value, blamed=True, remaining=forks.interval)


def _still_fails(evidence: Evidence, p_value: float | None) -> Verdict:
    forks = evidence.forks
    assert forks is not None
    changed = f"With {_what(evidence)} all {forks.n} fork runs still fail"
    if evidence.untried and not evidence.trust_rest:
        n = len(evidence.untried)
        rest = (
            "1 other recorded result of the turn is untried"
            if n == 1
            else f"{n} other recorded results of the turn are untried"
        )
        return _verdict(
            evidence, "not_the_cause", f"{changed}: not the cause. {rest}.", p_value, commands=_tries(evidence)
        )
    if any(run.model_ran for run in forks.runs):
        sentence = f"{changed}, and no other recorded result is left to try: the model or its prompt."
        return _verdict(evidence, "model_or_prompt", sentence, p_value)
    if any(run.usage.recorded for run in forks.runs):
        sentence = f"{changed}, and the models' answers were the recorded ones: a model that runs would tell."
        return _verdict(evidence, "inconclusive", sentence, p_value)
    sentence = f"{changed}, no other recorded result is left to try, and no model ran: the graph's own code."
    return _verdict(evidence, "graph_code", sentence, p_value)


def _nondeterminism(evidence: Evidence, p_value: float | None) -> Verdict:
    replays, forks = evidence.replays, evidence.forks
    rate = f"{replays.n_failed / replays.n:.0%}".replace("%", " %")
    sentence = f"The same state fails {replays.n_failed} times in {replays.n} ({rate}): runs differ by chance."
    blamed = forks is not None and p_value is not None and p_value < SIGNIFICANT
    if forks is not None and p_value is not None and blamed:
        sentence += f" With {_what(evidence)} {forks.n_failed} of {forks.n} fail ({p_text(p_value)})."
    remaining = forks.interval if forks else None
    return _verdict(evidence, "nondeterminism", sentence, p_value, blamed=blamed, remaining=remaining)


def _too_few(evidence: Evidence, p_value: float | None) -> Verdict:
    replays, forks = evidence.replays, evidence.forks
    assert forks is not None
    shown = f"{replays.n_failed} of {replays.n} replays and {forks.n_failed} of {forks.n} fork runs fail"
    needed = runs_that_would_tell(1.0, forks.n_failed / forks.n)
    more = f"; at these rates {needed} runs of each would tell (-n {needed})" if needed else ""
    shown_p = "" if p_value is None else f" ({p_text(p_value)})"
    return _verdict(
        evidence, "inconclusive", f"{shown}{shown_p}: too few to tell{more}.", p_value, commands=_tries(evidence)
    )


def _undecided(evidence: Evidence, group: RunGroup, noun: str) -> Verdict:
    stops = Counter(run.status for run in group.runs)
    told = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in stops.most_common()) or "none was made"
    hints = [run.blocked_hint for run in group.runs if run.blocked_hint]
    flags = hints[:1] or [_LETS_END[status] for status, _ in stops.most_common() if status in _LETS_END]
    way_out = f" To let them end: {', '.join(flags)}." if flags else ""
    return _verdict(evidence, "inconclusive", f"No {noun} was decided ({told}).{way_out}", None)


def _tries(evidence: Evidence) -> tuple[str, ...]:
    return tuple(untried.command for untried in evidence.untried)
