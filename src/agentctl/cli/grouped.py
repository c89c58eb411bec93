"""Groups of options that many commands have: a dataclass of options becomes the parameters of a command."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from agentctl.cli import options


@dataclasses.dataclass(frozen=True, slots=True)
class Where:
    """Where a target is looked for."""

    ns: options.Namespace = None
    branch: options.Branch = None
    store: options.Store = None
    schema: options.Schema = None
    literal: options.Literal = False
    debug_store: options.DebugStore = None
    ticket: options.Ticket = None


@dataclasses.dataclass(frozen=True, slots=True)
class RunOptions:
    """How the runs of an experiment are made and judged."""

    check: options.Check = None
    graph: options.Graph = None
    drop: options.Drop = None
    tools: options.Tools = "recorded"
    stub: options.Stub = None
    live_reads: options.LiveReads = False
    effect: options.EffectOf = None
    model: options.Model = None
    context: options.ContextJson = None
    configurable: options.Configurable = None
    resume: options.ResumeJson = None
    timeout: options.Timeout = 120.0
    max_steps: options.MaxSteps = 50
    env: options.EnvVar = None
    isolation: options.Isolation = None
    allow_env: options.AllowEnv = None
    allow_host: options.AllowHost = None
    to: options.To = None
    mask: options.Mask = None
    case: options.Case = None
    reason: options.Reason = None


@dataclasses.dataclass(frozen=True, slots=True)
class WorkflowOptions:
    """How a workflow is run on a thread of its own."""

    tools: options.WorkflowTools = "sandbox"
    stub: options.Stub = None
    effect: options.EffectOf = None
    model: options.Model = None
    context: options.ContextJson = None
    configurable: options.Configurable = None
    timeout: options.Timeout = 120.0
    max_steps: options.MaxSteps = 50
    env: options.EnvVar = None
    stream: options.Stream = None
    case: options.Case = None
    reason: options.Reason = None
    dry_run: options.DryRun = False


@dataclasses.dataclass(frozen=True, slots=True)
class FormOptions:
    """What a fork changes. All forms of one command are one fork."""

    answer: options.Answer = None
    patch: options.Patch = None
    set_value: options.SetValue = None
    update: options.Update = None
    as_node: options.AsNode = None
    goto: options.Goto = None
    input_file: options.InputFile = None
    memory: options.Memory = None


GROUPS = (Where, RunOptions, WorkflowOptions, FormOptions)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Returns a command whose parameters of a group's type are that group's options, one by one.

    The signature is what Typer reads; the command itself is called with the groups put together again.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    last: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.annotation in GROUPS:
            groups[parameter.name] = parameter.annotation
            parameters += _options_of(parameter.annotation)
        elif parameter.name == "as_json":
            last.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            kind = (
                parameter.KEYWORD_ONLY
                if parameters and parameters[-1].kind == parameter.KEYWORD_ONLY
                else parameter.kind
            )
            parameters.append(parameter.replace(kind=kind))

    @functools.wraps(command)
    def called(*args: Any, **kwargs: Any) -> None:
        given = {
            name: group(**{field.name: kwargs.pop(field.name) for field in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        command(*args, **kwargs, **given)

    whole = [*parameters, *last]
    called.__signature__ = signature.replace(parameters=whole)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in whole}
    del called.__wrapped__
    return called


def _options_of(group: type[Any]) -> Sequence[inspect.Parameter]:
    hints = inspect.get_annotations(group, eval_str=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(group)
    ]


Runs = Annotated[int, typer.Option("-n", metavar="N", min=1, max=1000, help="How many runs, at the same time.")]
