"""`agentctl tour`: incidents that really happened, walked from the customer to the verdict."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentctl.cli import options
from agentctl.cli.env import Env
from agentctl.cli.output import Answer, console, emit
from agentctl.config.load import Config, load_config
from agentctl.errors import Escaped
from agentctl.records.tour import TourReport
from agentctl.render import tour as rendering

if TYPE_CHECKING:
    from rich.console import RenderableType

ANSWER_IS_NO = 1


def tour(
    ctx: typer.Context,
    workflow: Annotated[
        str | None, typer.Option("--workflow", metavar="NAME", help="Only this workflow's incidents.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="URL", help="Seed this Postgres database instead of .agentctl/tour/prod.sqlite."
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option("--dir", metavar="FOLDER", help="Lay the example project out here, and work there."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Seed a production store by really running the workflows, then walk their incidents to a verdict each.

    Works in the project whose agentctl.yaml names incidents; where there is none, the example project is laid out in
    ./agentctl-tour first. Everything in .agentctl/tour is made anew each time. Needs no network.

    Example: agentctl tour

    JSON: agentctl.tour/1 {store, items, n_total, truncated, side_effects, backoffice_unchanged, store_unchanged}.

    Exit: 0 every verdict as expected and nothing moved, 1 not so, 4 the extra `workflows` is missing, 5 refused, or a
    tool call escaped.
    """
    env: Env = ctx.obj
    from agentctl.cli.touring.example import require_workflows_extra
    from agentctl.cli.touring.stage import workflows_with_incidents
    from agentctl.cli.touring.visit import visit

    require_workflows_extra()
    config = _project(env, folder)
    report = visit(env, config, workflows_with_incidents(config, workflow), store, lambda parts: _tell(env, parts))
    emit(
        env,
        Answer(
            human=lambda width: rendering.human(report, width),
            plain=lambda: rendering.plain(report),
            document=lambda: rendering.as_document(report),
        ),
    )
    if not env.is_terminal:
        _tell(env, rendering.closing(report))
    raise typer.Exit(exit_code(report))


def _project(env: Env, folder: str | None) -> Config:
    """Returns the configuration of the project to walk: the one around the working folder, else the example's."""
    from agentctl.cli.touring.example import EXAMPLE, lay_out
    from agentctl.cli.touring.stage import workflows_with_incidents

    if folder is None:
        config = load_config(env.cwd, env.environ)
        if workflows_with_incidents(config):
            return config
    place = env.cwd / Path(folder or EXAMPLE).expanduser()
    if lay_out(place):
        _tell(env, [f"the example project is in {place}"])
    return load_config(place, env.environ)


def _tell(env: Env, parts: Iterable[RenderableType]) -> None:
    """Shows a part of the walk on stderr, as it comes; silent under --json."""
    if env.as_json:
        return
    err = console(env, stderr=True)
    for part in parts:
        err.print(part, soft_wrap=True)
    env.stderr.flush()


def exit_code(report: TourReport) -> int:
    """Returns 5 where a tool call escaped, 1 where anything else is not as it must be, else 0."""
    if report.side_effects.escaped:
        return Escaped.exit_code
    return 0 if report.as_expected else ANSWER_IS_NO
