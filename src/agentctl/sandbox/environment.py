"""What a graph finds around it while it is loaded and run: import path and environment variables, put back after."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

_NEVER: Final = "AGENTCTL_ENV"
"""Says that effects may be real; it does not reach an experiment."""


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
        sys.dont_write_bytecode = wrote_bytecode
        for folder in added:
            if str(folder) in sys.path:
                sys.path.remove(str(folder))
        for name in set(sys.modules) - loaded_before:
            if _lies_in(sys.modules[name], added):
                del sys.modules[name]


@contextmanager
def environment(values: Mapping[str, str]) -> Generator[None]:
    """Sets environment variables, and takes away what must not reach an experiment."""
    changed = {name: os.environ.get(name) for name in {*values, _NEVER}}
    os.environ.update(values)
    if _NEVER not in values:
        os.environ.pop(_NEVER, None)
    try:
        yield
    finally:
        for name, value in changed.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _lies_in(module: ModuleType | None, folders: tuple[Path, ...]) -> bool:
    """Returns whether a module was loaded from one of the folders, and not from packages installed below them."""
    file = getattr(module, "__file__", None)
    if file is None:
        places = [Path(place) for place in getattr(module, "__path__", ())]
    else:
        places = [Path(file)]
    return any(
        place.is_relative_to(folder) and "site-packages" not in place.relative_to(folder).parts
        for place in places
        for folder in folders
    )
