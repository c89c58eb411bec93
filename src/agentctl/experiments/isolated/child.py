"""The process that an experiment runs in: it confines itself, then loads the graph and does the work.

Until it is confined it imports nothing but what confines it. It is started by `agentctl.experiments.isolated.apart`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from agentctl.sandbox.isolation.confinement import Confinement, confine
from agentctl.sandbox.isolation.descriptors import close_others

if TYPE_CHECKING:
    from agentctl.experiments.isolated.asking import Asking
    from agentctl.experiments.isolated.messages import Job, Told

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Runs the process; `argv` are the number of its end of the channel and its confinement as JSON."""
    number, allowed = int(argv[0]), json.loads(argv[1])
    _end_with_parent(int(argv[2]))
    close_others({number})
    stopped: list[str] = []
    tell_stopped: list[Callable[[str], None]] = [stopped.append]
    confinement = Confinement(
        proxy_port=allowed["proxy_port"],
        writable=tuple(map(Path, allowed["writable"])),
        unreadable=tuple(map(Path, allowed["unreadable"])),
    )
    try:
        held, problem = confine(confinement, refused=lambda what: tell_stopped[-1](what)).text, None
    except Exception as error:
        held, problem = "", error
    from agentctl.experiments.isolated.asking import Asking
    from agentctl.experiments.isolated.channel import Channel

    asking = Asking(Channel(socket.socket(fileno=number), max_bytes=sys.maxsize))
    code = 0
    try:
        asking.tell(_outcome(asking, held, problem, tell_stopped))
    except (EOFError, OSError):
        code = 1
    except KeyboardInterrupt:
        code = 130
    # Threads of nodes that never return would keep an ordinary end waiting.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _outcome(asking: Asking, held: str, problem: Exception | None, tell_stopped: list[Callable[[str], None]]) -> Told:
    """Does the work; returns what to tell of it. Ctrl-C and the end of the parent get out."""
    import traceback

    from agentctl.errors import AgentctlError, GraphFailed, is_of_called_code
    from agentctl.experiments.isolated import messages

    try:
        if problem is not None:
            raise problem
        asking.tell(messages.Held(held))
        known: set[str] = set()

        def tell(what: str) -> None:
            if what not in known:
                known.add(what)
                asking.tell(messages.Stopped(what))

        _import_ahead()
        tell_stopped.append(tell)
        job = asking.hear()
        return _work(job, asking)
    except AgentctlError as error:
        return messages.as_failed(error)
    except SystemExit as error:
        return messages.as_failed(GraphFailed(f"the code that was run ended the command: SystemExit: {error.code}"))
    except (EOFError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if not is_of_called_code(error):
            raise
        return messages.Failed("", f"{type(error).__name__}: {error}", traceback=traceback.format_exc())


def _work(job: Job, asking: Asking) -> Told:
    from agentctl.experiments.experiment import DebugStore
    from agentctl.experiments.isolated import messages
    from agentctl.experiments.isolated.far_reader import FarReader
    from agentctl.experiments.judging.checks import parse_checks
    from agentctl.experiments.prepare import prepared
    from agentctl.stores.base import StoreInfo
    from agentctl.stores.sqlite.writer import SqliteWriter

    sys.path += [folder for folder in job.path if folder not in sys.path]
    writer = SqliteWriter(job.scratch)
    writer.info = StoreInfo("sqlite", job.debug, job.debug_profile)
    debug = DebugStore(
        str(job.scratch),
        writer,
        job.debug_profile,
        names=lambda kind, n: tuple(asking.ask(messages.AskNames(kind, n))),
        is_scratch=True,
    )
    writer.setup()
    with prepared(
        FarReader(job.source, asking),
        debug,
        job.target,
        job.graph,
        job.settings,
        check=parse_checks(job.checks, job.settings.cwd),
        branch=job.branch,
        isolation=job.isolation,
        on_plan=lambda plan: asking.tell(messages.Planned(plan)),
    ) as experiment:
        report = job.work.do(experiment, job.target)
        return messages.Done(report, experiment.recording.to_json())


def _import_ahead() -> None:
    """Imports what every graph needs, while the parent still opens its stores.

    Packages that try out sockets when they are imported do it here, before such attempts are told.
    """
    for name in ("langgraph.checkpoint.sqlite.aio", "langgraph.pregel", "langsmith.client"):
        import_module(name)


def _end_with_parent(parent: int) -> None:
    """Lets the kernel end this process when its parent ends, however that ends."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
