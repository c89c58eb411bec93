"""What a program that answers approvals needs of the application: its claim on the answer."""

from __future__ import annotations

import os
from collections.abc import Mapping

from graphs.common import answers
from graphs.common.effects import application_database


def claim_answer(
    thread: str,
    interrupt_id: str,
    answer: object,
    configurable: Mapping[str, object],
    env: Mapping[str, str] = os.environ,
) -> None:
    """Claims a question in the database of SUPPORT_DATABASE_URL, before `agentctl resume` answers it.

    Raises:
        AlreadyAnswered: it is claimed; the winner is named.
        KeyError: the variable is missing.
    """
    answers.claim_answer(application_database(env["SUPPORT_DATABASE_URL"]), thread, interrupt_id, answer, configurable)
