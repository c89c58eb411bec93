"""The tables that the workflow's application keeps beside the checkpoints."""

from __future__ import annotations

import os
from collections.abc import Mapping

from graphs.common import answers
from graphs.common.answers import CLAIMS_TABLE
from graphs.common.database import Database
from graphs.common.outbound import OUTBOUND_TABLE


def application_database(url: str) -> Database:
    """Returns the database of outbound requests and answers, by URL; nothing is opened yet."""
    return Database(url, (OUTBOUND_TABLE, CLAIMS_TABLE))


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
