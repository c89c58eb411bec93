"""`agentctl sandbox`: starting a registry of sandbox tools, and whether one stands for production's."""

from __future__ import annotations

from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentctl.cli import options
from agentctl.cli.env import Env
from agentctl.cli.masking import MaskWish
from agentctl.cli.opening import open_stores
from agentctl.cli.output import Answer, emit, say
from agentctl.config.load import Config, load_config
from agentctl.errors import UsageError
from agentctl.render import parity as rendering
from agentctl.render import starters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentctl.sandbox.checking import Checked
    from agentctl.sandbox.recordings import Recording

app = typer.Typer(help="Start a registry of sandbox tools; check that one stands for production's.")

ANSWER_IS_NO = 1


@app.callback()
def root() -> None:
    """Start a registry of sandbox tools; check that one stands for production's."""


@app.command("check")
def check(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="WORKFLOW...", help="Only these; all of agentctl.yaml otherwise.")
    ] = None,
    env_var: options.EnvVar = None,
    as_json: options.Json = False,
) -> None:
    """Compare each workflow's sandbox registry with its production registry, and with what its graph can call.

    Both must have the same names, argument schemas, descriptions and effects; every write must have a stub that
    answers; every tool that the graph can call must be registered. A graph that brings its own tools needs no
    production registry: these are compared. Registries and graph are built and nothing is called: whatever reaches for
    the network meanwhile is refused.

    Example: agentctl sandbox check support_refunds --env SUPPORT_BACKOFFICE_URL=DUMMY

    JSON: agentctl.sandbox.check/1 {store, items, n_total, truncated, n_findings}.

    Exit: 0 the same, 1 not so, 5 the network was reached for, 6 a registry or the graph cannot be built.
    """
    env: Env = ctx.obj
    from agentctl.experiments.settings import parse_env
    from agentctl.sandbox.checking import check_workflows

    config = load_config(env.cwd, env.environ)
    wanted = _wanted(config, names or ())
    with redirect_stdout(env.stderr):
        found = check_workflows(wanted, env=parse_env(env_var or ()), cwd=env.cwd)
    emit(
        env,
        Answer(
            human=lambda width: rendering.human(found, width),
            plain=lambda: rendering.plain(found),
            document=lambda: rendering.as_document(found, str(config.file or "")),
        ),
    )
    raise typer.Exit(ANSWER_IS_NO if any(each.n_findings for each in found) else 0)


def _wanted(config: Config, names: Sequence[str]) -> list[Checked]:
    """Returns the workflows to check, each once.

    Raises:
        UsageError: there is none, or none of that name.
    """
    from agentctl.sandbox.checking import Checked

    if not config.workflows:
        raise UsageError("agentctl.yaml lists no workflows", hint="workflows: {NAME: {graph, sandbox, production}}")
    chosen = [config.workflow_for(name) for name in dict.fromkeys(names)] or list(config.workflows.values())
    return [Checked(flow.name, flow.graph, flow.production, flow.sandbox) for flow in chosen if flow is not None]


@app.command("init")
def init(
    ctx: typer.Context,
    threads: Annotated[
        list[str] | None,
        typer.Argument(metavar="THREAD...", help="Take examples from these; else from the newest threads of --store."),
    ] = None,
    graph: options.Graph = None,
    store: options.Store = None,
    schema: options.Schema = None,
    output: Annotated[str, typer.Option("--output", metavar="FILE", help="The file to write.")] = "sandbox_tools.py",
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="WORKFLOW", help="Name of the workflow; else that of the graph or its file."),
    ] = None,
    env_var: options.EnvVar = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file where it is there.")] = False,
    mask: options.Mask = None,
    ticket: options.Ticket = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """Write a starter registry for a graph that has none: its tools' schemas, answering with recorded results.

    Every effect is `write` until somebody says less: check them. Secrets of known names and shapes are left out of the
    examples, and personal data is masked, unless --no-mask says otherwise; what else the threads hold is in them. The
    graph is built and nothing is called. What to add to agentctl.yaml is printed.

    Example: agentctl sandbox init --graph agent.py:graph --store prod.sqlite support-17

    JSON: agentctl.sandbox.init/1 {file, graph, workflow, tools, left_out, threads, config}.

    Exit: 0 written, 2 the graph has no tools, 3 no such thread, 5 the file is there, 6 the graph cannot be built.
    """
    env: Env = ctx.obj
    from agentctl.experiments.settings import parse_env
    from agentctl.sandbox.checking import load_found
    from agentctl.sandbox.specs import parse_spec
    from agentctl.sandbox.starting.files import require_free, write_whole
    from agentctl.sandbox.starting.source import source_of
    from agentctl.sandbox.starting.starter import starter_of

    config = load_config(env.cwd, env.environ)
    choice = config.graph_for({}, graph)
    file = env.cwd / Path(output).expanduser()
    require_free(file, force=force)
    spec = parse_spec(choice.graph, cwd=env.cwd)
    with redirect_stdout(env.stderr):
        found = load_found(choice.graph, env=parse_env(env_var or ()), cwd=env.cwd)
    base = config.file.parent if config.file else env.cwd
    starter = starter_of(
        found,
        _recordings(env, store, schema, threads or (), MaskWish(mask, unsaid=True)),
        graph=f"{_relative(spec.file, base)}:{spec.attr}" if spec.file else choice.graph,
        workflow=name or (choice.name if ":" not in choice.name else (spec.file or Path(spec.module)).stem),
        spec=choice.graph,
    )
    write_whole(file, source_of(starter), force=force)
    lines = starters.config_lines(starter, f"{_relative(file.resolve(), base)}:registry")
    emit(
        env,
        Answer(
            human=lambda width: starters.human(starter, output, lines, width),
            plain=lambda: starters.plain(starter, output),
            document=lambda: starters.as_document(starter, output, lines),
        ),
    )
    if not env.is_terminal:
        say(env, "\n".join(("add to agentctl.yaml:", *lines)))


def _recordings(
    env: Env, store: str | None, schema: str | None, threads: Sequence[str], mask: MaskWish
) -> dict[str, Recording]:
    """Returns recordings by thread; none where neither a store nor a thread is named."""
    if store is None and not threads:
        return {}
    from agentctl.sandbox.starting.reading import read_recordings

    with open_stores(env, store=store, schema=schema, mask=mask) as stores:
        return read_recordings(stores.reader(""), threads)


def _relative(file: Path, base: Path) -> str:
    base = base.resolve()
    return str(file.relative_to(base)) if file.is_relative_to(base) else str(file)
