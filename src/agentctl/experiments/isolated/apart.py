"""The bench in a process of its own: the parent's half of an isolated experiment.

The child gets the rows of one thread and the settings of one command. No address, password or file of a store reaches
it: it asks for rows, and what its runs leave behind the parent brings into the debug store. What it says is read as
`wire` and `messages` read it, so that code in it can make the answer wrong, as it can anywhere, and nothing else.
"""

from __future__ import annotations

import pickle
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agentctl.codec.encryption import KEY_VARIABLE, is_encrypted
from agentctl.errors import AgentctlError, GraphFailed, IsolationFailed, Refused
from agentctl.experiments.benches import Given, Hearing
from agentctl.experiments.experiment import Target
from agentctl.experiments.isolated import messages
from agentctl.experiments.isolated.homecoming import bring_home
from agentctl.experiments.isolated.names import Take, name_locks, take_names
from agentctl.experiments.isolated.outside import BEST, Isolation, outside_of
from agentctl.experiments.isolated.process import Child, private_folders, started
from agentctl.experiments.isolated.served_reader import ServedReader
from agentctl.experiments.isolated.wire import Forged, decoded
from agentctl.experiments.prepare import refuse_same_store
from agentctl.experiments.runs.debug_threads import Kind
from agentctl.experiments.works import MAX_RUNS, R, Work
from agentctl.sandbox.isolation.confinement import Confinement, offered
from agentctl.sandbox.isolation.environment import reduced
from agentctl.sandbox.isolation.proxy import Proxy, proxy
from agentctl.sandbox.recordings import Recording
from agentctl.stores.base import Reader
from agentctl.stores.copying.stated_rows import as_rows

GRACE_S: Final = 15.0
"""How long beyond `--timeout` a child may say nothing before it is taken for hung."""

ENDED_S: Final = 1.0
"""How long a child may take to end once it has handed its report over."""

MAX_TOLD: Final = 20
"""How many different attempts to reach the outside are told."""


class Apart:
    """See `agentctl.experiments.benches.Bench`.

    Args:
        child: The process, started.
        via: The proxy that it may ask, or None.
        given: What the command gives; the source with rows that can be copied.
        take: Locks names in the debug store.
        hearing: Who hears what happens.
        grace_s: How long beyond the limit of the runs it may say nothing.
    """

    def __init__(
        self, child: Child, via: Proxy | None, given: Given, take: Take, hearing: Hearing, grace_s: float
    ) -> None:
        self.recording = Recording()
        self._child = child
        self._via = via
        self._given = given
        self._take = take
        self._hearing = hearing
        self._silence_s = given.settings.limits.timeout_s + grace_s
        self._served = ServedReader(given.source, given.target.thread, child.folders.handed)
        self._names: list[str] = []
        self._stopped: dict[str, None] = {}

    def do(self, work: Work[R]) -> R:
        """See `Bench.do`. What the runs left behind is in the debug store when this ends, however it ends.

        Raises:
            AgentctlError: what the child met.
            GraphFailed: the child was ended, or has ended itself.
            Refused: it said what no child says.
        """
        try:
            report = self._hear_out(work)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                self._child.interrupt()
            self._child.end()
            with suppress(AgentctlError):
                self._bring_home()
            if isinstance(error, Forged):
                raise _forged(error) from None
            raise
        self._child.end(patience_s=ENDED_S)
        self._bring_home()
        return report

    def _bring_home(self) -> None:
        bring_home(self._child.folders.scratch, self._names, self._given.debug.writer)

    def _hear_out(self, work: Work[R]) -> R:
        """Talks to the child until its work is done."""
        channel = self._child.channel
        if not isinstance(held := self._next(), messages.Held):
            raise self._failure(held)
        self._send(self._job(work, held.layers))
        while True:
            message = self._next()
            match message:
                case messages.Done(report, recording):
                    self.recording = Recording.from_json(recording)
                    return self._warned(decoded(work.report, report))
                case messages.Failed():
                    raise self._failure(message)
                case messages.Planned(plan):
                    self._hearing.plan(plan)
                    channel.wait_at_most(self._silence_s)
                case messages.Stopped(what):
                    if len(self._stopped) < MAX_TOLD:
                        self._stopped[what] = None
                case messages.Enough(number):
                    self._served.enough(number)
                case messages.AskNames(kind, n):
                    self._send(self._give_names(kind, n))
                case messages.Held():
                    raise Forged("it is held twice")
                case _:
                    self._send(self._answer(message))

    def _next(self) -> messages.Asked | messages.Told:
        """Returns the next message of the child.

        Raises:
            GraphFailed: there is none.
            Forged: it is none.
        """
        try:
            data = self._child.channel.receive()
        except TimeoutError:
            raise GraphFailed(
                f"the process of the experiment gave no sign for {self._silence_s:g} s and was ended: a node holds the"
                " interpreter or the event loop",
                hint="time.sleep and other waiting in an async node stops every run: await asyncio.sleep; "
                "--timeout SECONDS gives more time",
            ) from None
        if data is None:
            raise _ended(self._child.end())
        return messages.read_message(data)

    def _send(self, value: object) -> None:
        try:
            self._child.channel.send(pickle.dumps(value))
        except OSError:
            raise _ended(self._child.end()) from None

    def _answer(self, question: messages.Asked | messages.Told) -> object:
        try:
            return self._served.answer(question)  # type: ignore[arg-type]
        except AgentctlError as error:
            return messages.as_failed(error)

    def _give_names(self, kind: Kind, n: int) -> object:
        if not 0 < n <= MAX_RUNS or len(self._names) + n > 2 * MAX_RUNS:
            raise Forged("names for more threads than a command makes")
        debug = self._given.debug
        try:
            names = take_names(debug.writer, self._take, self._given.target.thread, kind, n)
            self._hearing.threads([debug.place(name) for name in names], kind)
        except AgentctlError as error:
            return messages.as_failed(error)
        self._names += names
        return names

    def _job(self, work: Work[Any], layers: str) -> messages.Job:
        given = self._given
        return messages.Job(
            work=work,
            target=given.target,
            graph=given.graph,
            settings=given.settings,
            checks=given.checks,
            branch=given.branch,
            source=given.source.info,
            debug=given.debug.writer.info.url,
            debug_profile=given.debug.profile,
            scratch=self._child.folders.scratch,
            isolation=layers,
            path=tuple(str(Path(folder).resolve()) for folder in sys.path if folder),
        )

    def _failure(self, message: object) -> Exception:
        if not isinstance(message, messages.Failed):
            raise Forged("it is not held")
        return messages.as_error(message)

    def _warned(self, report: R) -> R:
        """Returns a report that also tells what was stopped at the border."""
        refused = self._via.refused if self._via else {}
        told = [
            *(f"stopped: the graph tried to {what}" for what in self._stopped),
            *(f"refused {n} times: {host}; --allow-host {host} lets it be reached" for host, n in refused.items()),
        ]
        return replace(report, warnings=(*report.warnings, *told)) if told else report  # type: ignore[attr-defined, type-var]


