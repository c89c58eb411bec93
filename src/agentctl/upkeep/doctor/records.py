"""What the rules look at: one checkpoint on the way through a namespace, the head of one, and the whole of one.

Everything here was read before a rule sees it. Of a long thread one checkpoint is held at a time, and of those above
it what its children are compared with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agentctl.records.copies import command
from agentctl.records.faults import TypeCount
from agentctl.records.messages import Message
from agentctl.records.rows import CheckpointRow, StoredCheckpoint, Version
from agentctl.stores.reading.lineage import Tree
from agentctl.stores.reading.steps import Step
from agentctl.stores.reading.taskrows import NO_WRITES_STORED, CheckpointWrites


class Shape(NamedTuple):
    """What a value looks like without its contents: for telling an object from its bare fields.

    Attributes:
        where: '' for the value itself, `[]` for an item of a list, `{}` for a value of a map.
        type: Full name of its class, '' for plain data.
        fields: Names of its fields; empty for what has none.
        text: A short plain value, or what an object without fields was made of; '' for all else.
    """

    where: str
    type: str
    fields: frozenset[str]
    text: str = ""


class Drift(NamedTuple):
    """A channel whose value lost its type."""

    channel: str
    type: str
    where: str


class Unread(NamedTuple):
    """A value that cannot be read: of a channel, or a pending write to it by a task."""

    channel: str
    why: str
    of_write: bool
    version: Version | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a checkpoint until its children have been looked at. No value is."""

    row: CheckpointRow
    channel_versions: Mapping[str, Version] = field(default_factory=dict)
    versions_seen: Mapping[str, Mapping[str, Version]] = field(default_factory=dict)
    format: int = 0
    readable: bool = True
    each_step: bool = False
    """Whether the run that made it stored every step: an input, or a row one step after its parent."""
    writes: CheckpointWrites = NO_WRITES_STORED
    arrivals: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Names that are stored in each join."""
    arriving: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Names that pending writes add to each join."""
    n_sends: int = 0
    """How many Sends it holds, which the step from it runs."""
    digests: Mapping[str, bytes] = field(default_factory=dict)
    shapes: Mapping[str, frozenset[Shape]] = field(default_factory=dict)
    cut_off: frozenset[str] = frozenset()
    """Delta channels that have neither a snapshot above nor a way to the root."""
    lost: frozenset[str] = frozenset()
    """Channels that must have a value and have none."""


@dataclass(frozen=True, slots=True)
class Site:
    """A namespace of a thread, and the commands that lead to it.

    `is_copy`: agentctl made the thread, so that parents and enclosing rows may have stayed behind.
    """

    target: str
    ns: str
    is_copy: bool = False
    store: str = ""
    """What names the store on the command line: `PROFILE::`, or nothing for the default one."""

    def at(self, checkpoint_id: str) -> str:
        """Returns the target that names a checkpoint."""
        return f"{self.target}@{checkpoint_id}"

    def command(self, verb: str, target: str, *words: str) -> str:
        """Returns a command on a target, with `--ns` inside a subgraph."""
        return command(verb, target, *(("--ns", self.ns) if self.ns else ()), *words)

    def of_store(self, verb: str) -> str:
        """Returns a command on the whole store."""
        return command(verb, *((self.store,) if self.store else ()))

    def inside(self, ns: str) -> Site:
        """Returns another namespace of the thread."""
        return replace(self, ns=ns)

    def show(self, checkpoint_id: str, *words: str) -> str:
        """Returns the command that shows a checkpoint."""
        return self.command("show", self.at(checkpoint_id), *words)


class Finding(NamedTuple):
    """What a rule found. Findings of a code with equal `key` are one in a namespace, and counted.

    `ns` is the namespace where it is not the one that is looked at.
    """

    code: str
    checkpoint: str | None
    cause: str
    command: str
    key: object = None
    ns: str | None = None


Findings = Iterator[Finding]


