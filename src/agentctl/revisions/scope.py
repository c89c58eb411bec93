"""The lineage that a revision is read along, and what reading it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agentctl.errors import NotFound
from agentctl.records.messages import CallSite
from agentctl.records.rows import Lineage
from agentctl.revisions.candidates import ambiguous_ids, no_id
from agentctl.revisions.facts import Facts
from agentctl.revisions.namespaces import pick_namespace
from agentctl.revisions.shortids import match_id


@dataclass(frozen=True, slots=True)
class Resolution:
    """One checkpoint and why it is the one.

    Attributes:
        thread: Exact thread id.
        ns: Namespace the checkpoint is in.
        id: Full checkpoint id.
        why: One sentence without a full stop.
        notes: What the reader should know besides, such as that a call was found in a namespace below.
        call: The tool call, where the revision named one.
    """

    thread: str
    ns: str
    id: str
    why: str
    notes: tuple[str, ...] = ()
    call: CallSite | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The parent chain of `tip`, and where to look.

    Attributes:
        facts: The thread.
        ns: Namespace of the chain.
        tip: Full id of its newest checkpoint.
        on_branch: Whether the tip was given by `--branch` rather than being the head.
        anywhere: Whether an id that is not in `ns` may be looked for in the other namespaces.
        now: The clock.
    """

    facts: Facts
    ns: str
    tip: str
    on_branch: bool
    anywhere: bool
    now: datetime

    @property
    def chain(self) -> Lineage:
        """The lineage itself, read when asked for."""
        return self.facts.lineage(self.ns, self.tip)

    @property
    def name(self) -> str:
        """The lineage in words."""
        return f"the branch of {self.tip}" if self.on_branch else "the head's branch"

    def found(self, id: str, why: str, *, notes: Sequence[str] = ()) -> Resolution:
        """Returns a resolution inside the scope's own namespace."""
        return Resolution(self.facts.thread, self.ns, id, why, tuple(notes))


def open_scope(facts: Facts, *, now: datetime, ns: str | None, branch: str | None) -> Scope:
    """Returns the scope of the head, or of `branch` where one is given.

    Raises:
        NotFound: the thread, the namespace or the branch is not there.
        Ambiguous: the namespace or the branch names more than one.
    """
    space = pick_namespace(ns, facts.namespaces(), facts.thread) if ns else ""
    if branch is not None:
        tip = find_id(branch, facts, space)
        return Scope(facts, space, tip, on_branch=True, anywhere=not ns, now=now)
    head = facts.head(space)
    if head is None:
        raise _no_checkpoints(facts, space)
    return Scope(facts, space, head, on_branch=False, anywhere=not ns, now=now)


def find_id(text: str, facts: Facts, ns: str) -> str:
    """Returns the full id that `text` names inside one namespace.

    Raises:
        NotFound: none.
        Ambiguous: several end alike.
    """
    if facts.has(ns, text):
        return text
    matches = match_id(text, facts.ids(ns))
    if len(matches) > 1:
        raise ambiguous_ids(text, [(ns, id) for id in matches], facts)
    if not matches:
        raise no_id(text, ns, facts)
    return matches[0]


def _no_checkpoints(facts: Facts, ns: str) -> NotFound:
    others = facts.namespaces()
    if not others:
        return NotFound(f"there is no thread {facts.thread} with checkpoints", hint="agentctl threads")
    where = f"namespace {ns}" if ns else "the root namespace"
    return NotFound(
        f"thread {facts.thread} has no checkpoints in {where}",
        hint=f"give --ns, one of: {', '.join(other or 'root' for other in others)}",
        candidates=[{"ns": other} for other in others],
    )
