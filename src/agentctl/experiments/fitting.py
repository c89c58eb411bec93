"""Whether a graph fits the rows that a run begins with, asked before anything is copied or run.

LangGraph says nothing of a graph that does not: a node that is gone is not run, a value whose channel is gone is not
given to the nodes, and one whose type is gone is given to them as plain data and stored so. Such a run would be an
answer about something else.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from inspect import isclass
from typing import TYPE_CHECKING, Any, Final

from agentctl.codec.values import decode
from agentctl.errors import DecodeError, Refused, UsageError
from agentctl.experiments.experiment import Experiment
from agentctl.experiments.forking.point import Point
from agentctl.experiments.runs.graph_parts import channels_of, inner_graph, is_functional
from agentctl.experiments.runs.revival import Loss, Revival, serializer_of
from agentctl.experiments.runs.running import node_path
from agentctl.experiments.runs.savers import serializer
from agentctl.experiments.waits import check_waits
from agentctl.records.copies import command
from agentctl.records.rows import Stored, StoredCheckpoint
from agentctl.records.threads import UNKNOWN
from agentctl.stores.base import CopyPlan, Reader
from agentctl.stores.copying.converted_rows import picked_checkpoints, picked_writes
from agentctl.stores.reading.due import read_bookkeeping
from agentctl.stores.reading.layout import START, is_state_channel
from agentctl.stores.reading.state import delta_channels, shown_channels

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

    Graph = Pregel[Any, Any, Any, Any]

_WRITTEN_BY: Final = ("graph_id", "assistant_id", "workflow")
"""Metadata that names the graph of a row: those of an Agent Server, and that of an application with several graphs."""

_N_NAMED: Final = 8

_NAME_BYTES: Final = 1024
"""How much of the values is read where names of channels are asked for: enough for markers that hold a node's name."""


@dataclass(frozen=True, slots=True)
class _Gone:
    """A channel with a stored value that the graph of its namespace has no more, and one of a similar name."""

    ns: str
    channel: str
    alike: str | None

    @property
    def told(self) -> str:
        return f"{self.channel} in namespace {self.ns}" if self.ns else self.channel


def node_is_gone(node: str, nodes: Collection[str]) -> str:
    """Says that a node is due which a graph does not have, as one clause."""
    shown = sorted(nodes)
    more = f" and {len(shown) - _N_NAMED} more" if len(shown) > _N_NAMED else ""
    return f"{node} is due, and the graph has {', '.join(shown[:_N_NAMED])}{more}"


def routes_are_gone(node: str, channels: Iterable[str]) -> str:
    """Says that a node is due by routing channels none of which a graph has, as one clause."""
    return f"{node} is due by {', '.join(channels)}, which the graph does not have"


def check_nodes(experiment: Experiment, point: Point, names: Iterable[str]) -> None:
    """Refuses to run nodes that the graph does not have, or that nothing in it leads to any more.

    Of a namespace whose graph is not declared, as of a subagent, nothing is known.

    Args:
        experiment: The experiment.
        point: Where the run begins.
        names: The nodes that are to run.

    Raises:
        Refused: There is one; the message names it.
    """
    graph = inner_graph(experiment.graph, node_path(point.target.ns))
    if graph is None:
        return
    nodes = frozenset(graph.nodes) - {START}
    due = [name for name in names if name not in (UNKNOWN, START)]
    for name in due:
        if name not in nodes:
            raise _refused_node(point, node_is_gone(name, nodes), next(iter(get_close_matches(name, nodes, n=1)), None))
    target = point.target
    book = read_bookkeeping(experiment.source, target.thread, target.ns, [target.id]).get(target.id)
    for name, channels in (book.routes if book is not None else {}).items():
        if name in due and not graph.channels.keys() & set(channels):
            raise _refused_node(point, routes_are_gone(name, channels), name)


def check_channels(
    experiment: Experiment, point: Point, plan: CopyPlan | None, *, reader: Reader | None = None
) -> list[str]:
    """Refuses state that the graph has no channel for, unless `--drop` says that runs go on without it.

    It is that of the point and of the newest row in each other namespace that runs begin with. Of a namespace whose
    graph is not declared nothing is known, and the functional API has no state.

    Args:
        experiment: The experiment.
        point: Where the run begins; its state is that of the source, whatever is changed in it.
        plan: The rows that it begins with, or None for no others.
        reader: Where they are; None for the source.

    Returns:
        What to tell of the values that are dropped.

    Raises:
        Refused: There is such a value; the message names its channel, and one of a similar name.
        UsageError: `--drop` names a channel that the graph has, or of which there is no value.
    """
    target = point.target
    newest: dict[str, str] = {}
    for pick in plan.picks if plan is not None else ():
        newest[pick.ns] = max(pick.id, newest.get(pick.ns, ""))
    newest.pop(target.ns, None)
    gone = list(_gone(experiment, experiment.source, target.thread, target.ns, target.id))
    if plan is not None:
        for ns, id in newest.items():
            gone += _gone(experiment, reader or experiment.source, plan.thread, ns, id)
    if any(one.channel not in experiment.drop for one in gone):
        raise _refused_channels(point, [one for one in gone if one.channel not in experiment.drop])
    dropped = {one.channel for one in gone}
    for channel in experiment.drop:
        if channel not in dropped:
            _require_gone(experiment, point, channel)
    told = ", ".join(dict.fromkeys(one.told for one in gone))
    return [f"dropped, as the graph has no channel for them: {told}"] if told else []


