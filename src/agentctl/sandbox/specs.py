"""`path.py:attr` and `pkg.module:attr`: which file is meant, and by what name and path Python imports it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentctl.codec import jsontext
from agentctl.errors import ConfigError, NotFound, UsageError
from agentctl.sandbox.environment import OWN_NAME


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """Where a graph is. `file` is None for a dotted module; `paths` go first on the import path."""

    text: str
    attr: str
    module: str
    file: Path | None
    project: Path
    paths: tuple[Path, ...]


def parse_spec(text: str, *, project_root: Path | None = None, cwd: Path | None = None) -> GraphSpec:
    """Returns what a graph spec means, without importing anything.

    Args:
        text: `path.py:attr` or `pkg.module:attr`, as in langgraph.json.
        project_root: Folder to import from; None takes that of the nearest langgraph.json above the file, else the
            file's own (the working folder for a dotted module).
        cwd: Folder that relative paths start at; None takes the working folder.

    Raises:
        UsageError: not of that form.
        NotFound: there is no such file; the candidates are files with a like name.
        ConfigError: the project's langgraph.json cannot be read.
    """
    cwd = cwd or Path.cwd()
    place, colon, attr = text.rpartition(":")
    if not colon or not place or not attr.isidentifier() or "\0" in place:
        raise UsageError(
            f"{text!r} names no graph",
            hint="give --graph path.py:attr or --graph pkg.module:attr, as in langgraph.json",
        )
    if not place.endswith(".py") and "/" not in place:
        project = (project_root or cwd).resolve()
        return GraphSpec(text, attr, place, None, project, _paths(project, None))
    file = (cwd / place).resolve()
    if not file.is_file():
        near = _near_files(file, cwd)
        hint = f"did you mean {near[0]}:{attr}?" if near else f"looked for it in {file.parent}"
        raise NotFound(f"there is no file {place}", hint=hint, candidates=[{"file": name} for name in near])
    project = (project_root or _project_of(file)).resolve()
    paths = _paths(project, file)
    return GraphSpec(text, attr, _module_name(file, paths), file, project, paths)


def near_names(name: str, known: Sequence[str]) -> list[str]:
    """Returns the names most like `name`, closest first."""
    return difflib.get_close_matches(name, known, n=5, cutoff=0.4)


def _project_of(file: Path) -> Path:
    return next((folder for folder in file.parents if (folder / "langgraph.json").is_file()), file.parent)


def _paths(project: Path, file: Path | None) -> tuple[Path, ...]:
    """Returns the project folder, the local dependencies that its langgraph.json lists, and the file's package root."""
    paths = [project, *_dependencies(project)]
    if file is not None and (file.parent / "__init__.py").is_file():
        package = file.parent
        while (package.parent / "__init__.py").is_file():
            package = package.parent
        if not _is_importable_below(project, package):
            paths.append(package.parent)
    return tuple(dict.fromkeys(paths))


def _dependencies(project: Path) -> list[Path]:
    """Source: `dependencies` of langgraph.json (langgraph-cli 0.4)."""
    config = project / "langgraph.json"
    if not config.is_file():
        return []
    try:
        document = jsontext.parse(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{config} cannot be read: {error}") from error
    listed = document.get("dependencies", []) if isinstance(document, dict) else []
    folders = [(project / entry).resolve() for entry in listed if isinstance(entry, str) and entry.startswith(".")]
    return [folder for folder in folders if folder.is_dir()]


def _module_name(file: Path, paths: tuple[Path, ...]) -> str:
    """Returns the name to import a file by: as its project does, or one of its own where that is taken."""
    for folder in paths:
        if (folder / "__init__.py").is_file():
            continue
        if file.is_relative_to(folder) and _is_importable(file.relative_to(folder).with_suffix("")):
            parts = file.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
            if not _is_taken(name, file):
                return name
    return f"{OWN_NAME}{abs(hash(file)):x}"


def _is_importable_below(project: Path, package: Path) -> bool:
    inside = package.is_relative_to(project) and package != project
    return inside and _is_importable(package.relative_to(project))


def _is_importable(relative: Path) -> bool:
    return all(part.isidentifier() for part in relative.parts)


def _is_taken(name: str, file: Path) -> bool:
    if name.partition(".")[0] in sys.stdlib_module_names:
        return True
    loaded = sys.modules.get(name)
    return loaded is not None and getattr(loaded, "__file__", None) != str(file)


def _near_files(file: Path, cwd: Path) -> list[str]:
    folder = next((parent for parent in file.parents if parent.is_dir()), cwd)
    found = [path for path in (*folder.glob("*.py"), *folder.glob("*/*.py")) if path.is_file()]
    by_name = {path.name: path for path in found}
    names = difflib.get_close_matches(file.name, list(by_name), n=5, cutoff=0.4)
    return [
        str(by_name[name].relative_to(cwd) if by_name[name].is_relative_to(cwd) else by_name[name]) for name in names
    ]
