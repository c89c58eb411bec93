"""Examining threads: every rule on everything that was read, one thread after another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from agentctl.errors import AgentctlError, StrangeRow
from agentctl.records.copies import COPY_MARK
from agentctl.records.faults import Examined, Fault, Severity, worst_first
from agentctl.stores.audit import Auditable, StoreAudit
from agentctl.stores.base import Reader
from agentctl.stores.moments import at_one_moment
from agentctl.stores.reading.layout import NS_SEPARATOR
from agentctl.stores.reading.lineage import Tree, no_checkpoints, read_tree
from agentctl.stores.stated import StatesTasks, thread_names
from agentctl.upkeep.doctor import calls, rows, steps, tables, tree, values
from agentctl.upkeep.doctor.codes import CODES
from agentctl.upkeep.doctor.heads import read_head
from agentctl.upkeep.doctor.passing import Passage
from agentctl.upkeep.doctor.records import Finding, Head, Passed, Site, ThreadRows, Whole

HeadRule = Callable[[Head], Iterable[Finding]]
Progress = Callable[[int, int], None]

_VISIT_RULES: Final = (*tree.VISIT_RULES, *rows.VISIT_RULES, *values.VISIT_RULES, *steps.VISIT_RULES)
_HEAD_RULES: Final[tuple[HeadRule, ...]] = (*steps.HEAD_RULES, *calls.RULES)
_MAX_OF_A_CODE: Final = 20
"""So many different findings of a code are told of one namespace; the rest is counted with the last."""
_MAX_ORPHANS: Final = 1000
_ROWS_OF_A_RUN: Final = 200
"""How many of a thread's newest rows are looked at for the mark of a copy, which runs write theirs after."""


