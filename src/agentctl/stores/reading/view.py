"""One checkpoint in full, from stored rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentctl.codec.messages import is_message_list, messages_in
from agentctl.records.messages import Message
from agentctl.records.threads import CheckpointView
from agentctl.stores.base import Reader
from agentctl.stores.reading import layout
from agentctl.stores.reading.lineage import no_checkpoint, no_checkpoints, read_tree
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.steps import StepReader

_MESSAGES = "messages"


def read_checkpoint(
    reader: Reader, thread: str, ns: str, id: str, *, channels: Collection[str] | None = None
) -> CheckpointView:
    """Returns one checkpoint with its values, what it changed, and the tasks that run from it with their results.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        ns: Namespace.
        id: Full checkpoint id.
        channels: Values of only these channels; None for all.

    Raises:
        NotFound: The thread, the namespace or the checkpoint does not exist.
    """
    tree = read_tree(reader, thread, ns)
    if tree.head is None:
        raise no_checkpoints(reader, thread, ns)
    if id not in tree.parents:
        raise no_checkpoint(reader, thread, ns, id)
    (step,) = StepReader(reader, thread, ns, tree=tree).steps([id])
    values = read_values(reader, thread, ns, id, channels=channels)
    row = step.row
    return CheckpointView(
        store=str(reader.info),
        thread=thread,
        ns=ns,
        id=id,
        parent=row.parent,
        step=row.step,
        source=row.source,
        at=row.at,
        metadata=row.metadata,
        values=values.values,
        changed=step.channels or changed_channels(reader, thread, ns, id, row.parent),
        next=step.next,
        tasks=step.tasks,
        wrote=step.wrote,
        unreadable=values.unreadable or None,
        messages=_messages(values.values),
        notes=values.notes or None,
    )


def changed_channels(reader: Reader, thread: str, ns: str, id: str, parent: str | None) -> tuple[str, ...]:
    """Returns the state channels whose version differs from the parent's, sorted; no value is read."""
    ids = [id] if parent is None else [id, parent]
    found = {stored.row.id: stored for stored in reader.stored(thread, ns, ids, channels=())}
    if id not in found or (parent is not None and parent not in found):
        return ()
    new, old = found[id], found[parent].channel_versions if parent is not None else {}
    return layout.newer_versions(new.channel_versions, old, format=new.format, nodes=new.versions_seen)


def _messages(values: Mapping[str, object]) -> tuple[Message, ...]:
    """Returns the conversation: the channel `messages`, else the first that holds messages and nothing else."""
    if _MESSAGES in values:
        return messages_in(values[_MESSAGES])
    found = next((value for value in values.values() if is_message_list(value)), None)
    return messages_in(found)
