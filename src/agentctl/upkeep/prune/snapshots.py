"""Whole values of delta channels, made from stored rows, as LangGraph stores them in a snapshot.

Source: `_DeltaSnapshot`, langgraph/checkpoint/serde/types.py and jsonplus.py (langgraph-checkpoint 4.3.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentctl.codec.delta import NO_SEED, rebuild
from agentctl.codec.encryption import is_encrypted
from agentctl.codec.tree import DELTA_SNAPSHOT, DELTA_SNAPSHOT_TYPE, Typed
from agentctl.codec.values import pack, plain, unpack
from agentctl.errors import DecodeError, Refused
from agentctl.records.rows import CheckpointRow, Stored
from agentctl.stores.base import Reader
from agentctl.stores.reading.ancestors import delta_ancestors


def read_snapshots(
    reader: Reader, row: CheckpointRow, ancestors: Sequence[str]
) -> tuple[Mapping[str, bytes], frozenset[str]]:
    """Returns the packed snapshots of the delta channels that a checkpoint does not store, and those that have none.

    None can be made of a channel whose reducer is not known, whose writes hold more than whole messages or files, or
    that is encrypted.

    Args:
        reader: Where the thread lives.
        row: The checkpoint.
        ancestors: Ids from its parent on, nearest first.
    """
    path = list(delta_ancestors(reader, row, ancestors))
    made: dict[str, bytes] = {}
    without: set[str] = set()
    for channel in sorted(path[0][1] if path else ()):
        ids = [id for id, sought in path if channel in sought]
        seed, writes = _history(reader, row, channel, ids)
        if not seed and not writes:
            continue  # never written, so there is nothing to keep
        snapshot = _snapshot(seed, writes, channel)
        if snapshot is None:
            without.add(channel)
        else:
            made[channel] = snapshot
    return made, frozenset(without)


def _history(
    reader: Reader, row: CheckpointRow, channel: str, ids: Sequence[str]
) -> tuple[Sequence[Stored], Sequence[Stored]]:
    """Returns the value that a channel starts from, if there is one, and what was written to it since."""
    stored = [
        checkpoint.values[channel]
        for checkpoint in reader.stored(row.thread, row.ns, ids[-1:], channels=[channel])
        if channel in checkpoint.values
    ]
    written = {id: list[Stored]() for id in reversed(ids)}
    for write in reader.writes(row.thread, row.ns, ids, channels=[channel]):
        if write.value is not None:
            written[write.checkpoint_id].append(write.value)
    return stored, [value for writes in written.values() for value in writes]


def _snapshot(seed: Sequence[Stored], writes: Sequence[Stored], channel: str) -> bytes | None:
    values = [*seed, *writes]
    if any(is_encrypted(value) for value in values):
        return None
    try:
        return _fold([unpack(value) for value in values], has_seed=bool(seed), channel=channel)
    except (DecodeError, Refused):
        return None


def _fold(trees: Sequence[object], *, has_seed: bool, channel: str) -> bytes | None:
    """Folds values by their inert forms, and packs what these stand for.

    The reducers that are known put items together and change none, so that each item of the result is one that went
    in.
    """
    inert = [_Inert(tree) for tree in trees]
    seed: object = inert[0].value if has_seed else NO_SEED
    rebuilt = rebuild(seed, [one.value for one in inert[has_seed:]], channel=channel)
    if not rebuilt.known:
        return None
    of = {key: tree for one in inert for key, tree in one.items}
    value = rebuilt.value
    if isinstance(value, list) and all(id(item) in of for item in value):
        whole: object = [of[id(item)] for item in value]
    elif isinstance(value, dict) and all(id(item) in of for item in value.values()):
        whole = {name: of[id(item)] for name, item in value.items()}
    else:
        return None
    return pack(Typed(DELTA_SNAPSHOT, *DELTA_SNAPSHOT_TYPE, whole)).data


class _Inert:
    """A value's inert form, and the trees that its items stand for, by the identity of these items' inert forms."""

    def __init__(self, tree: object) -> None:
        content = tree.payload if isinstance(tree, Typed) and tree.code == DELTA_SNAPSHOT else tree
        self.value: object
        if isinstance(content, list):
            items = [plain(item) for item in content]
            self.value = items
            self.items = list(_paired(items, content))
        elif isinstance(content, dict) and all(isinstance(name, str) for name in content):
            named = {name: plain(item) for name, item in content.items()}
            self.value = named
            self.items = list(_paired(named.values(), content.values()))
        else:
            self.value = plain(content)
            self.items = [(id(self.value), content)]


def _paired(inert: Iterable[object], trees: Iterable[object]) -> Iterator[tuple[int, object]]:
    for one, tree in zip(inert, trees, strict=True):
        yield id(one), tree
