"""Forks of the functional API: what a @task returned is changed, and what was called after it is called again.

Source: langgraph 1.2.24, pregel/_algo.py (`prepare_push_task_functional`). A call's result is a `__return__` write on
the checkpoint that the entrypoint runs from; a call with a stored result is not made again. Its id is made of the
caller, the name and its number, not of its arguments, so results of later calls would be taken over although they may
come from the old value: they are left out of the copy, and so is the entrypoint's own result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentctl.codec.tree import Typed
from agentctl.codec.values import pack, plain, unpack
from agentctl.errors import Ambiguous, NotFound, UsageError
from agentctl.experiments.comparing.values_diff import changes
from agentctl.experiments.forking.forms import Answer, Forms, Patch
from agentctl.experiments.forking.paths import Path, path_text
from agentctl.experiments.forking.point import Point
from agentctl.experiments.forking.results import Rows
from agentctl.records.diffs import ABSENT
from agentctl.records.messages import CallSite
from agentctl.records.rows import Lineage, Stored, WriteRow
from agentctl.records.runs import Answered
from agentctl.stores.base import Reader, WriteKey
from agentctl.stores.reading.layout import RETURN, caller_path, parse_task_path
from agentctl.stores.reading.taskcalls import names_in, task_calls


def returned_rows(reader: Reader, point: Point, forms: Forms) -> tuple[Rows, tuple[Answered, ...]]:
    """Returns the changed writes of a point where forms name @task calls, and the records of what changed.

    Raises:
        NotFound: No call of that name or id returned there.
        Ambiguous: Several did.
        UsageError: A patch names a field that the result does not have.
    """
    sites = _sites(reader, point, forms.calls)
    stored = {write.task_id: write for write in point.writes if write.channel == RETURN}
    edits: dict[WriteKey, Stored] = {}
    answered: list[Answered] = []
    given: tuple[Answer | Patch, ...] = (*forms.answers, *forms.patches)
    for form in given:
        site = _named(point, sites, form.call)
        write = stored[site.id]
        key = (point.target.ns, write.checkpoint_id, write.task_id, write.idx)
        before = edits.get(key, write.value or Stored("null", b""))
        edits[key] = _with_value(before, form, site.name)
        fields = tuple(
            (one.path, None if one.left is ABSENT else one.left, None if one.right is ABSENT else one.right)
            for one in changes(plain(unpack(before)), plain(unpack(edits[key])))
        )
        answered.append(Answered(site.name, site.id, "substituted", fields, form.form))
    dropped = frozenset(_made_after(point.writes, {key[2] for key in edits}))
    kept = [site for site in sites if site.id not in dropped and site.id not in {key[2] for key in edits}]
    answered += [Answered(site.name, site.id, "kept") for site in kept]
    return Rows(edits, dropped=dropped), tuple(answered)


def _sites(reader: Reader, point: Point, names: Iterable[str]) -> Sequence[CallSite]:
    known = {*names, *names_in(reader.namespaces(point.target.thread))}
    return list(task_calls(reader, Lineage((point.row,), index={point.row.id: 0}), known))


def _named(point: Point, sites: Sequence[CallSite], text: str) -> CallSite:
    found = [site for site in sites if text in (site.name, site.id)]
    if len(found) == 1:
        return found[0]
    candidates = [
        {"name": site.name, "id": site.id, "result": site.answer.text if site.answer else None}
        for site in found or sites
    ]
    if found:
        raise Ambiguous(f"{text} names {len(found)} task calls", hint="give the id of one", candidates=candidates)
    raise NotFound(f"no task {text} returned at {point.target.id}", hint="name one by its id", candidates=candidates)


def _with_value(stored: Stored, form: Answer | Patch, name: str) -> Stored:
    """Returns a returned value with a form applied; a message keeps everything but its content."""
    tree = unpack(stored)
    if isinstance(form, Patch):
        return pack(_set_in(tree, form.path, 0, form.value, name))
    if isinstance(tree, Typed) and isinstance(tree.payload, dict) and "content" in tree.payload:
        return pack(Typed(tree.code, tree.module, tree.name, {**tree.payload, "content": form.content}, tree.rest))
    return pack(form.content)


def _set_in(tree: object, path: Path, depth: int, value: object, name: str) -> object:
    if depth == len(path):
        return value
    step = path[depth]
    if isinstance(tree, Typed):
        inner = _set_in(tree.payload, path, depth, value, name)
        return Typed(tree.code, tree.module, tree.name, inner, tree.rest)
    if isinstance(tree, Mapping) and step in tree:
        return {**tree, step: _set_in(tree[step], path, depth + 1, value, name)}
    if isinstance(tree, list) and isinstance(step, int) and -len(tree) <= step < len(tree):
        items = list(tree)
        items[step] = _set_in(items[step], path, depth + 1, value, name)
        return items
    raise UsageError(f"what {name} returned has no {path_text(path[: depth + 1])}", hint=f"whole: --answer {name}=JSON")


def _made_after(writes: Iterable[WriteRow], changed: set[str]) -> Iterator[str]:
    """Yields the tasks whose results may come from a changed one: later calls of its caller, and the callers."""
    rows = list(writes)
    for path in {write.task_path or "" for write in rows if write.task_id in changed}:
        above, index = caller_path(path), parse_task_path(path).index or 0
        while above is not None:
            for write in rows:
                other = write.task_path or ""
                later = caller_path(other) == above and (parse_task_path(other).index or 0) > index
                if write.task_id not in changed and (other == above or later or _below(other, above, index)):
                    yield write.task_id
            above, index = caller_path(above), parse_task_path(above).index or 0


def _below(path: str, above: str, index: int) -> bool:
    """Returns whether a call was made, at any depth, inside a later call of the same caller."""
    outer = caller_path(path)
    while outer is not None:
        if caller_path(outer) == above and (parse_task_path(outer).index or 0) > index:
            return True
        outer = caller_path(outer)
    return False
