"""What `run` and `resume` share: the store a workflow runs in, its graph and tools, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from agentctl.cli.env import Env
from agentctl.cli.experimenting import ANSWER_IS_NO, exit_code, read_context
from agentctl.cli.grouped import WorkflowOptions
from agentctl.cli.output import Answer, emit
from agentctl.config.profiles import DEBUG
from agentctl.config.stores import StoreChoice
from agentctl.config.workflows import GraphChoice
from agentctl.errors import UsageError
from agentctl.records.copies import Place
from agentctl.records.runs import RunGroup, RunReport, WorkflowReport
from agentctl.render import run_documents
from agentctl.render import runs as rendering

if TYPE_CHECKING:
    from agentctl.experiments.workflow_runs import Tools, Workflow, WorkflowStore
    from agentctl.stores.base import Reader

UNFINISHED = ("timeout", "step_limit", "not_run")


def read_tools(text: str) -> Tools:
    """Returns the tools of `--tools`.

    Raises:
        UsageError: it is neither `sandbox` nor `production`.
    """
    if text == "sandbox":
        return "sandbox"
    if text == "production":
        return "production"
    raise UsageError(f"--tools {text} is not for run and resume", hint="--tools sandbox, or --tools production")


def workflow_store(choice: StoreChoice) -> WorkflowStore:
    """Returns a configured store as the rules of `run` and `resume` see it."""
    from agentctl.experiments.workflow_runs import WorkflowStore

    name = choice.profile or choice.shown
    return WorkflowStore(choice.url, name, choice.access, choice.profile == DEBUG, choice.profile)


@contextmanager
def workflow(
    env: Env,
    choice: StoreChoice,
    graph: GraphChoice,
    options: WorkflowOptions,
    *,
    reader: Reader | None,
    metadata: Mapping[str, object],
) -> Iterator[Workflow]:
    """Gives the workflow ready to run; what it prints meanwhile goes to stderr.

    Args:
        env: The world.
        choice: Where it runs.
        graph: Its graph, and its registries where it is a configured workflow.
        options: What a person chose.
        reader: The store open for reading, None where it does not exist yet.
        metadata: What the thread's head recorded; empty for a new thread.
    """
    from agentctl.experiments import settings as chosen
    from agentctl.experiments.experiment import recorded_configurable
    from agentctl.experiments.running import Limits
    from agentctl.experiments.workflow_loading import workflow_on

    configured = graph.workflow
    source = chosen.GraphSource(
        graph=graph.graph,
        name=graph.name,
        sandbox=configured.sandbox if configured else None,
        production=configured.production if configured else None,
        model=options.model or (configured.model if configured else None),
    )
    settings = chosen.Settings(
        stubs=chosen.parse_stubs(options.stub or ()),
        effects=chosen.parse_effects(options.effect or ()),
        configurable=chosen.parse_configurable(options.configurable or ()),
        context=read_context(options.context, env.cwd),
        limits=Limits(options.timeout, options.max_steps),
        env=chosen.parse_env(options.env or ()),
        cwd=env.cwd,
    )
    tools = read_tools(options.tools)
    with (
        redirect_stdout(env.stderr),
        workflow_on(
            workflow_store(choice),
            source,
            settings,
            tools,
            recorded=recorded_configurable(metadata),
            memory=reader.memory() if reader is not None and tools == "sandbox" else (),
            env=env.environ,
        ) as ready,
    ):
        yield ready


def answer_with(env: Env, verb: str, choice: StoreChoice, graph: GraphChoice, tools: str, run: RunReport) -> int:
    """Prints how a workflow's run ended and returns the exit code."""
    from agentctl.experiments.reports import tally
    from agentctl.sandbox.answers import side_effects

    report = WorkflowReport(
        target=Place(choice.shown, run.thread, run.head, choice.profile),
        workflow=graph.name,
        tools=tools,
        run=run,
        side_effects=side_effects(run.tool_calls),
    )
    emit(
        env,
        Answer(
            human=lambda width: rendering.workflow_human(report, width, env.pasteable),
            plain=lambda: rendering.run_plain(RunGroup((run,), 0, 0, 0, (0.0, 1.0)), choice.profile),
            document=lambda: run_documents.workflow_document(verb, report),
        ),
    )
    return ANSWER_IS_NO if run.status in UNFINISHED else exit_code([tally([run])], report.side_effects)