@dataclass(frozen=True, slots=True)
class Examination:
    """How threads are examined.

    Attributes:
        reader: The store.
        now: The time that questions have waited until.
        older_than: Questions that have waited longer are faults; None for none.
        head_rules: More rules on heads, such as those of a graph.
        store: What names the store on the command line: `PROFILE::` or ''.
    """

    reader: Reader
    now: datetime
    older_than: timedelta | None = None
    head_rules: tuple[HeadRule, ...] = ()
    store: str = ""

    def thread(self, thread: str) -> Examined:
        """Returns what is wrong with one thread.

        Raises:
            NotFound: the store holds no row of it.
        """
        if not self.reader.namespaces(thread) and not self._is_headless(thread):
            raise no_checkpoints(self.reader, thread, "")
        return self._examined(thread)

    def _is_headless(self, thread: str) -> bool:
        return isinstance(self.reader, Auditable) and thread in self.reader.audit().headless()

    def all_threads(self, limit: int | None = None, progress: Progress | None = None) -> Iterator[Examined]:
        """Yields the store itself, then its threads, newest first, then those without a root graph.

        Args:
            limit: At most this many threads; None for all.
            progress: Told how many threads of how many are done, and that all are before one is given that has faults.
        """
        yield self.whole_store()
        names = self.names()
        total = len(names) if limit is None else min(limit, len(names))
        for done, thread in enumerate(islice(names, limit)):
            if progress is not None:
                progress(done, total)
            examined = self._examined(thread)
            if progress is not None and (examined.faults or done == total - 1):
                progress(total, total)
            yield examined

    def names(self) -> Sequence[str]:
        """Returns the threads of the store: those with a root graph newest first, then the others."""
        found = list(thread_names(self.reader))
        if isinstance(self.reader, Auditable):
            found += self.reader.audit().headless()
        return found

    def notes(self) -> tuple[str, ...]:
        """Returns what cannot be looked at in this kind of store."""
        if isinstance(self.reader, Auditable):
            return ()
        if isinstance(self.reader, StatesTasks):
            return ("a server gives states, not rows: versions, writes, joins, types and tables are not looked at",)
        return ("a saver cannot tell of its rows: orphaned rows, mixed encryption and the tables are not looked at",)

    def whole_store(self) -> Examined:
        """Returns what is wrong with the tables."""
        faults = _Faults(None, "")
        if isinstance(self.reader, Auditable):
            faults.take(tables.layout(self.reader.audit().layout(), Site("", "", store=self.store)))
        return Examined(None, 0, worst_first(faults.all()))

    def _examined(self, thread: str) -> Examined:
        """Looks at a thread as it stands at one moment, and at one that is being written twice.

        What a writer has half done at one moment, such as writes whose checkpoint is on its way, is no fault.
        """
        found = self._at_one_moment(thread)
        if not found.faults or not self._has_grown(found, thread):
            return found
        again = self._at_one_moment(thread)
        lasting = {(fault.code, fault.ns, fault.checkpoint) for fault in found.faults}
        faults = tuple(fault for fault in again.faults if (fault.code, fault.ns, fault.checkpoint) in lasting)
        return replace(again, faults=faults)

    def _at_one_moment(self, thread: str) -> Examined:
        faults = _Faults(thread, "")
        with (
            _told_of_what_stops(faults, Site(self.reader.info.target(thread), "", store=self.store)),
            at_one_moment(self.reader, [thread]) as still,
        ):
            return replace(self, reader=still)._passed_through(thread)
        return Examined(thread, 0, faults.all())

    def _has_grown(self, found: Examined, thread: str) -> bool:
        rows = (self.reader.rows(thread, ns, metadata=False) for ns in self.reader.namespaces(thread))
        return sum(map(len, rows)) != found.n_checkpoints

    def _passed_through(self, thread: str) -> Examined:
        namespaces = self.reader.namespaces(thread)
        root = read_tree(self.reader, thread) if "" in namespaces else Tree((), {}, {})
        site = Site(self.reader.info.target(thread), "", self._is_copy(thread, root), self.store)
        found: list[Fault] = []
        newest: dict[str, str] = {}
        first_parents: dict[str, tuple[str, str]] = {}
        of_root, around = Passed(), {"": root.parents.keys()}
        has_others = {outer for ns in namespaces for outer in _outer_namespaces(ns)}
        n_checkpoints = 0
        for ns in namespaces:
            here = root if ns == "" else read_tree(self.reader, thread, ns)
            n_checkpoints += len(here.ids)
            newest.update({ns: here.head} if here.head is not None else {})
            if here.ids and (missing := here.dangling(here.ids[-1])) is not None:
                first_parents[ns] = (missing, here.ids[-1])
            if ns in has_others:
                around[ns] = here.parents.keys()
            passed = of_root if ns == "" else Passed()
            found += self._namespace(thread, Whole(site.inside(ns), here, passed, root, of_root, around))
        found += self._rows(thread, site, newest, first_parents)
        return Examined(thread, n_checkpoints, worst_first(_without_consequences(found)), root.ids)

    def _namespace(self, thread: str, whole: Whole) -> Iterator[Fault]:
        site, here = whole.site, whole.tree
        faults = _Faults(thread, site.ns)
        with _told_of_what_stops(faults, site):
            for visit in Passage(self.reader, thread, site, here, whole.passed).visits():
                for visit_rule in _VISIT_RULES:
                    faults.take(visit_rule(visit))
            for whole_rule in tree.WHOLE_RULES:
                faults.take(whole_rule(whole))
        with _told_of_what_stops(faults, site):
            head = read_head(self.reader, thread, site, here, root_head=whole.root.head)
            if head is not None:
                for head_rule in (*_HEAD_RULES, *self.head_rules):
                    faults.take(head_rule(head))
                can_resume = not isinstance(self.reader, StatesTasks)
                asked = steps.pending_interrupts(head, self.now, can_resume=can_resume)
                faults.take(asked, severity=self._of_questions(head))
        yield from faults.all()

    def _of_questions(self, head: Head) -> Severity | None:
        at = head.step.row.at
        is_late = self.older_than is not None and at is not None and self.now - at > self.older_than
        return "fault" if is_late else None

    def _rows(
        self, thread: str, site: Site, newest: Mapping[str, str], first_parents: Mapping[str, tuple[str, str]]
    ) -> Iterator[Fault]:
        if not isinstance(self.reader, Auditable):
            return
        faults = _Faults(thread, "")
        with _told_of_what_stops(faults, site):
            stored = self._thread_rows(self.reader.audit(), thread, site, newest, first_parents)
            for rule in tables.THREAD_RULES:
                faults.take(rule(stored))
        yield from faults.all()

    @staticmethod
    def _thread_rows(
        audit: StoreAudit,
        thread: str,
        site: Site,
        newest: Mapping[str, str],
        first_parents: Mapping[str, tuple[str, str]],
    ) -> ThreadRows:
        orphans: dict[str, dict[str, int]] = {}
        blobs: dict[tuple[str, str], tuple[int, bool]] = {}
        for found in audit.orphans(thread, limit=_MAX_ORPHANS):
            if found.checkpoint is not None:
                orphans.setdefault(found.ns, {})[found.checkpoint] = found.n_rows
            else:
                blobs[found.ns, found.channel or ""] = found.n_rows, found.n_newer > 0
        return ThreadRows(site, orphans, blobs, newest, first_parents, tuple(audit.types(thread)))

    def _is_copy(self, thread: str, root: Tree) -> bool:
        """Says whether agentctl made the thread: the newest row that it copied says so."""
        rows = self.reader.rows(thread, "", ids=root.ids[:_ROWS_OF_A_RUN])
        return any(COPY_MARK in row.metadata for row in rows)