def check_values(
    experiment: Experiment,
    point: Point,
    plan: CopyPlan,
    *,
    reader: Reader | None = None,
    replaced: Collection[str] = (),
) -> list[str]:
    """Refuses rows whose values a run would not be given as they were; returns what else to know about them.

    Args:
        experiment: The experiment.
        point: Where the run begins.
        plan: The rows that it begins with.
        reader: Where they are; None for the source.
        replaced: Channels of the point's namespace that get another value before anything runs.

    Raises:
        Refused: There is such a value; the message names its channel, its type and why.
    """
    reader, serde, target = reader or experiment.source, serializer(), point.target
    revivals: dict[str, Revival] = {}
    notes: list[str] = []

    def check(ns: str, id: str, what: str, stored: Stored, graph: Graph) -> None:
        if ns not in revivals:
            revivals[ns] = Revival(serializer_of(graph, serde))
        losses = list(revivals[ns].losses(stored))
        if losses:
            where = f" in namespace {ns}" if ns and ns != target.ns else ""
            raise _refused_value(f"{what} of checkpoint {id}{where}", losses)

    for checkpoint in picked_checkpoints(reader, plan.thread, plan.picks):
        ns, id = checkpoint.row.ns, checkpoint.row.id
        graph = inner_graph(experiment.graph, node_path(ns))
        _require_whole(checkpoint)
        _require_text_versions(experiment, checkpoint)
        if graph is not None:
            check_waits(reader.info, checkpoint, graph)
        for channel, stored in checkpoint.values.items():
            if (graph is None or channel in graph.channels) and not (ns == target.ns and channel in replaced):
                check(ns, id, f"channel {channel}", stored, graph or experiment.graph)
        if graph is not None and (ns, id) == (target.ns, target.id):
            notes += _bare_enums(checkpoint, graph)
    for write in picked_writes(reader, plan.thread, plan.picks):
        is_replaced = (write.ns, write.checkpoint_id, write.task_id, write.idx) in plan.edits
        if write.value is not None and not is_replaced:
            graph = inner_graph(experiment.graph, node_path(write.ns)) or experiment.graph
            check(write.ns, write.checkpoint_id, f"a pending write to {write.channel}", write.value, graph)
    return notes


def check_head(reader: Reader, thread: str, id: str, graph: Graph) -> None:
    """Refuses to go on from the head of a thread whose values the graph would not be given as they were.

    Raises:
        Refused: There is such a value; the message names its channel, its type and why.
    """
    revival = Revival(serializer_of(graph, serializer()))
    values = [
        (f"channel {channel}", stored)
        for checkpoint in reader.stored(thread, "", [id], channels=graph.channels)
        for channel, stored in checkpoint.values.items()
    ]
    writes = [(f"a pending write to {write.channel}", write.value) for write in reader.writes(thread, "", [id])]
    for what, stored in (*values, *writes):
        if stored is not None and (losses := list(revival.losses(stored))):
            raise _refused_value(f"{what} of checkpoint {id}", losses)


def _gone(experiment: Experiment, reader: Reader, thread: str, ns: str, id: str) -> Iterator[_Gone]:
    """Yields the channels of a checkpoint's state that the graph of its namespace does not have."""
    graph = inner_graph(experiment.graph, node_path(ns))
    if graph is None or is_functional(graph):
        return
    for stored in reader.stored(thread, ns, [id], value_bytes=_NAME_BYTES):
        delta = sorted(delta_channels(stored.row) & stored.channel_versions.keys())
        for channel in dict.fromkeys((*shown_channels(stored), *delta)):
            if is_state_channel(channel) and channel not in graph.channels:
                yield _Gone(ns, channel, next(iter(get_close_matches(channel, channels_of(graph), n=1)), None))


