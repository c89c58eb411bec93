"""The table of everything that `doctor` can find. docs/doctor.md is compared with it by a test."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from agentctl.records.faults import Severity


class Code(NamedTuple):
    """One kind of finding: its name, how bad it is, and what it means in one line."""

    name: str
    severity: Severity
    meaning: str


_ALL: Final = (
    Code("call_unanswered", "fault", "a tool call has no result, and the conversation went on or ended without it"),
    Code("call_failed", "fault", "a task raised and left calls unanswered; a new message would leave them so for good"),
    Code("call_answered_twice", "fault", "a tool call has more than one result"),
    Code("call_orphaned", "fault", "a tool result answers no call before it"),
    Code("call_misordered", "fault", "a tool result does not stand directly after the message that made its call"),
    Code("call_invalid", "fault", "the model malformed a call, which providers want answered all the same"),
    Code("call_without_id", "warning", "a tool call has an empty id: results are paired with it by position alone"),
    Code("call_waiting", "info", "the thread stopped before tool calls were answered"),
    Code("task_failed", "warning", "a node raised, and the thread waits for it to be run again"),
    Code("router_failed", "fault", "a node finished and its routing did not, so the thread only looks complete"),
    Code("interrupt_pending", "info", "a question waits for an answer; a fault where it is older than --older-than"),
    Code("writes_missing", "fault", "a node ran, and what it wrote is not stored"),
    Code("join_wrong", "fault", "a join is stored with a side that had not arrived (durability async)"),
    Code("value_mutated", "warning", "a channel's value changed although nothing wrote to it: mutated in place"),
    Code("parent_missing", "fault", "the parent of a checkpoint is not stored"),
    Code("parent_wrong", "fault", "the parent of a checkpoint is none that it can have: itself, or a later step"),
    Code("rows_recreated", "fault", "a run went on writing after its thread had been deleted"),
    Code("writes_orphaned", "fault", "pending writes belong to a checkpoint that is not stored"),
    Code("blobs_orphaned", "warning", "stored values belong to no checkpoint"),
    Code("namespace_orphaned", "fault", "a subgraph's rows belong to a checkpoint that is not stored"),
    Code("thread_headless", "fault", "rows of a thread of which no checkpoint of the root graph is stored"),
    Code("blob_missing", "fault", "a checkpoint names a stored value that is not there"),
    Code("delta_broken", "fault", "a delta channel cannot be rebuilt: its snapshot and the rows down to it are gone"),
    Code("row_unreadable", "fault", "nothing of a checkpoint can be read"),
    Code("rows_unreadable", "fault", "a namespace has rows that no saver writes, and reading it stopped there"),
    Code("value_unreadable", "fault", "a channel's value or a pending write cannot be read"),
    Code("metadata_unreadable", "fault", "a checkpoint's metadata cannot be read"),
    Code("metadata_lacking", "warning", "a checkpoint's metadata has no step or no source"),
    Code("value_drifted", "fault", "a value lost its type: an object before, its bare fields after"),
    Code("key_missing", "info", "rows are encrypted and there is no key, so their values were not looked into"),
    Code("encryption_mixed", "fault", "some rows of a thread are encrypted and some are not"),
    Code("metadata_secret", "fault", "metadata holds what looks like a secret"),
    Code("several_heads", "info", "a thread has several branches"),
    Code("head_edited", "warning", "the newest checkpoint descends from an update or a fork, not from a run alone"),
    Code("head_superseded", "fault", "the newest id is not the end of its branch: clocks differed"),
    Code("id_invalid", "fault", "a checkpoint's id is empty or no hexadecimal, so nothing can run from it"),
    Code("versions_missing", "fault", "a checkpoint lacks versions, or those that nodes saw: nothing runs from it"),
    Code("versions_integer", "warning", "channel versions are numbers: another kind of saver wrote the row"),
    Code("versions_mixed", "fault", "a channel's version and the one that a node saw cannot be compared"),
    Code("format_newer", "warning", "a checkpoint has a format that is newer than this version knows"),
    Code("layout_newer", "warning", "the tables are of a newer layout than this version knows"),
    Code("layout_old", "info", "the tables are of an older layout: writes do not say which task made them"),
    Code("layout_altered", "warning", "the tables have columns that no saver makes; copies leave them behind"),
    Code("key_lacking", "fault", "a table has lost its primary key, so a row can be there twice"),
    Code("node_gone", "fault", "the thread waits for a node that the graph does not have"),
    Code("channel_gone", "fault", "the thread holds a channel that the graph does not have; loading drops its value"),
    Code("trigger_gone", "fault", "a node was asked to run by a channel that the graph does not have"),
    Code("resume_lost", "fault", "by the rows nodes wait, and the graph would run none of them"),
    Code("resume_plan", "info", "which nodes the graph would run when the thread is resumed"),
)

CODES: Final[Mapping[str, Code]] = MappingProxyType({code.name: code for code in _ALL})
