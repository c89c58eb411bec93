"""Which view a thread is shown by: that of the workflow that its checkpoints' metadata names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentctl.cli.output import warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentctl.cli.env import Env
    from agentctl.config.load import Config
    from agentctl.config.workflows import Workflow
    from agentctl.records.views import View


def view_of(config: Config, metadata: Iterable[Mapping[str, object]]) -> View | None:
    """Returns the view for checkpoints with this metadata; None where they name no workflow with one, or several.

    Raises:
        ConfigError: the view's file is wrong.
    """
    named = {flow.name: flow for each in metadata if (flow := config.workflow_for(each)) is not None}
    return workflow_view(next(iter(named.values()))) if len(named) == 1 else None


def workflow_view(workflow: Workflow | None) -> View | None:
    """Returns the view of a workflow, None where it has none.

    Raises:
        ConfigError: the view's file is wrong.
    """
    if workflow is None or workflow.renderer is None:
        return None
    from agentctl.config.views import read_view

    return read_view(workflow.renderer, workflow.name, workflow.origin)


def tell_problems(env: Env, problems: Iterable[str]) -> None:
    """Warns of the expressions of a view that do not fit the values."""
    for problem in problems:
        warn(env, problem)
