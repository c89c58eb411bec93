"""Which checkpoints of the root graph are to be kept: the newest turns of the branches that stay."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from agentctl.records.prunes import LostTurn
from agentctl.records.rows import Lineage
from agentctl.revisions.heads import EDITS, edited_head
from agentctl.stores.base import Reader
from agentctl.upkeep.prune.request import PruneRequest
from agentctl.upkeep.prune.shape import ROOT, Shape
from agentctl.upkeep.prune.turns import BranchTurn, has_at_most, read_turns


@dataclass(slots=True)
class Keeping:
    """What is to be kept of the root graph.

    Attributes:
        ids: Checkpoints that are to be kept.
        turns: The turns of the branches that stay, older ones included, each of the rows that no branch before had.
        on_branches: Checkpoints of these branches, kept or not.
        notes: What to know of the choice.
    """

    ids: set[str] = field(default_factory=set)
    turns: list[BranchTurn] = field(default_factory=list)
    on_branches: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def lost(self, staying: Collection[str]) -> Iterator[LostTurn]:
        """Yields the turns that lose checkpoints, oldest first, given all that stay in the end."""
        for turn in self.turns:
            n_lost = sum(row.id not in staying for row in turn.rows)
            if n_lost:
                last = turn.rows[-1].id
                yield LostTurn(turn.number, turn.text, len(turn.rows), n_lost, last, last in staying)


def choose(reader: Reader, shape: Shape, request: PruneRequest) -> Keeping:
    """Returns what is to be kept of a thread: the last turns of its branches, and what the request names.

    The head's branch stays. Where the head descends from an edit, such as a debug fork, so does the branch that ended
    before the edit: it is what the user of the thread saw. What branches off within the turns that stay, stays.
    """
    keeping = Keeping()
    for tip in _tips(shape, keeping):
        _keep_branch(reader, shape, request, tip, keeping)
    for key in request.kept.get(shape.thread, ()):
        owner = shape.owner(key) if key in shape.rows else None
        keeping.ids.update({owner} if owner in shape.root.parents and owner is not None else ())
    return keeping


def _tips(shape: Shape, keeping: Keeping) -> Iterator[str]:
    tree = shape.root
    if tree.head is None:
        return
    yield tree.head
    edits = [id for id in tree.ids if shape.rows[ROOT, id].source in EDITS]
    edited = edited_head(tree.parents, tree.head, edits)
    if edited is None or edited.last_head is None or edited.last_head in set(tree.chain(tree.head)):
        return
    keeping.notes.append(
        f"the head descends from an edit ({edited.edit}); the branch to {edited.last_head}, which was there before,"
        " stays too"
    )
    yield edited.last_head


def _keep_branch(reader: Reader, shape: Shape, request: PruneRequest, tip: str, keeping: Keeping) -> None:
    tree = shape.root
    chain = list(tree.chain(tip))
    chain.reverse()
    rows = tuple(shape.rows[ROOT, id] for id in chain)
    if has_at_most(rows, request.keep_turns):
        keeping.ids |= _with_descendants(shape, chain)
        keeping.on_branches.update(chain)
        return
    lineage = Lineage(rows, tree.dangling(chain[0]), {id: place for place, id in enumerate(chain)})
    found = read_turns(reader, lineage)
    if found.note and found.note not in keeping.notes:
        keeping.notes.append(found.note)
    staying, older = found.turns[-request.keep_turns :], found.turns[: -request.keep_turns]
    keeping.ids |= _with_descendants(shape, [row.id for turn in staying for row in turn.rows])
    # Rows before the first turn belong to none: they go with the turns that are gone.
    if not older:
        keeping.ids |= _with_descendants(shape, chain)
    if request.keep_branchable:
        keeping.ids.update(turn.rows[-1].id for turn in older)
    keeping.turns += [turn for turn in found.turns if turn.rows[-1].id not in keeping.on_branches]
    keeping.on_branches.update(chain)


def _with_descendants(shape: Shape, ids: Collection[str]) -> set[str]:
    found = set(ids)
    todo = list(ids)
    while todo:
        for child in shape.root.children.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found
