"""The envelope of a command's JSON document."""

from __future__ import annotations

from collections.abc import Mapping


def document(schema: str, body: Mapping[str, object]) -> dict[str, object]:
    """Returns the JSON document of a command: its schema name and version first."""
    return {"schema": f"agentctl.{schema}/1", **body}
