"""Blobs that no checkpoint of their thread names, in SQL.

Source: langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py (`SELECT_SQL`, `get_next_version`);
@langchain/langgraph-checkpoint 1.0 (`getNextVersion`: whole numbers).
"""

from __future__ import annotations

from typing import Final

VERSIONS: Final = """
jsonb_each_text(CASE WHEN jsonb_typeof(c.checkpoint -> 'channel_versions') = 'object'
    THEN c.checkpoint -> 'channel_versions' END) AS v(channel, version)
"""


def _number(version: str) -> str:
    """Returns the number that a version begins with, NULL of one that no saver makes."""
    return f"(CASE WHEN {version} ~ '^[0-9]+([.]|$)' THEN split_part({version}, '.', 1)::numeric END)"


STRAYS: Final = f"""
named AS MATERIALIZED (
    SELECT DISTINCT c.checkpoint_ns, v.channel, v.version FROM {{checkpoints}} c CROSS JOIN LATERAL {VERSIONS}
    WHERE c.thread_id = %(thread)s
), unnamed AS MATERIALIZED (
    SELECT b.checkpoint_ns, b.channel, b.version FROM {{blobs}} b
    LEFT JOIN named USING (checkpoint_ns, channel, version)
    WHERE b.thread_id = %(thread)s AND named.channel IS NULL
), newest AS (
    SELECT checkpoint_ns, max({_number("version")}) AS version FROM named
    WHERE checkpoint_ns IN (SELECT checkpoint_ns FROM unnamed) GROUP BY 1
), strays AS (
    SELECT u.checkpoint_ns, u.channel, u.version,
        NOT coalesce({_number("u.version")} <= newest.version, false) AS is_newer
    FROM unnamed u LEFT JOIN newest USING (checkpoint_ns)
)
"""
"""Parts of a WITH: `strays` are the blobs that no checkpoint names. `is_newer` are those whose versions come after all
that are named in their namespace: what a run that is at work may name next."""
