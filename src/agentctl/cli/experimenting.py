"""What `replay`, `fork` and `diagnose` share: the debug store, the graph, the case, the plan on stderr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentctl.cli.admission import admitted
from agentctl.cli.env import Env
from agentctl.cli.grouped import FormOptions, RunOptions
from agentctl.cli.opening import Opened
from agentctl.cli.output import relay, say
from agentctl.codec import jsontext
from agentctl.errors import UsageError
from agentctl.records.runs import Plan, RunGroup, SideEffects
from agentctl.render.runs import plan_lines
from agentctl.revisions.grammar import Call, Id, Revision
from agentctl.revisions.scope import Resolution

if TYPE_CHECKING:
    from agentctl.config.stores import StoreChoice
    from agentctl.config.workflows import GraphChoice
    from agentctl.experiments.benches import Bench
    from agentctl.experiments.forking.forms import Forms
    from agentctl.experiments.isolated.outside import Isolation
    from agentctl.experiments.judging.evidence import Evidence
    from agentctl.experiments.settings import GraphSource, Settings
    from agentctl.stores.base import Writer

ESCAPED_OR_BLOCKED, GRAPH_RAISED, ANSWER_IS_NO = 5, 6, 1


@dataclass(frozen=True, slots=True)
class Underway:
    """Where the work of a command can be done, and the case that keeps its evidence."""

    bench: Bench
    evidence: Evidence


def read_settings(opened: Opened, options: RunOptions) -> Settings:
    """Returns the run options parsed."""
    from agentctl.experiments import settings as chosen
    from agentctl.experiments.runs.running import Limits

    return chosen.Settings(
        tools=chosen.parse_tools(options.tools),
        stubs=chosen.parse_stubs(options.stub or ()),
        live_reads=options.live_reads,
        effects=chosen.parse_effects(options.effect or ()),
        answers=chosen.parse_answers(options.resume or ()),
        configurable=chosen.parse_configurable(options.configurable or ()),
        context=read_context(options.context, opened.env.cwd),
        limits=Limits(options.timeout, options.max_steps),
        env=chosen.parse_env(options.env or ()),
        drop=tuple(options.drop or ()),
        reason=options.reason or "",
        cwd=opened.env.cwd,
    )


def read_isolation(opened: Opened, options: RunOptions) -> Isolation:
    """Returns the options of the process that runs are made in."""
    from agentctl.experiments.isolated.outside import parse_isolation

    return parse_isolation(options.isolation, options.allow_host or (), options.allow_env or (), opened.env.environ)


def choose_graph(opened: Opened, found: Resolution, options: RunOptions) -> GraphChoice:
    """Returns the graph that `--graph`, the thread's metadata or the only workflow names."""
    row = opened.reader.rows(opened.thread, found.ns, ids=[found.id])[0]
    return opened.config.graph_for(row.metadata, options.graph)


def find_graph(opened: Opened, found: Resolution, options: RunOptions) -> GraphSource:
    """Returns where the chosen graph's code is."""
    from agentctl.experiments.settings import GraphSource

    choice = choose_graph(opened, found, options)
    workflow = choice.workflow
    return GraphSource(
        graph=choice.graph,
        name=choice.name,
        sandbox=workflow.sandbox if workflow else None,
        production=workflow.production if workflow else None,
        model=options.model or (workflow.model if workflow else None),
    )


@contextmanager
def target_store(opened: Opened, to: str | None) -> Iterator[tuple[Writer, StoreChoice]]:
    """Gives the store that copies go to. Nothing is made before the first copy, so that a refused one leaves nothing.

    Raises:
        Refused: the store may only be read.
    """
    from agentctl.stores.open import open_writer

    choice = opened.config.target_of(to, debug_flag=opened.stores.debug_flag)
    with admitted(opened.env, opened.config, choice, "write"):
        writer = open_writer(choice.url, profile=choice.profile, schema=choice.schema)
        try:
            yield writer, choice
        finally:
            writer.close()


