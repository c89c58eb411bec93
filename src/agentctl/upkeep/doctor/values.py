"""Stored values: there, readable, of the type they had, and unchanged where nothing wrote to them."""

from __future__ import annotations

from typing import Final

from agentctl.codec.encryption import KEY_VARIABLE
from agentctl.upkeep.doctor.records import Finding, Findings, Visit


def row_unreadable(visit: Visit) -> Findings:
    """Checkpoints of which nothing can be read."""
    if visit.state.damage is not None and not visit.locked:
        helps = visit.site.command("history", visit.site.target)
        yield Finding("row_unreadable", visit.row.id, visit.state.damage, helps, visit.row.id)


def value_unreadable(visit: Visit) -> Findings:
    """Channels and pending writes that cannot be read. A value that many checkpoints share is found once."""
    for unread in visit.unread:
        what = f"a pending write to {unread.channel}" if unread.of_write else unread.channel
        place = visit.row.id if unread.of_write or unread.version is None else unread.version
        helps = visit.site.show(visit.row.id, *(() if unread.of_write else ("--channel", unread.channel)))
        key = (unread.channel, unread.of_write, place)
        yield Finding("value_unreadable", visit.row.id, f"{what} cannot be read: {unread.why}", helps, key)


def key_missing(visit: Visit) -> Findings:
    """Encrypted values, where there is no key."""
    if visit.locked:
        cause = f"values are encrypted and {KEY_VARIABLE} is not set"
        helps = visit.site.command("doctor", visit.site.target) if not visit.site.ns else visit.site.show(visit.row.id)
        yield Finding("key_missing", visit.row.id, cause, f"{KEY_VARIABLE}=KEY {helps}", "key")


def blob_missing(visit: Visit) -> Findings:
    """Values that a checkpoint names and the store does not hold. One that many checkpoints share is found once."""
    for channel in sorted(visit.kept.lost):
        cause = f"the value of {channel} is not stored"
        key = (channel, visit.state.channel_versions.get(channel))
        yield Finding("blob_missing", visit.row.id, cause, visit.site.show(visit.row.id, "--channel", channel), key)


def delta_broken(visit: Visit) -> Findings:
    """Delta channels whose snapshot cannot be reached: LangGraph would load what is left of them without an error."""
    for channel in sorted(visit.kept.cut_off):
        cause = f"{channel} has no snapshot on the way up, and that way ends before the root of the thread"
        yield Finding("delta_broken", visit.row.id, cause, visit.site.show(visit.row.id), channel)


def value_drifted(visit: Visit) -> Findings:
    """Objects that became their bare fields, as a strict loader leaves those whose class it may not build."""
    for channel, type_name, where in visit.drifted:
        cause = f"{channel}{where} was {type_name} and is plain data since: its class could not be loaded"
        helps = visit.site.command("diff", visit.site.at(visit.row.parent or ""), visit.site.at(visit.row.id))
        yield Finding("value_drifted", visit.row.id, cause, helps, (channel, type_name, where))


def value_mutated(visit: Visit) -> Findings:
    """Channels that changed under the same version."""
    for channel in visit.mutated:
        cause = f"{channel} changed and nothing wrote to it: a node mutates it in place, or the row was altered"
        helps = visit.site.command("diff", visit.site.at(visit.row.parent or ""), visit.site.at(visit.row.id))
        yield Finding("value_mutated", visit.row.id, cause, helps, channel)


VISIT_RULES: Final = (
    row_unreadable,
    value_unreadable,
    key_missing,
    blob_missing,
    delta_broken,
    value_drifted,
    value_mutated,
)
