"""A thread that is written down as test data, not stored: what revisions are resolved against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agentctl.records.messages import CallSite, Message
from agentctl.records.rows import CheckpointRow, Lineage
from agentctl.revisions.grammar import Range, parse_expression, parse_revision
from agentctl.revisions.resolve import RangeResolution, resolve, resolve_range
from agentctl.revisions.scope import Resolution

NOW = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
START = datetime(2026, 11, 30, 11, 0, tzinfo=UTC)
_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)


def uuid6(at: datetime, node: int) -> str:
    """Makes an id as LangGraph does, for a time and a node number."""
    ticks = (at - _EPOCH) // timedelta(microseconds=1) * 10
    text = f"{ticks >> 28:08x}{ticks >> 12 & 0xFFFF:04x}6{ticks & 0xFFF:03x}8000{node:012x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@dataclass
class Written:
    """A thread as test data. `asked` counts which facts were read."""

    thread: str = "support-17"
    rows: dict[str, list[CheckpointRow]] = field(default_factory=dict)
    next_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    wrote_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asking: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    sites: list[CallSite] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        node: int,
        parent: str | None,
        *,
        step: int | None = None,
        source: str = "loop",
        ns: str = "",
        id: str | None = None,
        next: Sequence[str] = (),
        wrote: Sequence[str] = (),
    ) -> str:
        id = id or uuid6(START + timedelta(minutes=node), node)
        metadata: dict[str, object] = {"source": source} if step is None else {"step": step, "source": source}
        self.rows.setdefault(ns, []).append(CheckpointRow(self.thread, ns, id, parent, metadata))
        self.next_of[id], self.wrote_of[id] = tuple(next), tuple(wrote)
        return id

    @property
    def place(self) -> str:
        return f"prod::{self.thread}"

    def namespaces(self) -> Sequence[str]:
        return sorted(self.rows)

    def has(self, ns: str, checkpoint_id: str) -> bool:
        return any(row.id == checkpoint_id for row in self.rows.get(ns, []))

    def ids(self, ns: str) -> Sequence[str]:
        self.asked["ids"] += 1
        return sorted((row.id for row in self.rows.get(ns, [])), reverse=True)

    def head(self, ns: str) -> str | None:
        return max((row.id for row in self.rows.get(ns, [])), default=None)

    def lineage(self, ns: str, tip: str) -> Lineage:
        by_id = {row.id: row for row in self.rows[ns]}
        chain = [by_id[tip]]
        while (parent := chain[-1].parent) in by_id:
            chain.append(by_id[str(parent)])
        rows = tuple(reversed(chain))
        return Lineage(rows, rows[0].parent, {row.id: i for i, row in enumerate(rows)})

    def details(self, ns: str, ids: Collection[str]) -> Mapping[str, CheckpointRow]:
        self.asked["details"] += 1
        return {row.id: row for row in self.rows[ns] if row.id in ids}

    def next(self, ns: str, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        self.asked["next"] += len(ids)
        return {id: self.next_of[id] for id in ids}

    def wrote(self, ns: str, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        self.asked["wrote"] += len(ids)
        return {id: self.wrote_of[id] for id in ids}

    def interrupts(self, ns: str, ids: Collection[str]) -> Collection[str]:
        self.asked["interrupts"] += len(ids)
        return self.asking & set(ids)

    def errors(self, ns: str, ids: Collection[str]) -> Collection[str]:
        self.asked["errors"] += len(ids)
        return self.failing & set(ids)

    def calls(self, ns: str, tip: str, name: str) -> Sequence[CallSite]:
        self.asked["calls"] += 1
        return [site for site in self.sites if name in (site.name, site.id)]

    def called(self, ns: str, tip: str) -> Sequence[str]:
        return list(dict.fromkeys(site.name for site in self.sites))

    def to(self, text: str, *, ns: str | None = None, branch: str | None = None) -> Resolution:
        return resolve(parse_revision(text), self, now=NOW, ns=ns, branch=branch)

    def between(self, text: str) -> RangeResolution:
        parsed = parse_expression(text)
        assert isinstance(parsed, Range)
        return resolve_range(parsed, self, now=NOW)


class Support(Written):
    """Input, then two visits of `tools`, an edit at the second one, and the branch that it left."""

    def __init__(self) -> None:
        super().__init__()
        self.input = self.add(1, None, step=-1, source="input", next=["__start__"])
        self.start = self.add(2, self.input, step=0, next=["agent"], wrote=["__start__"])
        self.asked_1 = self.add(3, self.start, step=1, next=["tools"], wrote=["agent"])
        self.told_1 = self.add(4, self.asked_1, step=2, next=["agent"], wrote=["tools"])
        self.asked_2 = self.add(5, self.told_1, step=3, next=["tools", "tools"], wrote=["agent"])
        self.told_2 = self.add(6, self.asked_2, step=4, next=["agent"], wrote=["tools", "tools"])
        self.reply = self.add(7, self.told_2, step=5, wrote=["agent"])
        self.edit = self.add(8, self.asked_2, step=4, source="update", next=["agent"])
        self.end = self.add(9, self.edit, step=5, wrote=["agent"])


def site(
    name: str, id: str, pending_at: str, *, ns: str = "", occurrence: int = 1, answer: str | None = "delivered"
) -> CallSite:
    message = Message("tool", None, answer, answer, tool_call_id=id) if answer is not None else None
    return CallSite(name, id, {"order_id": "A1"}, occurrence, ns, pending_at, None, message, 0, None)