@contextmanager
def experiment(opened: Opened, found: Resolution, options: RunOptions, verb: str) -> Iterator[Underway]:
    """Gives an experiment on a resolved target; the plan goes to stderr before anything is copied or run.

    What the graph itself prints meanwhile goes to stderr too: stdout is the answer alone.

    Raises:
        Refused: the thread's id is personal and the source is masked, or the debug store may not be written.
    """
    opened.require_nameless()
    from agentctl.casebook.cases import case_for
    from agentctl.experiments.benches import Given, Hearing, open_bench
    from agentctl.experiments.experiment import DebugStore, Target
    from agentctl.experiments.judging.evidence import Evidence

    env, info = opened.env, opened.reader.info
    target = Target(opened.thread, found.id, found.ns, info.url, info.profile, found.call)
    graph, settings, isolation = (
        find_graph(opened, found, options),
        read_settings(opened, options),
        read_isolation(opened, options),
    )
    with target_store(opened, options.to) as (writer, choice):
        root = opened.config.cases_root(opened.config.debug_store(opened.stores.debug_flag))
        case = case_for(root, options.case, target.place, now=env.now(), reason=options.reason or "")
        evidence = Evidence(case, env.now)
        given = Given(
            opened.reader,
            DebugStore(choice.url, writer, choice.profile, choice.schema),
            target,
            graph,
            replace(settings, case=case.name),
            tuple(options.check or ()),
            opened.branch_id(found.ns),
        )
        hearing = Hearing(
            plan=lambda plan: _tell_plan(env, plan, verb), threads=evidence.threads, output=partial(relay, env)
        )
        with open_bench(given, isolation, hearing, environ=env.environ, output=env.stderr) as bench:
            yield Underway(bench, evidence)


def _tell_plan(env: Env, plan: Plan, verb: str) -> None:
    for line in plan_lines(plan, verb):
        say(env, line)


def read_forms(opened: Opened, forms: FormOptions, options: RunOptions) -> Forms:
    """Returns the forms of a fork; files are relative to the working folder."""
    from agentctl.experiments.forking.forms import parse_forms

    return parse_forms(
        answer=forms.answer or (),
        patch=forms.patch or (),
        assign=forms.set_value or (),
        update=forms.update,
        as_node=forms.as_node,
        goto=forms.goto,
        resume=options.resume or (),
        new_input=forms.input_file,
        memory=forms.memory or (),
        read_file=lambda path: (opened.env.cwd / Path(path).expanduser()).read_text("utf-8"),
    )


def resolve_for_forms(opened: Opened, forms: Forms, *, to_run: bool) -> tuple[Resolution, tuple[str, ...]]:
    """Returns the checkpoint that a fork or diagnosis means, and notes on it.

    Without a revision that is where the first call of the forms waits. With no such call it is the head for a fork,
    and the start of the last turn for a diagnosis (`to_run`), where everything that led to the reply runs again.
    """
    from agentctl.experiments.comparing.turn import turn_start

    if opened.target.explicit:
        return opened.resolve(), ()
    notes = opened.edit_notes()
    if forms.calls:
        return opened.resolve(Revision(Call(forms.calls[0], None), 0)), notes
    if not to_run:
        return opened.resolve(), notes
    start = turn_start(opened.reader, opened.thread, opened.branch_id(""))
    return opened.resolve(Revision(Id(start), 0)), notes


def kept_options(options: RunOptions) -> list[str]:
    """Returns the options that a next command must repeat to mean the same."""
    words: list[str] = []
    for flag, values in (
        ("--check", options.check),
        ("--resume", options.resume),
        ("--configurable", options.configurable),
        ("--stub", options.stub),
        ("--drop", options.drop),
        ("--allow-host", options.allow_host),
        ("--allow-env", options.allow_env),
    ):
        for value in values or ():
            words += [flag, value]
    if options.graph:
        words += ["--graph", options.graph]
    if options.model:
        words += ["--model", options.model]
    if options.isolation:
        words += ["--isolation", options.isolation]
    return words


def exit_code(groups: Sequence[RunGroup], effects: SideEffects) -> int:
    """Returns the exit code of runs: escaped, then raised, then blocked, then a failing check."""
    runs = [run for group in groups for run in group.runs]
    if effects.escaped:
        return ESCAPED_OR_BLOCKED
    if any(run.status == "error" for run in runs):
        return GRAPH_RAISED
    if any(run.status == "blocked" for run in runs):
        return ESCAPED_OR_BLOCKED
    return ANSWER_IS_NO if any(run.failed for run in runs) else 0


def read_context(text: str | None, cwd: Path) -> dict[str, object] | None:
    """Returns the object of `--context`, or None.

    Raises:
        UsageError: it is not a JSON object.
    """
    if text is None:
        return None
    value = read_json(text, cwd, "--context")
    if not isinstance(value, dict):
        raise UsageError("--context takes a JSON object", hint="""--context '{"user_id": "u-1"}'""")
    return value


def read_json(text: str, cwd: Path, flag: str) -> object:
    """Returns the value of JSON text, or of the file that `@FILE` names.

    Raises:
        UsageError: no such file, or not JSON.
    """
    try:
        return jsontext.parse((cwd / text[1:]).read_text("utf-8") if text.startswith("@") else text)
    except OSError as error:
        raise UsageError(f"{flag} {text}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{flag} {text}: not JSON: {error}", hint="a text is in double quotes: '\"yes\"'") from error