@dataclass(frozen=True, slots=True)
class Visit:
    """One checkpoint on the way through a namespace, parents before children.

    Attributes:
        site: Where it is.
        state: The checkpoint with its serialized values.
        parent: What is kept of its parent, None where it has none or it is not stored.
        dangling: The recorded parent that is not stored, or None.
        kept: What will be kept of it.
        unread: Its values and the writes on it that cannot be read.
        locked: How many of them are encrypted and there is no key.
        drifted: Channels that lost their type since the parent.
        mutated: Channels whose version is the parent's and whose value is not.
    """

    site: Site
    state: StoredCheckpoint
    parent: Kept | None
    dangling: str | None
    kept: Kept
    unread: tuple[Unread, ...] = ()
    locked: int = 0
    drifted: tuple[Drift, ...] = ()
    mutated: tuple[str, ...] = ()

    @property
    def row(self) -> CheckpointRow:
        """The checkpoint without its state."""
        return self.state.row

    @property
    def ran_from_parent(self) -> Kept | None:
        """The parent, where one super-step of a run led from it to here; None for any other step."""
        row, parent = self.row, self.parent
        if parent is None or row.source != "loop" or row.step is None or parent.row.step != row.step - 1:
            return None
        return parent if parent.readable and self.kept.readable else None


@dataclass(frozen=True, slots=True)
class Head:
    """The newest checkpoint of a namespace, which the next run goes on from.

    Attributes:
        site: Where it is.
        step: It, and the step that runs from it.
        conversations: Messages by channel, that of the conversation first.
        is_live: Whether a resume goes on from it: of the root graph, or of a subgraph that the root's head waits for.
        lost_at: Of results whose call is not there, the first checkpoint that lacks it, by channel and place.
        channels: State channels that have a version.
        routes: By the name of each node that is due, the routing channels that make it run.
    """

    site: Site
    step: Step
    conversations: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)
    lost_at: Mapping[tuple[str, int], str] = field(default_factory=dict)
    is_live: bool = True
    channels: tuple[str, ...] = ()
    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Its checkpoint id."""
        return self.step.row.id


@dataclass(slots=True)
class Passed:
    """What was noted of a namespace on the way through it."""

    edits: set[str] = field(default_factory=set)
    owners: dict[tuple[str, str], str] = field(default_factory=dict)
    """Checkpoints of enclosing namespaces that rows of a subgraph belong to, each with one such row."""
    leaps: list[tuple[str, str]] = field(default_factory=list)
    """Checkpoints that are more than one step after the one before, with that one, '' for none.

    A run with durability "exit" stores no checkpoint of its steps, a pruned thread has none any more.
    """


@dataclass(frozen=True, slots=True)
class Whole:
    """A namespace after all of it was passed.

    Attributes:
        site: Where it is.
        tree: Its ids.
        passed: What was noted.
        root: The ids of the root graph.
        of_root: What was noted of that, which is passed first.
        around: Ids of every namespace that has others below it, the root graph's too.
    """

    site: Site
    tree: Tree
    passed: Passed
    root: Tree
    of_root: Passed
    around: Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class ThreadRows:
    """What the store tells of a thread's rows.

    Attributes:
        site: The root namespace of the thread.
        orphans: Checkpoints that are not stored and have writes, with how many, by namespace.
        orphan_blobs: Values that no checkpoint names, by namespace and channel, and whether some of them are newer than
            all that is named.
        newest: The newest checkpoint of each namespace.
        first_parents: By namespace, the missing parent of its oldest checkpoint and that checkpoint.
        types: How many rows have which serialization type.
    """

    site: Site
    orphans: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    orphan_blobs: Mapping[tuple[str, str], tuple[int, bool]] = field(default_factory=dict)
    newest: Mapping[str, str] = field(default_factory=dict)
    first_parents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    types: tuple[TypeCount, ...] = ()

    @property
    def has_root(self) -> bool:
        """Whether the root graph has a checkpoint."""
        return "" in self.newest
