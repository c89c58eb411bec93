"""`agentctl config show`: what is in force and where it comes from."""

from __future__ import annotations

import typer

from agentctl.cli import options
from agentctl.cli.output import Answer, emit
from agentctl.config.load import load_config
from agentctl.config.show import list_settings
from agentctl.render.grid import Column, grid
from agentctl.render.machine import document

app = typer.Typer(help="Show the configuration.")

_COLUMNS = (Column("setting", style="cyan"), Column("value", shrink_to=20), Column("from", shrink_to=12, style="dim"))


@app.callback()
def root() -> None:
    """Show the configuration."""


@app.command("show")
def show(ctx: typer.Context, as_json: options.Json = False) -> None:
    """Print every setting in force with where it comes from: flag, environment, file or default. Secrets are hidden.

    JSON: agentctl.config/1 {store, items: [{name, value, origin}], n_total, truncated}.
    """
    env = ctx.obj
    config = load_config(env.cwd, env.environ)
    settings = list_settings(config)
    rows = [(setting.key, setting.value, str(setting.origin)) for setting in settings]
    items = [{"name": name, "value": value, "origin": origin} for name, value, origin in rows]
    emit(
        env,
        Answer(
            human=lambda width: grid(_COLUMNS, rows, width),
            plain=lambda: rows,
            document=lambda: document(
                "config",
                {"store": str(config.file or ""), "items": items, "n_total": len(items), "truncated": False},
            ),
        ),
    )
