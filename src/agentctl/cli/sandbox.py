"""`agentctl sandbox check`: whether sandbox tools stand for production tools."""

from __future__ import annotations

from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import typer

from agentctl.cli import options
from agentctl.cli.env import Env
from agentctl.cli.output import Answer, emit
from agentctl.config.load import Config, load_config
from agentctl.errors import UsageError
from agentctl.render import parity as rendering

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentctl.sandbox.checking import Checked

app = typer.Typer(help="Check that sandbox tools stand for production tools.")

ANSWER_IS_NO = 1


@app.callback()
def root() -> None:
    """Check that sandbox tools stand for production tools."""


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
    answers; every tool that the graph can call must be registered. Registries and graph are built and nothing is
    called: whatever reaches for the network meanwhile is refused.

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
