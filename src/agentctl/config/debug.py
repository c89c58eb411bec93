"""Where this machine keeps what agentctl makes: the built-in debug store, and folders for their owner alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FOLDER_MODE = 0o700


def state_folder(env: Mapping[str, str]) -> Path:
    """Returns `$XDG_STATE_HOME/agentctl`, or `~/.local/state/agentctl` where that is not an absolute path."""
    state = env.get("XDG_STATE_HOME", "")
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    base = Path(state) if state and Path(state).is_absolute() else home / ".local" / "state"
    return base / "agentctl"


def debug_path(env: Mapping[str, str]) -> Path:
    """Returns where the built-in debug store is; it need not exist."""
    return state_folder(env) / "debug.sqlite"


def sqlite_file(url: str) -> Path | None:
    """Returns the file of a SQLite store text, or None for any other kind."""
    if url.startswith("sqlite:///"):
        return Path(url.removeprefix("sqlite:///").partition("?")[0])
    return None if "://" in url or ".py:" in url or url.startswith(":") else Path(url)


def make_private_folder(folder: Path) -> None:
    """Creates a folder and those above it, mode 0700 each (`Path.mkdir` gives only the last one its mode)."""
    missing = [folder, *folder.parents]
    for each in reversed(missing[: next((i for i, path in enumerate(missing) if path.exists()), len(missing))]):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)
