"""One namespace of an Agent Server's thread, and what is made from its states: versions, routes, what is lacking."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from agentctl.codec.revive import is_plain
from agentctl.codec.values import pack
from agentctl.errors import Refused
from agentctl.records.rows import CheckpointRow, Stored, WriteRow
from agentctl.stores.copying import lacks
from agentctl.stores.copying.stated_values import send, tree_of
from agentctl.stores.reading.layout import BRANCH, INPUT, NO_WRITES, START, TASKS, parse_task_path
from agentctl.stores.stated import StatedTask, StatesTasks


@dataclass(frozen=True, slots=True)
class _Ran:
    """What had run on the way to a checkpoint.

    Attributes:
        seen: By node the versions of its triggers when it ran last.
        spent: The versions of those triggers since: a trigger is emptied by the step that it makes.
    """

    seen: Mapping[str, Mapping[str, str]]
    spent: Mapping[str, str]

    def then(self, tasks: Sequence[StatedTask], place: int, next_place: int) -> _Ran:
        """Returns the same after a step from the checkpoint at one place to that at another."""
        seen = {task.name: _triggers(task, _version(place)) for task in tasks}
        spent = {name: _version(next_place) for triggers in seen.values() for name in triggers}
        return _Ran({**self.seen, **seen}, {**self.spent, **spent})


@dataclass
class Space:
    """One namespace: its states without values, and what is made from them."""

    source: StatesTasks
    thread: str
    ns: str

    @cached_property
    def rows(self) -> Sequence[CheckpointRow]:
        """Its checkpoints, oldest first."""
        return sorted(self.source.rows(self.thread, self.ns), key=lambda row: row.id)

    @cached_property
    def _by_id(self) -> Mapping[str, CheckpointRow]:
        return {row.id: row for row in self.rows}

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Each checkpoint's place, from 1."""
        return {row.id: place for place, row in enumerate(self.rows, 1)}

    @cached_property
    def tasks(self) -> Mapping[str, tuple[StatedTask, ...]]:
        """The tasks of each checkpoint.

        Raises:
            Refused: The thread is of the functional API.
        """
        stated = self.source.stated(self.thread, self.ns, [row.id for row in self.rows])
        for row in self.rows:
            for task in stated.get(row.id, ()):
                kind = parse_task_path(task.path).kind
                if kind == "call" or (row.source == "input" and task.name != START and kind == "pull"):
                    raise Refused(
                        f"thread {self.thread} is of the functional API ({task.name}): an Agent Server does not state"
                        " what its @task calls returned",
                        hint="read the database that the server checkpoints into: --store postgresql://USER@HOST/DATABASE",
                    )
        return stated

    @property
    def versions(self) -> Mapping[str, Mapping[str, str]]:
        """Versions of each checkpoint's state channels: the place of the checkpoint at which a value came to be."""
        return self._values[0]

    @property
    def untyped(self) -> frozenset[str]:
        """Channels whose values have types that JSON does not tell."""
        return self._values[1]

    @cached_property
    def _values(self) -> tuple[Mapping[str, Mapping[str, str]], frozenset[str]]:
        """Versions and untyped channels, from one reading of all values."""
        untyped: set[str] = set()
        known: dict[str, dict[str, tuple[bytes, str]]] = {}
        for stored in self.source.stored(self.thread, self.ns, [row.id for row in self.rows]):
            before = known.get(stored.row.parent or "", {})
            now: dict[str, tuple[bytes, str]] = {}
            for name, value in stored.values.items():
                digest = sha256(value.data).digest()
                same = name in before and before[name][0] == digest
                now[name] = before[name] if same else (digest, _version(self.ids[stored.row.id]))
                if not same and name not in untyped and not is_plain(json.loads(value.data)):
                    untyped.add(name)
            known[stored.row.id] = now
        versions = {id: {name: version for name, (_, version) in now.items()} for id, now in known.items()}
        return versions, frozenset(untyped)

    @cached_property
    def _followers(self) -> Mapping[str, str]:
        """The checkpoint that each one led to first: by its step, or by an update written as a task of it."""
        steps = {row.id: row.step for row in self.rows}
        found: dict[str, str] = {}
        for source in ("loop", "update"):
            for row in self.rows:
                if row.parent and row.source == source and _is_next(row, steps.get(row.parent)):
                    found.setdefault(row.parent, row.id)
        return found

    @cached_property
    def _n_outputs(self) -> Mapping[tuple[str, str], int]:
        """One more than the last position of what each task wrote, by checkpoint and task."""
        found: dict[tuple[str, str], int] = {}
        for write in self.source.writes(self.thread, self.ns, value_bytes=0):
            key = write.checkpoint_id, write.task_id
            found[key] = max(found.get(key, 0), write.idx + 1)
        return found

    def due(self, id: str) -> Mapping[str, Stored]:
        """Returns the routing channels of a checkpoint: what makes its tasks run."""
        found: dict[str, Stored] = {}
        sends: list[object] = []
        for task in self.tasks.get(id, ()):
            kind = parse_task_path(task.path).kind
            if kind == "send":
                sends.append(send(task.name))
            elif kind == "pull" and task.name == START:
                found[START] = self._input(id, task)
            elif kind == "pull":
                found[BRANCH + task.name] = pack(None)
        if sends:
            found[TASKS] = pack(sends)
        return found

    @cached_property
    def _ran(self) -> Mapping[str, _Ran]:
        """What had run on the way to each checkpoint."""
        found: dict[str, _Ran] = {}
        steps = {row.id: row.step for row in self.rows}
        for row in self.rows:
            ran = found.get(row.parent or "", _Ran({INPUT: {}}, {}))
            if row.parent and row.source == "loop" and _is_next(row, steps.get(row.parent)):
                ran = ran.then(self.tasks.get(row.parent, ()), self.ids[row.parent], self.ids[row.id])
            found[row.id] = ran
        return found

    def versions_seen(self, id: str) -> Mapping[str, Mapping[str, str]]:
        """Returns what the nodes that ran on the way to a checkpoint had seen, by node."""
        return self._ran[id].seen

    def channel_versions(self, id: str) -> Mapping[str, str]:
        """Returns the versions of a checkpoint's channels; no node has seen those of what is due."""
        return {**self.versions[id], **self._ran[id].spent, **dict.fromkeys(self.due(id), _version(self.ids[id]))}

    def routes(self, id: str, value_bytes: int | None) -> Iterator[WriteRow]:
        """Yields where the step that ran from a checkpoint went on to, as writes of the first task that finished."""
        follower = self._followers.get(id)
        task = next((task for task in self.tasks.get(id, ()) if task.finished), None)
        if follower is None or task is None:
            return
        first = self._n_outputs.get((id, task.id), 0)
        targets: list[tuple[str, object]] = []
        for due in self.tasks.get(follower, ()):
            kind = parse_task_path(due.path).kind
            if kind == "send":
                targets.append((TASKS, send(due.name)))
            elif kind == "pull" and due.name != START:
                targets.append((BRANCH + due.name, None))
        for idx, (channel, target) in enumerate(targets, first):
            value = pack(target)
            is_read = value_bytes is None or 0 < len(value.data) <= value_bytes
            yield WriteRow(self.ns, id, task.id, task.path, idx, channel, value if is_read else None, len(value.data))

    def marked(self, row: CheckpointRow) -> CheckpointRow:
        """Returns a checkpoint with what it lacks, and why, in its metadata."""
        to_replay, to_resume = self._lacks(row)
        lacking = {lacks.TO_REPLAY: ", ".join(to_replay), lacks.TO_RESUME: ", ".join(to_resume)}
        lacking[lacks.MADE] = lacks.STATES
        return row._replace(metadata={**row.metadata, **{key: text for key, text in lacking.items() if text}})

    def _lacks(self, row: CheckpointRow) -> tuple[list[str], list[str]]:
        tasks = self.tasks.get(row.id, ())
        if not tasks:
            lack = ["the tasks of its step"] if self._is_parent_of_step(row) else []
            return lack, lack
        to_replay: list[str] = []
        to_resume: list[str] = []
        if sent := [task for task in tasks if parse_task_path(task.path).kind == "send"]:
            to_replay.append("what was sent to " + _names(sent))
            if due := [task for task in sent if not task.finished]:
                to_resume.append("what was sent to " + _names(due))
        if any(task.name == START and not task.finished for task in tasks):
            to_replay.append("the input")
            to_resume.append("the input")
        finished = [task for task in tasks if task.finished]
        if finished and row.id not in self._followers:
            to_resume.append(f"where {_names(finished)} went on to")
        return to_replay, to_resume

    def _is_parent_of_step(self, row: CheckpointRow) -> bool:
        follower = self._followers.get(row.id)
        return follower is not None and self._by_id[follower].source == "loop"

    def _input(self, id: str, task: StatedTask) -> Stored:
        """Returns the value of `__start__`: the updates that the input became."""
        writes = [write for write in self.source.writes(self.thread, self.ns, [id]) if write.task_id == task.id]
        given = {write.channel: tree_of(write.value) for write in writes if write.channel != NO_WRITES}
        return pack(given)


def _is_next(row: CheckpointRow, parent_step: int | None) -> bool:
    return parent_step is not None and row.step == parent_step + 1


def _triggers(task: StatedTask, version: str) -> Mapping[str, str]:
    """Returns what a task that ran had seen; one that a Send made has seen nothing."""
    if parse_task_path(task.path).kind != "pull":
        return {}
    return {START if task.name == START else BRANCH + task.name: version}


def _version(place: int) -> str:
    """Returns a version as the savers write it, so that the next one they make is greater.

    Source: `get_next_version` (langgraph-checkpoint-sqlite 3.1.2, sqlite/__init__.py).
    """
    return f"{place:032}.{0:016}"


def _names(tasks: Sequence[StatedTask]) -> str:
    return ", ".join(dict.fromkeys(task.name for task in tasks))
