"""Walks incidents: runs the commands that a person would type, and compares what they say with what must come out."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentctl.cli.env import Env
from agentctl.cli.output import Answer
from agentctl.errors import INTERRUPTED
from agentctl.records.runs import SideEffects
from agentctl.records.tour import Incident, TourItem

if TYPE_CHECKING:
    from rich.console import RenderableType

Tell = Callable[[Iterable["RenderableType"]], None]


@dataclass(frozen=True, slots=True)
class Ground:
    """Where the commands of a walk run.

    Attributes:
        env: The world of the tour itself; theirs differs in folder, environment and streams.
        cwd: Their working folder.
        environ: Their environment.
        flags: Flags of theirs that a person would leave out.
        store: The production store, to be shown.
        prefix: What stands in front of a thread in a target, `prod::` or ''.
    """

    env: Env
    cwd: Path
    environ: Mapping[str, str]
    flags: tuple[str, ...]
    store: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Ran:
    """One command that was run. `document` is empty and `error` says why where it gave no answer."""

    words: tuple[str, ...]
    shown: tuple[RenderableType, ...]
    document: Mapping[str, Any]
    error: str

    @property
    def command(self) -> str:
        """The command as a person types it."""
        return shlex.join(("agentctl", *self.words))


def commands_for(incident: Incident, prefix: str) -> tuple[tuple[str, ...], ...]:
    """Returns what is typed on an incident: find the thread, look at it, diagnose it."""
    target = f"{prefix}{incident.thread}"
    return (
        ("threads", *([prefix] if prefix else []), "--where", f"user_id={incident.user_id}"),
        ("history", target),
        ("diagnose", f"{target}{incident.revision}", *incident.options),
    )


def story(incident: Incident, prefix: str) -> tuple[str, ...]:
    """Returns the commands that lead from the customer to a dataset, as a person types them."""
    find, look, diagnose = commands_for(incident, prefix)
    read = ("show", f"{prefix}{incident.thread}", "--messages")
    keep = ("export", f"debug::{incident.thread}.fork-1", "--dataset", "regressions", "--format", "jsonl")
    return tuple(shlex.join(("agentctl", *words)) for words in (find, look, read, diagnose, keep))


def run(ground: Ground, words: tuple[str, ...], flags: Sequence[str] = ()) -> Ran:
    """Runs one command in this process, and gives its answer instead of printing it."""
    from agentctl.cli.main import main

    answers: list[tuple[tuple[RenderableType, ...], Mapping[str, Any]]] = []

    def take(answer: Answer) -> None:
        answers.append((tuple(answer.human(ground.env.width)), answer.document()))

    argv = (*words, *flags)
    inner = replace(
        ground.env,
        stdin=io.StringIO(),
        stdout=io.StringIO(),
        stderr=io.StringIO(),
        environ=ground.environ,
        cwd=ground.cwd,
        is_terminal=True,
        err_is_terminal=False,
        as_json=False,
        argv=argv,
        on_answer=take,
    )
    if main(argv, inner) == INTERRUPTED:
        raise KeyboardInterrupt
    if answers:
        shown, document = answers[-1]
        return Ran(words, shown, document, "")
    said = inner.stderr.getvalue().strip().splitlines() if isinstance(inner.stderr, io.StringIO) else []
    return Ran(words, (), {}, next((line for line in said if line.startswith("error:")), "no answer"))


def walk(ground: Ground, workflow: str, incident: Incident, tell: Tell) -> tuple[TourItem, SideEffects]:
    """Finds, looks at and diagnoses one incident; each command and its answer is told as soon as it is there."""
    for words in commands_for(incident, ground.prefix):
        ran = run(ground, words, ground.flags if words[0] == "diagnose" else ())
        tell([f"$ {ran.command}", *(ran.shown or [ran.error]), ""])
    return _item(ground, workflow, incident, ran), _effects(ran.document)


def problem_of(incident: Incident, document: Mapping[str, Any]) -> str:
    """Returns in what a diagnosis differs from what the incident was written for, '' where it does not."""
    expected, cause = incident.expected, document["cause"]
    if document["verdict"] != expected["verdict"]:
        return f"the verdict is {document['verdict']}, not {expected['verdict']}"
    calls = {change["call"]["name"] for change in cause["substituted"] if change["call"]}
    if "call" in expected and expected["call"] not in calls:
        return f"{expected['call']} is not named"
    if "fields" in expected and list(cause["fields"]) != expected["fields"]:
        return f"the fields are {', '.join(cause['fields'])}, not {', '.join(map(str, _list(expected['fields'])))}"
    escaped = document["side_effects"]["escaped"]
    return f"{escaped} tool calls ran for real" if escaped else ""


def _item(ground: Ground, workflow: str, incident: Incident, ran: Ran) -> TourItem:
    document, expected = ran.document, str(incident.expected["verdict"])
    if not document:
        return TourItem(workflow, incident.name, ground.store, 0, 0, 0, None, "", expected, 0, ran.error)
    forks = document["forks"]
    return TourItem(
        workflow=workflow,
        incident=incident.name,
        store=ground.store,
        n=document["replays"]["n"],
        n_failed=document["replays"]["n_failed"],
        fork_n=sum(fork["n"] for fork in forks),
        fork_n_failed=sum(fork["n_failed"] for fork in forks) if forks else None,
        verdict=document["verdict"],
        expected=expected,
        escaped=document["side_effects"]["escaped"],
        problem=problem_of(incident, document),
    )


def _effects(document: Mapping[str, Any]) -> SideEffects:
    return SideEffects(**document.get("side_effects", {}))


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]
