"""`agentctl run`: a workflow on a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from agentctl.cli import options
from agentctl.cli.admission import admitted
from agentctl.cli.env import Env
from agentctl.cli.grouped import WorkflowOptions, expanded
from agentctl.cli.workflows import Following, read_tools, refuse_server, workflow, workflow_store
from agentctl.codec import jsontext
from agentctl.config.load import Config, load_config
from agentctl.config.profiles import DEBUG
from agentctl.config.stores import StoreChoice
from agentctl.config.workflows import GraphChoice
from agentctl.errors import NotFound, Refused, UsageError
from agentctl.records.audit import Use
from agentctl.records.copies import Place, command

if TYPE_CHECKING:
    from agentctl.stores.base import Reader

_JSON_BEGINS = ("{", "[", '"')
_INPUT_HINT = "--input FILE.json, --input '{...}', or --input - for stdin"


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
    input_text: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="FILE|JSON",
            help="JSON input, or a file of it; `-` reads stdin. Without it a stopped thread goes on.",
        ),
    ] = None,
    discard_interrupt: Annotated[
        bool, typer.Option("--discard-interrupt", help="Let input replace a question that waits on the thread.")
    ] = False,
    store: options.Store = None,
    debug_store: options.DebugStore = None,
    ticket: options.Ticket = None,
    as_json: options.Json = False,
) -> None:
    """Run a workflow on a thread: start it, give it its next input, or go on where it stopped.

    With sandbox tools, in the debug store alone. Production tools need all three: a profile with access: write,
    --tools production, and AGENTCTL_ENV=production in the environment. One command at a time runs a thread.

    Example: agentctl run support_refunds --thread try-1 --input question.json --configurable user_id=u-1042

    JSON: agentctl.run/1 {target, workflow, tools, thread, status, nodes, tool_calls, reply, error, usage, plan, events,
    discarded, dry_run, side_effects, case, commands, warnings}.

    Exit: 0 done or waiting for an answer, 1 stopped by a limit, 2 wrong input, 5 blocked or refused, 6 the graph
    raised.
    """
    env: Env = ctx.obj
    from agentctl.experiments.runs.streaming import parse_modes
    from agentctl.experiments.workflows.departures import Stand
    from agentctl.experiments.workflows.graph_input import check_input
    from agentctl.experiments.workflows.runs import check_allowed, departure_with_input, read_stand, run_workflow
    from agentctl.stores.counting import count_reads

    config = load_config(env.cwd, env.environ)
    tools = read_tools(chosen.tools)
    parse_modes(chosen.stream or ())
    graph = _graph(config, name)
    choice, thread = _place(config, thread, tools, store, debug_store)
    if not chosen.dry_run:
        refuse_server(choice, thread)
        check_allowed(workflow_store(choice), tools, env.environ)
    value = _read_input(env, input_text)
    use: Use = "read" if chosen.dry_run else "write"
    with admitted(env, config, choice, use) as tally, _reader(choice) as reader:
        count_reads(reader, tally)
        rows = reader.rows(thread)
        metadata = rows[0].metadata if rows else {}
        _require_same_workflow(config, graph, metadata, Place(choice.shown, thread, None, choice.profile))
        if value is None and not rows:
            raise NotFound(f"{thread} has nothing to go on with", hint="give it input: --input FILE")
        with workflow(env, choice, graph, chosen, reader=reader, metadata=metadata) as ready:
            if value is not None:
                check_input(ready.graph, value, name=graph.name)
            follow = Following(env, "run", config, choice, graph, chosen, ready, metadata, debug_store)
            if chosen.dry_run:
                stand = read_stand(ready, thread) if rows else Stand()
                departure = departure_with_input(ready, thread, value, stand, discard_interrupt)
                raise typer.Exit(follow.answer_plan(departure))
            ended = run_workflow(
                ready,
                thread,
                value,
                discard_interrupt=discard_interrupt,
                seen=rows[0].id if rows else None,
                env=env.environ,
                watch=follow.watch,
            )
    raise typer.Exit(follow.answer(ended))


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


@contextmanager
def _reader(choice: StoreChoice) -> Iterator[Reader]:
    """Gives the store open for reading: a debug store that is missing is empty, any other an error."""
    from agentctl.stores.open import open_reader, open_writer

    opened = open_writer if choice.profile == DEBUG else open_reader
    reader = opened(choice.url, profile=choice.profile, schema=choice.schema)
    try:
        yield reader
    finally:
        reader.close()


def _require_same_workflow(config: Config, graph: GraphChoice, metadata: Mapping[str, object], place: Place) -> None:
    """Refuses a thread that another workflow made: its rows would not fit this one's channels."""
    made_by = next((metadata[key] for key in ("workflow", "graph_id") if isinstance(metadata.get(key), str)), None)
    if made_by is None or made_by == graph.name:
        return
    try:
        same = config.graph_for(metadata).graph == graph.graph
    except UsageError:
        same = False
    if not same:
        raise Refused(
            f"{place.target} was made by {made_by}, not by {graph.name}",
            hint=f"give another thread: {command('run', graph.name, '--thread', 'NAME', '--input', 'FILE')}",
        )


def _read_input(env: Env, text: str | None) -> object:
    """Returns the input, None where none is given."""
    if text is None:
        return None
    where = "--input"
    if not text.lstrip().startswith(_JSON_BEGINS):
        where = f"--input {text}"
        try:
            path = env.cwd / text.removeprefix("@")
            text = env.stdin.read() if text == "-" else path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise NotFound(f"{where}: {why}", hint=_INPUT_HINT) from error
    try:
        value: object = jsontext.parse(text)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON: {error}", hint=_INPUT_HINT) from error
    if value is None:
        raise UsageError(f"{where}: null is no input", hint="leave --input out to go on where it stopped")
    return value
