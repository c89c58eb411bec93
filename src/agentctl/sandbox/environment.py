"""What a graph finds around it while it is loaded and run: import path and environment variables, put back after."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Final

OWN_NAME: Final = "agentctl_graph_"
"""Begins the name of a file's module where the name its project would use is taken."""

NEVER: Final = "AGENTCTL_ENV"
"""Says that effects may be real; it does not reach an experiment."""

UNTRACED: Final = MappingProxyType(
    dict.fromkeys(("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"), "false")
)
"""Keeps prompts out of LangSmith also in threads that a node starts, where the context says nothing.

Source: tracing_is_enabled, langsmith/utils.py (langsmith 0.15.1).
"""


@contextmanager
def import_path(folders: tuple[Path, ...]) -> Generator[None]:
    """Puts folders first on the import path; afterwards they and the modules loaded from them are gone again.

    A folder that is on the path already stays, and so do its modules: they are for whoever put it there to take away.
    No bytecode is written meanwhile: the user's folders stay as they are.
    """
    added = tuple(folder for folder in folders if str(folder) not in sys.path)
    loaded_before = set(sys.modules)
    wrote_bytecode = sys.dont_write_bytecode
    sys.path[:0] = map(str, added)
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        loaded = set(sys.modules) - loaded_before
        gone = [name for name in loaded if _came_from(name, sys.modules.get(name), added)]
        sys.dont_write_bytecode = wrote_bytecode
        for folder in added:
            if str(folder) in sys.path:
                sys.path.remove(str(folder))
        for name in gone:
            sys.modules.pop(name, None)


@contextmanager
def environment(values: Mapping[str, str]) -> Generator[None]:
    """Sets environment variables, and takes away what must not reach an experiment."""
    values = {**UNTRACED, **values}
    changed = {name: os.environ.get(name) for name in {*values, NEVER}}
    os.environ.update(values)
    if NEVER not in values:
        os.environ.pop(NEVER, None)
    try:
        yield
    finally:
        for name, value in changed.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _came_from(name: str, module: ModuleType | None, folders: tuple[Path, ...]) -> bool:
    """Returns whether a module was imported by way of one of the folders, not just from somewhere below it."""
    parts = name.split(".")
    if parts[0].startswith(OWN_NAME):
        return True
    file = getattr(module, "__file__", None)
    for place in (folder.joinpath(*parts) for folder in folders):
        if file is None:
            if module is not None and place.is_dir() and str(place) in list(getattr(module, "__path__", ())):
                return True
        elif Path(file) in (place.with_suffix(".py"), place / "__init__.py"):
            return True
    return False
