"""What a row says of itself: its id, its versions, its format, its metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from agentctl.codec.secrets import hide_secrets, is_secret_name
from agentctl.stores.reading.layout import is_state_channel
from agentctl.upkeep.doctor.records import Finding, Findings, Visit

KNOWN_FORMAT: Final = 4
"""Source: LATEST_VERSION, langgraph/pregel/_checkpoint.py (langgraph 1.2.24)."""

_OWN_ROUTES_FORMAT: Final = 3
"""Formats before have channels for nodes among those of state, which loading renames."""
_SHORTEST_SECRET: Final = 6
_PERSONS: Final = ("_id", "_user", "_name", "_type", "_url", "_count", "_limit")
"""Ends of names that hold the word of a secret and name none: `langgraph_auth_user_id`, `token_count`."""


def id_invalid(visit: Visit) -> Findings:
    """Ids from which LangGraph can make no task ids.

    Source: prepare_single_task, langgraph/pregel/_algo.py (langgraph 1.2.24): the id's hexadecimal digits are hashed.
    """
    digits = visit.row.id.replace("-", "")
    try:
        bytes.fromhex(digits)
    except ValueError:
        digits = ""
    if not digits:
        cause = f"the id {visit.row.id!r} is no hexadecimal number" if visit.row.id else "the id is empty"
        helps = visit.site.command("history", visit.site.target)
        yield Finding("id_invalid", visit.row.id, f"{cause}: nothing can run from it", helps, visit.row.id)


def versions_missing(visit: Visit) -> Findings:
    """Rows without any version: LangGraph finds nothing that is newer than what a node has seen.

    The row that durability "exit" puts before a delta channel's writes has neither versions nor a source.
    """
    state = visit.state
    if not state.has_versions:
        return
    if state.damage is None and not state.channel_versions and (state.values or state.unread or visit.row.source):
        cause = "it has no channel versions: nothing can run from it"
        yield Finding("versions_missing", visit.row.id, cause, _history(visit), "versions")
    elif state.damage is None and not state.versions_seen and visit.row.source == "loop":
        cause = "it has no versions_seen, so nothing tells which nodes have run: nothing can run from it"
        yield Finding("versions_missing", visit.row.id, cause, _history(visit), "seen")


def version_lost(visit: Visit) -> Findings:
    """Versions that the parent had: LangGraph never drops one, and what lost it loads without its value on Postgres."""
    parent, state = visit.parent, visit.state
    if parent is None or not (parent.readable and visit.kept.readable) or state.format != parent.format:
        return
    if not state.has_versions or not state.channel_versions or state.format < _OWN_ROUTES_FORMAT:
        return
    lost = sorted(name for name in parent.channel_versions.keys() - state.channel_versions if is_state_channel(name))
    if lost:
        cause = f"it has no version of {', '.join(lost)}, and its parent has one: its value is not loaded from there"
        helps = visit.site.command("diff", visit.site.at(parent.row.id), visit.site.at(visit.row.id))
        yield Finding("versions_missing", visit.row.id, cause, helps, tuple(lost))


def versions_integer(visit: Visit) -> Findings:
    """Versions that are numbers. The database savers of Python write text.

    Source: get_next_version of langgraph-checkpoint-sqlite 3.1.2 and -postgres 3.2.0; LangGraph.js counts.
    """
    numbers = sorted(name for name, version in visit.state.channel_versions.items() if not isinstance(version, str))
    if numbers:
        cause = f"{len(numbers)} channel versions are numbers, as LangGraph.js and savers in memory write them"
        yield Finding("versions_integer", visit.row.id, cause, _history(visit), "versions")


def versions_mixed(visit: Visit) -> Findings:
    """Versions that Python cannot compare with those that a node has seen: a resume raises TypeError."""
    for node, seen in visit.state.versions_seen.items():
        for channel, version in seen.items():
            now = visit.state.channel_versions.get(channel)
            if now is not None and isinstance(now, str) != isinstance(version, str):
                cause = f"{channel} is at {now!r} and {node} has seen {version!r}: a resume cannot compare them"
                yield Finding("versions_mixed", visit.row.id, cause, visit.site.show(visit.row.id), channel)


def format_newer(visit: Visit) -> Findings:
    """Checkpoint formats that are not known here."""
    if visit.state.damage is None and visit.state.format > KNOWN_FORMAT:
        cause = f"its format is {visit.state.format}, this version knows up to {KNOWN_FORMAT}"
        yield Finding("format_newer", visit.row.id, cause, _history(visit), visit.state.format)


def metadata_unreadable(visit: Visit) -> Findings:
    """Metadata that is not a JSON object."""
    if visit.row.metadata_error is not None:
        yield Finding("metadata_unreadable", visit.row.id, visit.row.metadata_error, _history(visit), visit.row.id)


def metadata_lacking(visit: Visit) -> Findings:
    """Metadata without a step or a source, on a row that a run can go on from.

    Source: `metadata.get("step", -2)`, langgraph/pregel/_loop.py (langgraph 1.2.24).
    """
    row, state = visit.row, visit.state
    if row.metadata_error is not None or not state.has_versions or not state.channel_versions:
        return
    if row.step is None:
        cause = "its metadata has no step: what runs from it counts its steps anew"
        yield Finding("metadata_lacking", row.id, cause, _history(visit), "step")
    elif not row.source:
        cause = "its metadata has no source: whether a run, an input or an edit stored it cannot be told"
        yield Finding("metadata_lacking", row.id, cause, _history(visit), "source")


def metadata_secret(visit: Visit) -> Findings:
    """Secrets in metadata, by their key's name or by their shape; the values themselves are not shown."""
    for path in _secrets(visit.row.metadata, ""):
        cause = f"metadata {path} holds what looks like a secret; keep it in the runtime context, and change it now"
        yield Finding("metadata_secret", visit.row.id, cause, visit.site.show(visit.row.id), path)


def _secrets(value: object, path: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            name = f"{path}.{key}" if path else str(key)
            if isinstance(item, str) and is_secret_name(str(key)) and not str(key).lower().endswith(_PERSONS):
                if len(item) >= _SHORTEST_SECRET:
                    yield name
            else:
                yield from _secrets(item, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets(item, f"{path}[]")
    elif isinstance(value, str) and hide_secrets(value) != value:
        yield path


def _history(visit: Visit) -> str:
    return visit.site.command("history", visit.site.target)


VISIT_RULES: Final = (
    id_invalid,
    versions_missing,
    version_lost,
    versions_integer,
    versions_mixed,
    format_newer,
    metadata_unreadable,
    metadata_lacking,
    metadata_secret,
)
