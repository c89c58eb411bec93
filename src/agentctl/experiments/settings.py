"""What a person chose for the runs of one command, and where the application's code is; their texts parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agentctl.codec import jsontext
from agentctl.errors import UsageError
from agentctl.experiments.runs.resuming import Answers
from agentctl.experiments.runs.running import Limits
from agentctl.records.runs import Effect
from agentctl.sandbox.answers import ToolsMode

EFFECTS: tuple[Effect, ...] = ("read", "write", "state")
RECORDED: Final = "recorded"
"""As a model: the thread's own recorded answers, and no model."""


@dataclass(frozen=True, slots=True)
class GraphSource:
    """Where an application's code is.

    Attributes:
        graph: `path.py:attr` or `package.module:attr`.
        name: What messages call it.
        sandbox: Its sandbox tool registry, or None.
        production: Its production tool registry, or None; used for live reads alone.
        model: `provider:model` for a graph that takes one, `recorded` for any graph, or None.
        claims: Where the function is by which the application claims an answer, or None.
    """

    graph: str
    name: str
    sandbox: str | None = None
    production: str | None = None
    model: str | None = None
    claims: str | None = None

    @property
    def runs_no_model(self) -> bool:
        """Whether recorded answers stand for every model."""
        return self.model == RECORDED


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person chose for the runs of one command.

    Attributes:
        tools: `recorded`, or `sandbox` to leave the recording out.
        stubs: Answers by tool name, given by hand.
        live_reads: Whether tools of effect `read` may really run.
        effects: Effects said by hand.
        answers: Answers to interrupts.
        configurable: Configuration over the recorded one.
        context: Runtime context of the graph.
        limits: Limits of each run.
        env: Environment variables for the graph.
        drop: Channels that the graph has no more, whose values runs go on without.
        reason: Why.
        case: Case name.
        cwd: Folder that relative paths start at.
    """

    tools: ToolsMode = "recorded"
    stubs: Mapping[str, object] = field(default_factory=dict)
    live_reads: bool = False
    effects: Mapping[str, Effect] = field(default_factory=dict)
    answers: Answers = ()
    configurable: Mapping[str, object] = field(default_factory=dict)
    context: Mapping[str, object] | None = None
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    reason: str = ""
    case: str = ""
    cwd: Path = field(default_factory=Path.cwd)


def parse_stubs(texts: Sequence[str]) -> dict[str, object]:
    """Returns `--stub NAME=JSON` values by tool name; text that is not JSON stands for itself.

    Raises:
        UsageError: a text has no `=`.
    """
    return {name: _json_or_text(value) for name, value in (_pair(text, "--stub", "NAME=JSON") for text in texts)}


def parse_effects(texts: Sequence[str]) -> dict[str, Effect]:
    """Returns `--effect NAME=read|write|state` values by tool name.

    Raises:
        UsageError: a text has no `=` or names no effect.
    """
    found: dict[str, Effect] = {}
    for text in texts:
        name, value = _pair(text, "--effect", "NAME=read|write|state")
        effect = next((known for known in EFFECTS if known == value), None)
        if effect is None:
            raise UsageError(f"--effect {text}: no effect {value}", hint="read, write or state")
        found[name] = effect
    return found


def parse_configurable(texts: Sequence[str]) -> dict[str, object]:
    """Returns `--configurable KEY=VALUE` values; JSON where it is JSON, else text."""
    return {key: _json_or_text(value) for key, value in (_pair(text, "--configurable", "KEY=VALUE") for text in texts)}


def parse_env(texts: Sequence[str]) -> dict[str, str]:
    """Returns `--env NAME=VALUE` values."""
    return dict(_pair(text, "--env", "NAME=VALUE") for text in texts)


def parse_tools(text: str) -> ToolsMode:
    """Returns the mode of `--tools`.

    Raises:
        UsageError: it is neither `recorded` nor `sandbox`.
    """
    if text == "recorded":
        return "recorded"
    if text == "sandbox":
        return "sandbox"
    raise UsageError(f"--tools {text} is not for experiments", hint="--tools recorded, or --tools sandbox")


def parse_answers(texts: Sequence[str]) -> Answers:
    """Returns the answers of `--resume`, in order; each is JSON, or text that is not JSON."""
    return tuple(_json_or_text(text) for text in texts)


def _pair(text: str, flag: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{flag} takes {form}, not {text!r}")
    return name, value


def _json_or_text(text: str) -> object:
    try:
        return jsontext.parse(text)
    except ValueError:
        return text
