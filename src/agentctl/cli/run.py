"""`agentctl run`: a workflow on a thread of its own."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from agentctl.cli import options
from agentctl.cli.env import Env
from agentctl.cli.grouped import WorkflowOptions, expanded
from agentctl.cli.workflows import answer_with, read_tools, workflow, workflow_store
from agentctl.config.load import Config, load_config
from agentctl.config.profiles import DEBUG
from agentctl.config.stores import StoreChoice
from agentctl.config.workflows import GraphChoice
from agentctl.errors import NotFound, UsageError


@expanded
def run(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="WORKFLOW", help="A workflow of agentctl.yaml, or a graph as --graph takes it.")
    ],
    chosen: WorkflowOptions,
    thread: Annotated[
        str,
        typer.Option("--thread", metavar="[PROFILE::]THREAD", help="The thread; in the debug store without PROFILE."),
    ],
    input_file: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="FILE", help="JSON input; `-` reads stdin. Without it a stopped thread goes on."
        ),
    ] = None,
    discard_interrupt: Annotated[
        bool, typer.Option("--discard-interrupt", help="Let input replace a question that waits on the thread.")
    ] = False,
    store: options.Store = None,
    debug_store: options.DebugStore = None,
    as_json: options.Json = False,
) -> None:
    """Run a workflow on a thread: start it, give it its next input, or go on where it stopped.

    With sandbox tools, in the debug store alone. Production tools need all three: a profile with access: write,
    --tools production, and AGENTCTL_ENV=production in the environment.

    Example: agentctl run support_refunds --thread try-1 --input question.json --configurable user_id=u-1042

    JSON: agentctl.run/1 {target, workflow, tools, thread, status, nodes, tool_calls, reply, error, usage,
    side_effects, warnings}.

    Exit: 0 done or waiting for an answer, 1 stopped by a limit, 5 blocked or refused, 6 the graph raised.
    """
    env: Env = ctx.obj
    from agentctl.experiments.workflow_runs import check_allowed, run_workflow
    from agentctl.stores.open import open_reader

    config = load_config(env.cwd, env.environ)
    tools = read_tools(chosen.tools)
    graph = _graph(config, name)
    choice, thread = _place(config, thread, tools, store, debug_store)
    check_allowed(workflow_store(choice), tools, env.environ)
    value = _read_input(env, input_file)
    _make_debug_store(choice)
    reader = open_reader(choice.url, profile=choice.profile, schema=choice.schema)
    try:
        rows = reader.rows(thread)
        metadata = rows[0].metadata if rows else {}
        with workflow(env, choice, graph, chosen, reader=reader, metadata=metadata) as ready:
            ended = run_workflow(ready, thread, value, discard_interrupt=discard_interrupt, env=env.environ)
    finally:
        reader.close()
    raise typer.Exit(answer_with(env, "run", choice, graph, tools, ended))


def _graph(config: Config, name: str) -> GraphChoice:
    try:
        return config.graph_for({}, name)
    except UsageError:
        if ":" not in name:
            config.workflow_for(name)
        raise


def _place(
    config: Config, text: str, tools: str, store: str | None, debug_store: str | None
) -> tuple[StoreChoice, str]:
    """Returns the store and the thread id; with sandbox tools and nothing else said, the debug store."""
    profile, separator, rest = text.partition("::")
    if separator and rest and profile in config.profile_names:
        return config.store_of(profile, debug_flag=debug_store), rest
    if tools == "sandbox" and store is None:
        return config.debug_store(debug_store), text
    return config.store_of(None, store, debug_flag=debug_store), text


def _make_debug_store(choice: StoreChoice) -> None:
    """Makes the debug store where it is missing; a production store that is missing stays an error."""
    from agentctl.stores.open import open_writer

    if choice.profile != DEBUG:
        return
    writer = open_writer(choice.url, profile=choice.profile, schema=choice.schema)
    try:
        writer.setup()
    finally:
        writer.close()


def _read_input(env: Env, file: str | None) -> object:
    if file is None:
        return None
    try:
        text = env.stdin.read() if file == "-" else (env.cwd / file).read_text("utf-8")
    except OSError as error:
        raise NotFound(f"--input {file}: {error.strerror}", hint="--input FILE.json, or --input - for stdin") from error
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise UsageError(
            f"--input {file}: not JSON: {error}", hint="--input FILE.json, or --input - for stdin"
        ) from error
    if value is None:
        raise UsageError(f"--input {file}: null is no input", hint="leave --input out to go on where it stopped")
    return value
