"""The application's own record of who answers a question, asked before `resume` answers it in production.

The lock of `agentctl` keeps other commands away, not the application. An application that lets one of several answers
win, whoever gives it, can offer the function by which it claims one; it is called for each answer before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from agentctl.errors import AgentctlError, Refused, UsageError, is_of_called_code

Claim = Callable[[str, str, object, Mapping[str, object]], object]
"""Called with thread id, interrupt id, answer and the run's configuration; raises where the answer does not win."""


def load_claim(text: str, *, cwd: Path) -> Claim:
    """Returns the function that a spec names.

    Args:
        text: `path.py:attr` or `pkg.module:attr`.
        cwd: Folder that relative paths start at.

    Raises:
        UsageError: it is no function.
        NotFound: no such file, module or attribute.
        GraphFailed: importing it raised.
    """
    from agentctl.sandbox.building import attribute_of, module_of
    from agentctl.sandbox.environment import import_path
    from agentctl.sandbox.failures import graph_failed
    from agentctl.sandbox.specs import parse_spec

    spec = parse_spec(text, cwd=cwd)
    with import_path(spec.paths):
        try:
            value = attribute_of(module_of(spec), spec)
        except AgentctlError:
            raise
        except BaseException as error:
            if not is_of_called_code(error):
                raise
            raise graph_failed(spec.text, error) from error
    if not callable(value):
        raise UsageError(
            f"{text} is a {type(value).__name__}, not a function",
            hint="claims: a function of thread, interrupt_id, answer and configurable",
        )
    return cast("Claim", value)


def claim_answers(
    claim: Claim, thread: str, answers: Mapping[str, object], configurable: Mapping[str, object], *, hint: str
) -> None:
    """Claims answers with the application, one after the other.

    Raises:
        Refused: the application does not take one of them; those before it are claimed.
    """
    for id, answer in answers.items():
        try:
            claim(thread, id, answer, configurable)
        except Exception as error:
            raise Refused(
                f"the application does not take the answer to {id} of {thread}: {type(error).__name__}: {error}",
                hint=hint,
            ) from error