def _require_gone(experiment: Experiment, point: Point, channel: str) -> None:
    """Refuses to drop a channel that the graph has, or of which nothing is held.

    Namespaces that these very runs do not begin with count too: a diagnosis makes runs of two kinds by one `--drop`.

    Raises:
        UsageError: It is such a channel.
    """
    source, target = experiment.source, point.target
    held: set[str] = set()
    for ns in source.namespaces(target.thread):
        newest = target.id if ns == target.ns else next((row.id for row in source.rows(target.thread, ns)), None)
        if newest is not None:
            held.update(one.channel for one in _gone(experiment, source, target.thread, ns, newest))
    if channel in held:
        return
    graph = inner_graph(experiment.graph, node_path(target.ns))
    droppable = f"--drop takes one of: {', '.join(sorted(held))}" if held else "leave --drop out: nothing has to be"
    if graph is not None and channel in graph.channels:
        raise UsageError(f"--drop {channel}: the graph has that channel", hint=droppable)
    raise UsageError(f"--drop {channel}: checkpoint {target.id} holds no value of that channel", hint=droppable)


def _require_whole(checkpoint: StoredCheckpoint) -> None:
    """Refuses a row from which LangGraph would raise, whatever the graph."""
    row = checkpoint.row
    reason = checkpoint.damage
    if reason is None and checkpoint.has_versions and not checkpoint.versions_seen and row.source == "loop":
        reason = "its row has no versions_seen, so a run cannot tell which nodes have run"
    if reason is not None:
        raise Refused(f"nothing can run from checkpoint {row.id}: {reason}", hint=command("doctor", row.thread))


def _require_text_versions(experiment: Experiment, checkpoint: StoredCheckpoint) -> None:
    """Refuses to run on Postgres from versions that are numbers: its saver writes text alone.

    Source: `_dump_blobs` (langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py).
    """
    if experiment.debug.writer.info.kind != "postgres":
        return
    if any(not isinstance(version, str) for version in checkpoint.channel_versions.values()):
        raise Refused(
            f"channel versions of checkpoint {checkpoint.row.id} are numbers, as LangGraph.js writes them, and a run on"
            " Postgres would write text beside them",
            hint="run it on SQLite: --to FILE.sqlite",
        )


def _bare_enums(checkpoint: StoredCheckpoint, graph: Graph) -> Iterator[str]:
    """Yields the channels of a text or number enum whose value is stored as bare text or number.

    Postgres keeps text and numbers inside the checkpoint's row, also those of a StrEnum or an IntEnum: what it is given
    back is bare in every process, the application's own too.

    Source: `PostgresSaver.put` (langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/__init__.py).
    """
    for channel, stored in checkpoint.values.items():
        declared = getattr(graph.channels.get(channel), "ValueType", None)
        if isclass(declared) and issubclass(declared, Enum) and issubclass(declared, str | int):
            try:
                value = decode(stored)
            except DecodeError:
                continue
            if isinstance(value, str | int):
                yield f"{channel} is declared as {declared.__name__} and stored bare: nodes are given {value!r}"


def _refused_node(point: Point, clause: str, alike: str | None) -> Refused:
    target = point.target
    goto = command("fork", target.place.target, "--goto", alike or "NODE")
    return Refused(
        f"the graph does not fit checkpoint {target.id}:{_written_by(point)} {clause}, so LangGraph would run nothing"
        " of it",
        hint=f"the graph that wrote it: --graph PATH:ATTR; or go on from a node that there is: {goto}",
    )


def _refused_channels(point: Point, gone: list[_Gone]) -> Refused:
    told = (f"{one.told} (it has {one.alike})" if one.alike else one.told for one in gone)
    drop = shlex.join(word for one in dict.fromkeys(one.channel for one in gone) for word in ("--drop", one))
    return Refused(
        f"the graph does not fit checkpoint {point.target.id}:{_written_by(point)} it has no channel for stored values,"
        f" which its nodes would not see: {', '.join(told)}",
        hint=f"the graph that wrote it: --graph PATH:ATTR; or go on without these values: {drop}",
        candidates=[{"channel": one.channel, "ns": one.ns, "alike": one.alike} for one in gone]
        if len(gone) > 1
        else (),
    )


def _written_by(point: Point) -> str:
    metadata = point.row.metadata
    return next((f", written by {key} {metadata[key]}," for key in _WRITTEN_BY if key in metadata), "")


def _refused_value(what: str, losses: list[Loss]) -> Refused:
    first, *more = losses
    others = f" ({len(more)} more)" if more else ""
    return Refused(
        f"{what} holds {first.type_name}, and {first.reason}{others}",
        hint="run it where the application's own types are: in its environment, with the version of the graph that"
        " wrote the row (--graph PATH:ATTR)",
        candidates=[{"value": what, "type": loss.type_name, "reason": loss.reason} for loss in losses] if more else (),
    )
