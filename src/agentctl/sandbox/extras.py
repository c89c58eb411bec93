"""Which extra of this distribution brings a package, from the metadata that is installed with it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from typing import Final

DISTRIBUTION: Final = "langgraph-agentctl"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA: Final = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")


def install_command(extra: str) -> str:
    """Returns the command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def extra_of(module: str) -> str | None:
    """Returns the extra that a top-level module belongs to, the smallest of several; None where none has it."""
    extras = _extras()
    having = [extra for extra, modules in extras.items() if module in modules]
    return min(having, key=lambda extra: len(extras[extra]), default=None)


def missing_of(extra: str) -> tuple[str, ...]:
    """Returns the modules of an extra that cannot be imported here, in the order it lists them."""
    return tuple(module for module in _extras().get(extra, ()) if not _is_there(module))


def _extras() -> dict[str, tuple[str, ...]]:
    """Returns the modules that each extra brings by itself; a package of an extra is imported by its own name."""
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or ()
    except importlib.metadata.PackageNotFoundError:
        return {}
    extras: dict[str, tuple[str, ...]] = {}
    for requirement in requirements:
        name, extra = _NAME.match(requirement), _EXTRA.search(requirement)
        if name and extra and name[0] != DISTRIBUTION:
            extras[extra[1]] = (*extras.get(extra[1], ()), re.sub(r"[-.]+", "_", name[0]).lower())
    return extras


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
