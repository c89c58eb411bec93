"""What `run` and `resume` share: the store a workflow runs in, its graph and tools, what is told, kept and answered."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentctl.cli.env import Env
from agentctl.cli.experimenting import ANSWER_IS_NO, exit_code, read_context
from agentctl.cli.grouped import WorkflowOptions
from agentctl.cli.output import Answer, emit, say, stream
from agentctl.config.load import Config
from agentctl.config.profiles import DEBUG
from agentctl.config.stores import StoreChoice
from agentctl.config.workflows import GraphChoice
from agentctl.errors import NotFound, Refused, UsageError
from agentctl.records.copies import MASKED, Place, command
from agentctl.records.runs import Plan, RunReport, SideEffects, ToolCallReport, WorkflowReport
from agentctl.records.streams import StreamEvent
from agentctl.render import workflow_runs as rendering
from agentctl.render.streams import EventLines, event_row

if TYPE_CHECKING:
    from agentctl.experiments.workflows.departures import Departure
    from agentctl.experiments.workflows.runs import Tools, Watch, Workflow, WorkflowStore
    from agentctl.records.cases import Case
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
    from agentctl.experiments.workflows.runs import WorkflowStore

    name = choice.profile or choice.shown
    return WorkflowStore(choice.url, name, choice.access, choice.profile == DEBUG, choice.profile, choice.schema)


def refuse_server(choice: StoreChoice, thread: str) -> None:
    """Refuses a run on an Agent Server, before anything is asked for that would not help."""
    from agentctl.stores.urls import parse_store_url

    if parse_store_url(choice.url).kind == "server":
        raise Refused(
            f"{choice.shown} is an Agent Server, which runs its own threads: nothing runs there from here",
            hint=f"its own API does (langgraph-sdk); on a copy: {command('replay', thread, '--resume', 'JSON')}",
        )


@contextmanager
def workflow(
    env: Env,
    choice: StoreChoice,
    graph: GraphChoice,
    options: WorkflowOptions,
    *,
    reader: Reader,
    metadata: Mapping[str, object],
) -> Iterator[Workflow]:
    """Gives the workflow ready to run; what it prints meanwhile goes to stderr.

    Args:
        env: The world.
        choice: Where it runs.
        graph: Its graph, and its registries where it is a configured workflow.
        options: What a person chose.
        reader: The store open for reading.
        metadata: What the thread's head recorded; empty for a new thread.
    """
    from agentctl.experiments import settings as chosen
    from agentctl.experiments.runs.running import Limits
    from agentctl.experiments.workflows.callers import thread_configurable
    from agentctl.experiments.workflows.loading import workflow_on

    configured = graph.workflow
    source = chosen.GraphSource(
        graph=graph.graph,
        name=graph.name,
        sandbox=configured.sandbox if configured else None,
        production=configured.production if configured else None,
        model=options.model or (configured.model if configured else None),
        claims=configured.claims if configured else None,
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
            recorded=thread_configurable(metadata),
            memory=reader.memory() if tools == "sandbox" else (),
            env=env.environ,
        ) as ready,
    ):
        yield ready


@dataclass
class Following:
    """One `run` or `resume` on its way: tells what happens, keeps it in a case, and answers at the end.

    Attributes:
        env: The world.
        verb: `run` or `resume`.
        config: The configuration.
        choice: Where it runs.
        graph: What runs.
        options: What a person chose.
        workflow: It, ready to run.
        metadata: What the thread's head recorded.
        debug_flag: `--debug-store`.
    """

    env: Env
    verb: str
    config: Config
    choice: StoreChoice
    graph: GraphChoice
    options: WorkflowOptions
    workflow: Workflow
    metadata: Mapping[str, object]
    debug_flag: str | None
    plan: Plan | None = None
    departure: Departure | None = None
    case: Case | None = None
    events: list[StreamEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = EventLines(self.env.width)

    @property
    def watch(self) -> Watch:
        """What follows the run."""
        from agentctl.experiments.runs.streaming import Streamed, parse_modes
        from agentctl.experiments.workflows.runs import Watch

        modes = parse_modes(self.options.stream or ())
        return Watch(
            who=who(self.env, self.workflow.configurable),
            listener=Streamed(modes, self._tell, self.env.now) if modes else None,
            on_start=self._start,
            on_cut=self._cut,
            now=self.env.now,
        )

    def make_plan(self, departure: Departure) -> None:
        """Works out what is about to happen."""
        from agentctl.experiments.runs.graph_parts import entry_nodes
        from agentctl.experiments.workflows.callers import thread_configurable
        from agentctl.experiments.workflows.plan import plan_workflow

        self.departure = departure
        nodes = entry_nodes(self.workflow.graph) if departure.has_input else departure.nodes
        recorded = thread_configurable(self.metadata)
        own = {key: value for key, value in recorded.items() if self.workflow.metadata.get(key) != value}
        configurable = {**own, **self.workflow.configurable}
        self.plan = plan_workflow(
            self.workflow,
            self._place(departure.thread, departure.head),
            nodes,
            configurable,
            masked=MASKED in self.metadata,
        )

    @property
    def plan_lines(self) -> list[str]:
        """The plan as plain lines."""
        assert self.plan is not None and self.departure is not None
        return rendering.plan_lines(self.verb, self.departure, self.plan)

    def answer_plan(self, departure: Departure) -> int:
        """Prints what would happen, and returns the exit code."""
        self.make_plan(departure)
        report = self._report(None)
        emit(
            self.env,
            Answer(
                human=lambda width: (self.env.pasteable(line) for line in self.plan_lines),
                plain=lambda: [(line,) for line in self.plan_lines],
                document=lambda: rendering.as_document(self.verb, report),
            ),
        )
        return 0

    def answer(self, run: RunReport) -> int:
        """Prints how the run ended, keeps it, and returns the exit code."""
        from agentctl.casebook.ledger import add_report, add_run
        from agentctl.experiments.runs.reports import tally

        stream(self.env, human=self._lines.end)
        report = self._report(run)
        document = rendering.as_document(self.verb, report)
        if self.case is not None:
            add_run(self.case, run, kind=self.verb, source=report.plan.source, now=self.env.now())
            add_report(self.case, self.verb, document)
        emit(
            self.env,
            Answer(
                human=lambda width: rendering.human(self.verb, report, width, self.env.pasteable),
                plain=lambda: rendering.plain(report, streamed=bool(self.options.stream)),
                document=lambda: document,
            ),
        )
        return ANSWER_IS_NO if run.status in UNFINISHED else exit_code([tally([run])], report.side_effects)

    def _start(self, departure: Departure) -> Mapping[str, str]:
        """Tells the plan, opens the case, and returns metadata for the rows of a debug thread."""
        from agentctl.casebook.ledger import add_threads
        from agentctl.experiments.experiment import CASE

        self.make_plan(departure)
        for line in self.plan_lines:
            say(self.env, line)
        place = self._place(departure.thread)
        self.case = self._open_case(place)
        if self.choice.profile != DEBUG:
            return {}
        if departure.is_new:
            add_threads(self.case, [place], kind=self.verb, now=self.env.now())
            return {CASE: self.case.name}
        return {key: mark for key in (CASE, MASKED) if isinstance(mark := self.metadata.get(key), str)}

    def _open_case(self, place: Place) -> Case:
        """Returns the case of `--case`, else the open one that the thread was made for, else the thread's own."""
        from agentctl.casebook.cases import case_for, find_case
        from agentctl.experiments.experiment import CASE

        root = self.config.cases_root(self.config.debug_store(self.debug_flag))
        made_for = self.metadata.get(CASE)
        if self.options.case is None and isinstance(made_for, str):
            try:
                case = find_case(root, made_for)
            except (NotFound, UsageError):
                case = None
            if case is not None and case.state == "open":
                return case
        return case_for(root, self.options.case, place, now=self.env.now(), reason=self.options.reason or "")

    def _cut(self, calls: Sequence[ToolCallReport]) -> None:
        """Keeps the calls of a run that is cut off, and says how it goes on."""
        from agentctl.casebook.ledger import add_calls

        assert self.departure is not None
        thread = self.departure.thread
        if self.case is not None:
            add_calls(self.case, calls, thread=thread, now=self.env.now())
        go_on = command("run", self.graph.name, "--thread", self._place(thread).target, *self._kept())
        say(self.env, f"stopped; what was finished is saved, and goes on with: {self.env.pasteable(go_on)}")

    def _tell(self, event: StreamEvent) -> None:
        """Prints an event as it happens; under --json it is kept for the document."""
        if self.env.as_json:
            self.events.append(event)
        stream(self.env, human=lambda: self._lines.of(event), plain=lambda: event_row(event))

    def _place(self, thread: str, id: str | None = None) -> Place:
        return Place(self.choice.shown, thread, id, self.choice.profile)

    def _report(self, run: RunReport | None) -> WorkflowReport:
        from agentctl.sandbox.answers import side_effects

        assert self.plan is not None and self.departure is not None
        target = self._place(self.departure.thread, run.head if run else self.departure.head)
        return WorkflowReport(
            target=target,
            workflow=self.graph.name,
            tools=self.workflow.tools,
            run=run,
            side_effects=side_effects(run.tool_calls) if run else SideEffects(),
            plan=self.plan,
            discarded=self.departure.discarded,
            events=tuple(self.events),
            case=self.case.name if self.case else "",
            commands=rendering.next_commands(self.graph.name, target, run, self._kept(), self._graph_flag()),
            warnings=self.departure.warnings,
        )

    def _kept(self) -> list[str]:
        """Returns the options that a next command must repeat to mean the same."""
        options = self.options
        words = ["--tools", options.tools] if options.tools != "sandbox" else []
        for flag, values in (("--stub", options.stub), ("--effect", options.effect), ("--env", options.env)):
            for value in values or ():
                words += [flag, value]
        for flag, said in (("--model", options.model), ("--context", options.context)):
            words += [flag, said] if said else []
        return words

    def _graph_flag(self) -> list[str]:
        """Returns the option by which `resume` finds a graph that no file names."""
        return ["--graph", self.graph.name] if ":" in self.graph.name else []


def who(env: Env, configurable: Mapping[str, object]) -> str:
    """Returns who gives a command, for messages to others: the caller's own word, and the login it comes from."""
    from agentctl.experiments.workflows.callers import ACTOR

    user = next((env.environ[name] for name in ("USER", "LOGNAME") if env.environ.get(name)), None)
    if user is None:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = "somebody"
    login = f"{user}@{socket.gethostname()}"
    actor = configurable.get(ACTOR)
    return f"{actor} ({login})" if isinstance(actor, str) else login
