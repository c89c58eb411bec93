"""An exception of the user's own code as an error that says what to do about it."""

from __future__ import annotations

import os
import re
import traceback
from pathlib import Path
from types import TracebackType
from typing import Final

from agentctl.errors import GraphFailed
from agentctl.sandbox.extras import extra_of, install_command

_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_OURS: Final = str(Path(__file__).parent)


def graph_failed(spec: str, error: BaseException) -> GraphFailed:
    """Returns the error for a graph whose import or building raised, with the user's own traceback."""
    said = f"{type(error).__name__}: {error}"
    variable = missing_variable(error)
    if variable is not None:
        return GraphFailed(
            f"{spec} needs the environment variable {variable} ({said})",
            traceback=user_traceback(error),
            hint=f"add --env {variable}=DUMMY, or set {variable} yourself; an experiment gets yours by "
            f"--allow-env {variable}",
        )
    module = missing_module(error)
    problem = "cannot be loaded" if module is None else f"needs {module}"
    hint = _relative_import_hint(error) if module is None else _install_hint(module)
    return GraphFailed(f"{spec} {problem} ({said})", traceback=user_traceback(error), hint=hint)


def missing_module(error: BaseException) -> str | None:
    """Returns the top-level module that is not in this environment and made code fail, else None."""
    for cause in _causes(error):
        if isinstance(cause, ModuleNotFoundError) and cause.name and "." not in cause.name:
            return cause.name
    return None


def _install_hint(module: str) -> str:
    extra = extra_of(module)
    if extra is not None:
        return install_command(extra)
    return f"install what the graph imports beside agentctl: {module} is not in this environment"


def _relative_import_hint(error: BaseException) -> str | None:
    if isinstance(error, ImportError) and "no known parent package" in str(error):
        return "name it as a module, from the folder above its package: --graph package.module:attr"
    return None


def missing_variable(error: BaseException) -> str | None:
    """Returns the environment variable whose absence made code fail, where the error shows it, else None."""
    for cause in _causes(error):
        if isinstance(cause, KeyError) and _raised_by_environ(cause) and cause.args:
            return str(cause.args[0])
    for cause in _causes(error):
        for name in _VARIABLE.findall(str(cause)):
            if name not in os.environ:
                return str(name)
    return None


def user_traceback(error: BaseException) -> str:
    """Returns the traceback of an exception without the frames of the import machinery and of agentctl."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _is_ours(trace: TracebackType) -> bool:
    file = trace.tb_frame.f_code.co_filename
    return file.startswith((_OURS, "<frozen importlib")) or "importlib" in Path(file).parts


def _causes(error: BaseException) -> list[BaseException]:
    causes: list[BaseException] = []
    while error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__ or error
    return causes


def _raised_by_environ(error: KeyError) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename == os.__file__