@contextmanager
def _told_of_what_stops(faults: _Faults, site: Site) -> Iterator[None]:
    """Makes a finding of rows that cannot be taken for rows: SQLite holds anything in any column.

    A store is looked at because something is wrong with it, so one thread must not stop what is said of the others.
    """
    try:
        yield
        return
    except StrangeRow as error:
        why = error.message
    except AgentctlError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        why = f"{type(error).__name__}: {error}"
    cause = f"rows hold what no saver writes, and reading them stopped: {why}"
    faults.take([Finding("rows_unreadable", None, cause, site.command("history", site.target))])


def _outer_namespaces(ns: str) -> Iterator[str]:
    """Yields the namespaces around one, but the root graph's; they sort before it."""
    parts = ns.split(NS_SEPARATOR)
    yield from (NS_SEPARATOR.join(parts[:n]) for n in range(1, len(parts)))


def _without_consequences(found: Sequence[Fault]) -> Sequence[Fault]:
    """Leaves out a missing parent where it is told already why it is missing."""
    told = {(fault.ns, fault.checkpoint) for fault in found if fault.code == "rows_recreated"}
    return [fault for fault in found if fault.code != "parent_missing" or (fault.ns, fault.checkpoint) not in told]


class _Faults:
    """Findings of one namespace: equal ones are one, with how often they were found.

    Args:
        thread: Their thread, None for the store.
        ns: Their namespace, where a finding names no other.
    """

    def __init__(self, thread: str | None, ns: str) -> None:
        self._thread = thread
        self._ns = ns
        self._found: dict[tuple[str, object], Fault] = {}
        self._n_found: Counter[tuple[str, object]] = Counter()
        self._of_code: dict[str, list[tuple[str, object]]] = defaultdict(list)

    def take(self, findings: Iterable[Finding], *, severity: Severity | None = None) -> None:
        """Adds findings, of another severity than their code's where one is given."""
        for finding in findings:
            key = (finding.code, finding.key)
            known = self._of_code[finding.code]
            if key not in self._found and len(known) == _MAX_OF_A_CODE:
                key = known[-1]
            elif key not in self._found:
                known.append(key)
                self._found[key] = self._fault(finding, severity)
            self._n_found[key] += 1

    def all(self) -> tuple[Fault, ...]:
        """Returns them in the order in which they were found."""
        return tuple(replace(fault, n_found=self._n_found[key]) for key, fault in self._found.items())

    def _fault(self, finding: Finding, severity: Severity | None) -> Fault:
        return Fault(
            code=finding.code,
            severity=severity or CODES[finding.code].severity,
            thread=self._thread,
            ns=self._ns if finding.ns is None else finding.ns,
            checkpoint=finding.checkpoint,
            cause=finding.cause,
            command=finding.command,
        )
