"""The example project: bundled in the wheel, laid out where somebody without a project asks for a tour."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import agentctl
from agentctl.errors import MissingExtra, NotFound, Refused
from agentctl.sandbox.extras import install_command, missing_of

EXAMPLE = "agentctl-tour"
"""Name of the folder that it is laid out in."""

_PARTS = ("agentctl.yaml", "langgraph.json", "graphs", "sandbox_tools", "fixtures")
_EXTRA = "workflows"


def require_workflows_extra() -> None:
    """Refuses to go on without what the example workflows import.

    Raises:
        MissingExtra: a package of the extra `workflows` is not installed.
    """
    if missing := missing_of(_EXTRA):
        raise MissingExtra(
            f"the tour needs the extra {_EXTRA}: {', '.join(missing)} not installed", hint=install_command(_EXTRA)
        )


def lay_out(folder: Path) -> tuple[str, ...]:
    """Copies the example project into a folder; files that are there already must be the same.

    Returns:
        The files that were written, relative to the folder.

    Raises:
        Refused: a file of that name says something else; nothing was written.
        NotFound: this installation has no example.
    """
    source = _source()
    files = sorted(path.relative_to(source) for path in _files(source))
    foreign = [name for name in files if _differs(source / name, folder / name)]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise Refused(
            f"{folder / foreign[0]}{more} would be overwritten",
            hint="agentctl tour --dir FOLDER lays the example out elsewhere; in a project of yours run it as it is",
        )
    missing = [name for name in files if not (folder / name).exists()]
    for name in missing:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((source / name).read_bytes())
    return tuple(map(str, missing))


def _source() -> Path:
    """Returns the example in the wheel, or the checkout that an editable install runs from."""
    package = Path(agentctl.__file__).parent
    for folder in (package / "_example", package.parents[1]):
        if all((folder / part).exists() for part in _PARTS):
            return folder
    raise NotFound(
        "this installation holds no example project", hint="run agentctl tour in a checkout of the repository"
    )


def _files(source: Path) -> Iterator[Path]:
    for part in _PARTS:
        path = source / part
        found = path.rglob("*") if path.is_dir() else iter((path,))
        yield from (file for file in found if file.is_file() and "__pycache__" not in file.parts)


def _differs(ours: Path, theirs: Path) -> bool:
    return theirs.exists() and (not theirs.is_file() or theirs.read_bytes() != ours.read_bytes())
