"""One checkpoint in full, from stored rows."""

from __future__ import annotations

from collections.abc import Collection

from agentctl.codec.messages import is_message_list, messages_in
from agentctl.errors import DecodeError
from agentctl.records.threads import CheckpointView
from agentctl.stores.base import Reader
from agentctl.stores.large import LARGE_BYTES
from agentctl.stores.reading import layout
from agentctl.stores.reading.large_state import LastMessages, beginning, last_messages
from agentctl.stores.reading.lineage import no_checkpoint, no_checkpoints, read_tree
from agentctl.stores.reading.state import Values, read_values
from agentctl.stores.reading.steps import StepReader

_MESSAGES = "messages"


def read_checkpoint(
    reader: Reader,
    thread: str,
    ns: str,
    id: str,
    *,
    channels: Collection[str] | None = None,
    n_last_messages: int | None = None,
) -> CheckpointView:
    """Returns one checkpoint with its values, what it changed, and the tasks that run from it with their results.

    Args:
        reader: Where the thread lives.
        thread: Exact thread id.
        ns: Namespace.
        id: Full checkpoint id.
        channels: Values of only these channels; None for all.
        n_last_messages: Of values over 1 MB only the beginning is wanted, and of a conversation among them so many of
            its last messages; None reads all.

    Raises:
        NotFound: The thread, the namespace or the checkpoint does not exist.
    """
    tree = read_tree(reader, thread, ns)
    if tree.head is None:
        raise no_checkpoints(reader, thread, ns)
    if id not in tree.parents:
        raise no_checkpoint(reader, thread, ns, id)
    value_bytes = None if n_last_messages is None else LARGE_BYTES
    step = next(iter(StepReader(reader, thread, ns, tree=tree, value_bytes=value_bytes).steps([id])), None)
    if step is None:  # gone since the tree was read, or its id is no text that can be asked for
        raise no_checkpoint(reader, thread, ns, id)
    values = read_values(reader, thread, ns, id, channels=channels, value_bytes=value_bytes)
    talk = _messages(values, n_last_messages or 0)
    if values.large:
        values = _begun(values)
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
        messages=talk.messages,
        notes=values.notes or None,
        n_earlier_messages=talk.n_earlier,
    )


def changed_channels(reader: Reader, thread: str, ns: str, id: str, parent: str | None) -> tuple[str, ...]:
    """Returns the state channels whose version differs from the parent's, sorted; no value is read."""
    ids = [id] if parent is None else [id, parent]
    found = {stored.row.id: stored for stored in reader.stored(thread, ns, ids, channels=())}
    if id not in found or (parent is not None and parent not in found):
        return ()
    new, old = found[id], found[parent].channel_versions if parent is not None else {}
    return layout.newer_versions(new.channel_versions, old, format=new.format, nodes=new.versions_seen)


def _messages(values: Values, n_last: int) -> LastMessages:
    """Returns the conversation: the channel `messages`, else the first that holds messages and nothing else."""
    if _MESSAGES in values.values:
        return LastMessages(messages_in(values.values[_MESSAGES]))
    found = next((value for value in values.values.values() if is_message_list(value)), None)
    if found is not None and _MESSAGES not in values.large:
        return LastMessages(messages_in(found))
    return _large_messages(values, n_last)


def _large_messages(values: Values, n_last: int) -> LastMessages:
    names = [_MESSAGES] if _MESSAGES in values.large else list(values.large)
    for name in names:
        try:
            found = last_messages(values.large[name], n_last)
        except DecodeError:
            continue
        if name == _MESSAGES or (found.messages and not found.holds_others):
            return found
    return LastMessages()


def _begun(values: Values) -> Values:
    """Returns values with the beginnings of the large ones."""
    begun: dict[str, object] = {}
    unreadable: dict[str, str] = {}
    for channel, value in values.large.items():
        try:
            begun[channel] = beginning(value)
        except DecodeError as error:
            unreadable[channel] = error.message
    return Values({**values.values, **begun}, {**values.unreadable, **unreadable}, values.notes)
