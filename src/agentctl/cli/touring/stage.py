"""What a workflow brings to a tour: `stage.py` in its folder of incidents, with a context manager `stage`."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol, cast

from agentctl.config.load import Config
from agentctl.config.workflows import Workflow
from agentctl.errors import AgentctlError, UsageError
from agentctl.records.tour import Incident
from agentctl.sandbox.building import attribute_of, module_of
from agentctl.sandbox.environment import import_path
from agentctl.sandbox.failures import graph_failed
from agentctl.sandbox.specs import parse_spec


class Stage(Protocol):
    """A workflow's incidents over the outside world that it calls, which runs as long as the stage is open."""

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """The incidents, in the order to walk them."""
        ...

    @property
    def threads(self) -> tuple[str, ...]:
        """Every thread that seeding makes."""
        ...

    def seed(self, store_url: str, *, now: datetime) -> Mapping[str, str]:
        """Runs the workflow for real into a store; returns by thread what the customer was told last."""
        ...

    def counters(self) -> Mapping[str, object]:
        """Returns what the outside world counted: every call, every effect."""
        ...


def workflows_with_incidents(config: Config, wanted: str | None = None) -> tuple[Workflow, ...]:
    """Returns the workflows to walk: all that have incidents, or the one that was asked for.

    Raises:
        UsageError: there is no workflow of that name, or it has no incidents.
    """
    having = tuple(workflow for workflow in config.workflows.values() if workflow.incidents is not None)
    if wanted is None:
        return having
    workflow = config.workflow_for(wanted)
    if workflow not in having:
        names = ", ".join(each.name for each in having) or "none"
        raise UsageError(f"workflow {wanted} has no incidents", hint=f"workflows with incidents: {names}")
    return tuple(each for each in having if each is workflow)


@contextmanager
def staged(workflow: Workflow, project: Path, scratch: Path) -> Generator[Stage]:
    """Opens a workflow's stage; the project's code can be imported meanwhile.

    Args:
        workflow: It has incidents.
        project: The folder to import from.
        scratch: A folder for what the outside world keeps.

    Raises:
        NotFound: the project has no `stage.py` among its incidents.
        GraphFailed: importing it raised.
    """
    assert workflow.incidents is not None
    spec = parse_spec(f"{workflow.incidents / 'stage.py'}:stage", project_root=project)
    with import_path(spec.paths):
        try:
            make = attribute_of(module_of(spec), spec)
        except AgentctlError:
            raise
        except (Exception, SystemExit) as error:
            raise graph_failed(spec.text, error) from error
        if not callable(make):
            raise UsageError(f"{spec.text} is no function")
        with cast("AbstractContextManager[Stage]", make(workflow.incidents, scratch)) as stage:
            yield stage
