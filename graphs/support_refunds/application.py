"""The tables that the workflow's application keeps beside the checkpoints."""

from __future__ import annotations

from graphs.common.answers import CLAIMS_TABLE
from graphs.common.database import Database
from graphs.common.outbound import OUTBOUND_TABLE


def application_database(url: str) -> Database:
    """Returns the database of outbound requests and answers, by URL; nothing is opened yet."""
    return Database(url, (OUTBOUND_TABLE, CLAIMS_TABLE))
