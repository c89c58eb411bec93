"""Commands in a project folder of their own, on a production store that a real graph filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.testing import CliResult, run_cli
from tests.catalog import CATALOG, config_of, run_case
from tests.support import shop

AGENT, EDITED, ASKING, FAILED = "support 17", "support-18", "support-19", "support-20"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
PATCH = 'lookup_order:status="lost"'
CHECK = "reply contains no refund"


@dataclass(frozen=True, slots=True)
class Cli:
    """Runs commands in a project folder, three hours after its production threads were made."""

    cwd: Path
    prod: Path

    def __call__(
        self,
        *args: str | Path,
        terminal: bool = False,
        width: int = 80,
        environ: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> CliResult:
        return run_cli(
            *args, cwd=self.cwd, terminal=terminal, width=width, environ=environ, stdin=stdin, now=hours_later
        )

    def ids(self, target: str) -> list[str]:
        """Full ids of a thread's root checkpoints, newest first."""
        return [str(item["id"]) for item in self("history", target, "--json").json["items"]]

    def named(self, text: str, target: str) -> str:
        """Text with the ids of a thread replaced by their place from the oldest, of the same width when short."""
        for place, id in enumerate(reversed(self.ids(target))):
            text = text.replace(id, f"<id {place}>").replace(id[-8:], f"id-{place:05}")
        return text


def hours_later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=3)


def seed(folder: Path) -> Path:
    """Makes the production store; returns its file."""
    path = folder / "prod.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        graph = shop.agent()
        graph.checkpointer = saver
        config: Any = config_of(AGENT, user_id="u-1042") | {"metadata": {"workflow": "refunds"}}
        graph.invoke({"messages": [("user", "where is my order?")]}, config, durability="sync")
        run_case(CATALOG["agent corrected"], saver, EDITED)
        run_case(CATALOG["agent asking"], saver, ASKING)
        run_case(CATALOG["half done"], saver, FAILED)
    return path


def write_project(folder: Path, prod: Path) -> Cli:
    """Lays a project out whose default profile is the production store."""
    app = Path(shop.__file__)
    config = {
        "profiles": {
            "prod": {"store": str(prod), "default": True},
            "vault": {"store": "vault.sqlite", "mask": "always"},
            "staging": {"store": "staging.sqlite", "access": "write"},
        },
        "debug_store": "debug/debug.sqlite",
        "workflows": {
            "refunds": {
                "graph": f"{app}:build_graph",
                "sandbox": f"{app}:sandbox",
                "production": f"{app}:production",
            }
        },
    }
    (folder / "debug").mkdir()
    (folder / "agentctl.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (folder / "question.json").write_text('{"messages": [["user", "where is my order?"]]}', "utf-8")
    return Cli(folder, prod)


def write_view(cli: Cli, view: str) -> None:
    """Gives the project's workflow a view, in place of the one it has."""
    config = cli.cwd / "agentctl.yaml"
    text = config.read_text("utf-8")
    if "renderer" not in text:
        config.write_text(text.replace("    sandbox:", "    renderer: app/view.yaml\n    sandbox:"), "utf-8")
    (cli.cwd / "app").mkdir(exist_ok=True)
    (cli.cwd / "app" / "view.yaml").write_text(view, "utf-8")
