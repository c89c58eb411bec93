"""A registry spec to a tool registry: `path.py:attr`, a registry or a function that gives one."""

from __future__ import annotations

from pathlib import Path

from agentctl.errors import AgentctlError, UsageError, is_of_called_code
from agentctl.sandbox.building import attribute_of, module_of
from agentctl.sandbox.environment import import_path
from agentctl.sandbox.failures import graph_failed
from agentctl.sandbox.registry import ToolRegistry
from agentctl.sandbox.specs import parse_spec


def load_registry(text: str, *, project_root: Path | None = None, cwd: Path | None = None) -> ToolRegistry:
    """Returns the registry that a spec names.

    Args:
        text: `path.py:attr` or `pkg.module:attr`; the attribute is a `ToolRegistry`, or a function without required
            arguments that returns one.
        project_root: Folder to import from; None takes the nearest langgraph.json's, else the file's own.
        cwd: Folder that relative paths start at.

    Raises:
        UsageError: the attribute is no registry and gives none.
        NotFound: no such file, module or attribute.
        GraphFailed: importing or building it raised.
    """
    spec = parse_spec(text, project_root=project_root, cwd=cwd)
    with import_path(spec.paths):
        try:
            value = attribute_of(module_of(spec), spec)
            made = value() if callable(value) and not isinstance(value, ToolRegistry) else value
        except AgentctlError:
            raise
        except BaseException as error:
            if not is_of_called_code(error):
                raise
            raise graph_failed(spec.text, error) from error
    if not isinstance(made, ToolRegistry):
        raise UsageError(
            f"{text} gave a {type(made).__name__}, not a ToolRegistry",
            hint="from agentctl.sandbox.registry import ToolRegistry",
        )
    return made
