"""`agentctl doctor`: what is wrong with stored threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from agentctl.cli import options
from agentctl.cli.env import Env
from agentctl.cli.opening import Stores, open_in, open_stores
from agentctl.cli.output import Answer, emit, progress, say
from agentctl.errors import UsageError
from agentctl.records.faults import SEVERITIES, Examined, Severity, Tally
from agentctl.render import doctor as rendering
from agentctl.revisions.times import parse_age

if TYPE_CHECKING:
    from agentctl.stores.base import Reader
    from agentctl.upkeep.doctor.examine import Examination, HeadRule


def doctor(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="[PROFILE::][THREAD]", help="A thread; with --all the store, or nothing.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Every thread of the store, newest first.")] = False,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="PATH:ATTR",
            help="Also load this graph and compare it with the rows: what they name and it lacks, what a resume runs.",
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Questions that wait longer, such as 3d, are faults."),
    ] = None,
    level: Annotated[
        str, typer.Option("--level", metavar="LEVEL", help="Show findings down to: " + ", ".join(SEVERITIES) + ".")
    ] = "info",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="With --all: at most N threads.")] = 0,
    env_vars: options.EnvVar = None,
    store: options.Store = None,
    schema: options.Schema = None,
    literal: options.Literal = False,
    debug_store: options.DebugStore = None,
    ticket: options.Ticket = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """Say what is wrong with stored threads, and for each the command that helps.

    Looks at every checkpoint of the thread: tool calls and their results, parents, values, writes, joins, delta
    channels, metadata, questions that wait (docs/doctor.md has the list). Reads stored rows alone and writes nothing;
    with --graph a graph is loaded too, and no node of it runs.

    Example: agentctl doctor --all prod:: --level fault

    JSON: agentctl.doctor/1 {store, items, n_total, truncated, n_threads, n_faults, n_warnings, n_infos, notes}.

    Exit: 0 no faults, 1 faults, 3 no such thread, 4 no such store.
    """
    env = ctx.obj
    shown = _level(level)
    waited = parse_age(older_than) if older_than else None
    with open_stores(env, store=store, schema=schema, debug_store=debug_store) as stores, ExitStack() as stack:
        from agentctl.upkeep.doctor.examine import Examination

        reader, thread, profile = _scope(stores, target, everything=everything, literal=literal)
        rules = stack.enter_context(_graph_rules(env, stores, reader, graph, env_vars)) if graph else ()
        looked = _Looked(Examination(reader, env.now(), waited, rules, profile), thread, limit or None, shown)
        emit(
            env,
            Answer(
                human=lambda width: rendering.human(looked.examined(env), looked.summary, env.pasteable, width),
                plain=lambda: rendering.plain(looked.examined(env), env.pasteable),
                document=lambda: rendering.as_document(
                    str(reader.info), looked.examined(env), looked.summary, env.pasteable
                ),
            ),
        )
        if not env.is_terminal:
            for line in rendering.beside(looked.summary()):
                say(env, line)
    if looked.tally.n_faults:
        raise typer.Exit(1)


@dataclass(slots=True)
class _Looked:
    """What is being looked at, and how much of it has been.

    Attributes:
        examination: How.
        thread: The one thread, or None for all.
        limit: At most so many threads; None for all.
        shown: The least severity that is shown.
    """

    examination: Examination
    thread: str | None
    limit: int | None
    shown: Severity
    tally: Tally = field(default_factory=Tally)

    def examined(self, env: Env) -> Iterator[Examined]:
        """Yields threads as they are looked at, with the findings that are shown."""
        found: Iterator[Examined]
        if self.thread is not None:
            found = chain([self.examination.whole_store()], [self.examination.thread(self.thread)])
        else:
            found = self.examination.all_threads(self.limit, progress(env, "threads"))
        for each in found:
            self.tally.add(each)
            yield rendering.down_to(each, self.shown)

    def summary(self) -> rendering.Summary:
        """Returns what was looked at in all; called at the end."""
        n_threads = 1 if self.thread is not None else len(self.examination.names())
        return rendering.Summary(self.tally, n_threads, self.shown, self.examination.notes())


def _scope(stores: Stores, text: str, *, everything: bool, literal: bool) -> tuple[Reader, str | None, str]:
    """Returns the store, the thread unless all are meant, and what names the store on the command line."""
    if everything:
        if text and not text.endswith("::"):
            raise UsageError(f"--all is every thread of a store, not of {text}", hint="agentctl doctor --all prod::")
        return stores.reader(text.removesuffix("::")), None, text
    if not text or (text.endswith("::") and not literal):
        raise UsageError("doctor takes a thread, or --all", hint=f"agentctl doctor --all {text}".rstrip())
    opened = open_in(stores, text, literal=literal)
    if opened.target.explicit:
        raise UsageError(f"doctor looks at whole threads, not at {opened.target}", hint="leave the revision away")
    profile = opened.reader.info.profile
    return opened.reader, opened.thread, f"{profile}::" if profile else ""


@contextmanager
def _graph_rules(
    env: Env, stores: Stores, reader: Reader, graph: str | None, variables: list[str] | None
) -> Iterator[tuple[HeadRule, ...]]:
    """Gives the rules of a graph; what its code prints when it is imported goes to stderr."""
    from agentctl.experiments.settings import parse_env
    from agentctl.upkeep.doctor.graphs import GraphRules, graph_loaded

    choice = stores.config.graph_for({}, graph)
    sandbox = choice.workflow.sandbox if choice.workflow else None
    with (
        redirect_stdout(env.stderr),
        graph_loaded(choice.graph, sandbox=sandbox, env=parse_env(variables or ()), cwd=env.cwd) as loaded,
    ):
        yield (GraphRules(loaded, reader),)


def _level(text: str) -> Severity:
    for severity in SEVERITIES:
        if text == severity:
            return severity
    raise UsageError(f"no level {text}", hint="one of: " + ", ".join(SEVERITIES))