@contextmanager
def apart(
    given: Given, isolation: Isolation, hearing: Hearing, *, environ: Mapping[str, str], grace_s: float | None = None
) -> Iterator[Apart]:
    """Gives the bench in a process of its own, which runs for the time of the block.

    Args:
        given: What the command gives.
        isolation: What a person chose for the process.
        hearing: Who hears what happens.
        environ: The command's environment.
        grace_s: How long beyond the limit of the runs the process may say nothing; None for GRACE_S.

    Raises:
        Refused: `strict` is asked for where the kernel does not hold, or the debug store is the source itself.
    """
    refuse_same_store(given.source, given.debug.writer, given.target)
    given = replace(given, source=as_rows(given.source))
    outside = outside_of(isolation, given.graph.model, environ, given.settings.env)
    with ExitStack() as stack:
        folders = stack.enter_context(private_folders())
        via = stack.enter_context(proxy(outside.hosts, environ=environ)) if outside.hosts else None
        confinement = Confinement(via.port if via else None, folders.writable)
        layers = offered(confinement)
        if isolation.level == "strict" and not layers.is_kernel:
            raise IsolationFailed(
                f"this system does not hold a process strictly: {layers.text}",
                hint=BEST,
            )
        allowed = [*outside.variables]
        if is_encrypted_at(given.source, given.target):
            _require_sqlite(given)
            allowed.append(KEY_VARIABLE)
        variables = reduced(environ, allow=allowed, given=via.variables if via else {})
        child = stack.enter_context(started(folders, confinement, variables, hearing.output))
        take = stack.enter_context(name_locks(given.debug.url))
        yield Apart(child, via, given, take, hearing, GRACE_S if grace_s is None else grace_s)


def _require_sqlite(given: Given) -> None:
    """Refuses encrypted threads where the debug store is no file.

    The runs are in a file of the child, whose rows are encrypted whole. Postgres keeps scalars plain.

    Raises:
        Refused: it is a Postgres database.
    """
    if given.debug.writer.info.kind == "postgres":
        raise Refused(
            f"{given.target.thread} is encrypted, and what a process of its own leaves behind can only go into a file",
            hint="--debug-store FILE.sqlite takes it; --isolation off runs where the debug store is",
        )


def is_encrypted_at(source: Reader, target: Target) -> bool:
    """Returns whether anything of a checkpoint, or of the writes that are stored on it, is encrypted."""
    stored = next(iter(source.stored(target.thread, target.ns, [target.id])), None)
    if stored is not None and (stored.cipher or any(map(is_encrypted, stored.values.values()))):
        return True
    writes = source.writes(target.thread, target.ns, [target.id])
    return any(write.value is not None and is_encrypted(write.value) for write in writes)


def _forged(error: Forged) -> Refused:
    return Refused(
        f"the process of the experiment sent what no experiment sends, and was ended: {error}",
        hint="code that the graph loads tampers with agentctl; look at what it imports",
    )


def _ended(code: int) -> GraphFailed:
    """Returns the error of a child that ended before its work was done."""
    if code >= 0:
        return GraphFailed(
            f"the code that was run ended the process of the experiment, with exit code {code}",
            hint="what it printed is above; the debug threads hold what had run until then",
        )
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hints = {
        "SIGKILL": "the system does that where memory runs out: fewer runs at once, -n 1",
        "SIGSYS": "the graph asked the kernel for what isolation closes: --isolation off runs it without",
        "SIGSEGV": "native code crashed: a package of the graph, not Python",
    }
    return GraphFailed(
        f"the process of the experiment was ended by {name}",
        hint=hints.get(name, "the debug threads hold what had run until then"),
    )
