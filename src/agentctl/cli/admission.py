"""Whether a command may open a store: the ticket that its profile asks for, logged before anything is read."""

from __future__ import annotations

import os
import pwd
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentctl.cli.env import Env
from agentctl.config.load import Config
from agentctl.config.stores import StoreChoice
from agentctl.errors import Refused
from agentctl.records.audit import Person, Use, Why

if TYPE_CHECKING:
    from agentctl.stores.counting import ReadTally


@contextmanager
def admitted(env: Env, config: Config, choice: StoreChoice, use: Use) -> Iterator[ReadTally | None]:
    """Lets a store be opened in the block; gives what counts its reads, or None where they are not logged.

    The opening is in the log, on the disk, before the block begins. What was read is logged when it ends.

    Args:
        env: The world, with the ticket and the reason that were given.
        config: The configuration.
        choice: The store.
        use: What for.

    Raises:
        Refused: the profile needs a ticket, and neither that nor a reason was given.
        StoreError: the log cannot be written.
    """
    rule = choice.audit
    if rule is None:
        yield None
        return
    from agentctl.casebook.audit.accesses import log_closing, log_opening
    from agentctl.casebook.audit.words import kept_words
    from agentctl.stores.counting import ReadTally

    why, words = Why(env.ticket.strip(), env.reason.strip()), kept_words(env.argv)
    if rule.ticket and not why.given:
        raise Refused(
            f"profile {rule.profile} has ticket: required: each read says what it is for, by --ticket or --reason",
            hint=shlex.join(("agentctl", *words, "--ticket", "ID")),
        )
    opening = log_opening(
        config.audit_folder,
        who=_person(),
        command=words,
        profile=rule.profile,
        store=choice.shown,
        use=use,
        why=why,
        now=env.now(),
    )
    tally = ReadTally()
    try:
        yield tally
    finally:
        log_closing(config.audit_folder, opening, tally.touched(), now=env.now())


def _person() -> Person:
    """Returns who runs this process: by its user id, since a variable can say anything."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return Person(user, os.uname().nodename)
