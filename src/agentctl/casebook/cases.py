"""Cases: opening, finding, listing and closing them. A case is a folder of plain files.

cases/NAME/case.json                    what it is about, its state and history
cases/NAME/runs.jsonl                   one line a run
cases/NAME/calls.jsonl                  one line a tool call
cases/NAME/threads.jsonl                debug threads made for it
cases/NAME/recording.json               tool results of the source thread
cases/NAME/reports/001-replay.json ...  what each command answered
"""

from __future__ import annotations

import difflib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path

from agentctl.casebook.casefile import CASE_FILE, read_case, require_open, write_case
from agentctl.casebook.files import locked, read_lines
from agentctl.casebook.ledger import CALLS, REPORTS, RUNS, mark_deleted, read_threads
from agentctl.casebook.names import case_folder, is_case_name, name_for
from agentctl.config.debug import make_private_folder
from agentctl.config.places import hide_password
from agentctl.errors import NotFound, StoreError
from agentctl.records.cases import Case, CaseEvent, CaseSummary, CaseView, DebugThread
from agentctl.records.copies import Place

DeleteThread = Callable[[DebugThread], int | None]
"""Deletes a debug thread where it is; returns how many rows went, 0 where it was gone already, None where it stays."""


def open_case(root: Path, name: str, *, now: datetime, reason: str = "") -> Case:
    """Returns a case that can be added to: a new one, or the one of that name, reopened where it was closed.

    Args:
        root: The folder of all cases, created where it is missing.
        name: Folder name.
        now: The clock, UTC.
        reason: Why; kept in the case's history.

    Raises:
        UsageError: the name is no plain folder name.
        StoreError: the folder cannot be written.
    """
    folder = case_folder(root, name)
    if created := _create(root, name, now=now, reason=reason, source=None):
        return created
    with locked(folder):
        case = read_case(folder)
        if case.state == "open" and not reason:
            return case
        case = replace(case, state="open", events=(*case.events, CaseEvent("reopened", now, reason)))
        write_case(case)
    return case


def case_for(root: Path, name: str | None, source: Place, *, now: datetime, reason: str = "") -> Case:
    """Returns the case that a command adds its evidence to.

    Args:
        root: The folder of all cases.
        name: `--case`, created where there is none. None for the open case that was opened by itself for the same
            thread, or else a new one named after it.
        source: The thread that is investigated; a password in its store is not kept.
        now: The clock, UTC.
        reason: Why; kept when a case is created.

    Raises:
        Refused: the named case is closed.
        UsageError: the name is no plain folder name.
    """
    thread = replace(source, id=None, store=hide_password(source.store))
    if name is not None:
        folder = case_folder(root, name)
        return _create(root, name, now=now, reason=reason, source=None) or require_open(read_case(folder))
    _make_root(root)
    with locked(root):
        own = [case for case in _cases(root) if case.state == "open" and case.source == thread]
        return max(own, key=lambda case: case.opened_at) if own else _create_named_after(root, thread, now, reason)


def list_cases(root: Path) -> tuple[CaseSummary, ...]:
    """Returns every case with its counts, the one opened last first. Creates nothing.

    Raises:
        StoreError: a case.json is damaged.
    """
    cases = sorted(_cases(root), key=lambda case: case.opened_at, reverse=True)
    return tuple(_summary(case) for case in cases)


def show_case(root: Path, name: str) -> CaseView:
    """Returns a case with its ledger.

    Raises:
        NotFound: there is no case of that name.
    """
    case = find_case(root, name)
    runs, n_damaged_runs = read_lines(case.folder / RUNS)
    calls, n_damaged_calls = read_lines(case.folder / CALLS)
    threads = read_threads(case)
    return CaseView(
        _summary(case),
        threads,
        runs,
        calls,
        tuple(sorted((case.folder / REPORTS).glob("*.json"))),
        n_damaged_runs + n_damaged_calls,
    )


def close_case(root: Path, name: str, conclusion: str, delete_thread: DeleteThread, *, now: datetime) -> CaseView:
    """Closes a case: deletes its debug threads, keeps its evidence.

    A thread that cannot be deleted leaves the case open; closing again goes on where it stopped.

    Args:
        root: The folder of all cases.
        name: Folder name.
        conclusion: What was found out; may be empty.
        delete_thread: Called once for each debug thread that is still there.
        now: The clock, UTC.

    Raises:
        NotFound: there is no case of that name.
        Refused: it is closed already.
    """
    folder = find_case(root, name).folder
    with locked(folder):
        case = require_open(read_case(folder))
        for thread in read_threads(case):
            if thread.deleted_at is None and (n_rows := delete_thread(thread)) is not None:
                mark_deleted(case, thread, n_rows=n_rows, now=now)
        write_case(replace(case, state="closed", events=(*case.events, CaseEvent("closed", now, conclusion))))
    return show_case(root, name)


def find_case(root: Path, name: str) -> Case:
    """Returns a case, open or closed.

    Raises:
        NotFound: there is none of that name; near ones are in the hint.
        UsageError: the name is no plain folder name.
    """
    folder = case_folder(root, name)
    if (folder / CASE_FILE).is_file():
        return read_case(folder)
    names = [case.name for case in _cases(root)]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "agentctl case list" if names else "agentctl case open NAME"
    raise NotFound(f"there is no case {name}", hint=hint, candidates=[{"case": each} for each in names])


def _create(root: Path, name: str, *, now: datetime, reason: str, source: Place | None) -> Case | None:
    """Makes a whole new case appear at once; None where something of that name is there."""
    folder = case_folder(root, name)
    if folder.exists():
        return None
    _make_root(root)
    with _keeping(root):
        draft = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
    case = Case(name, draft, "open", (CaseEvent("opened", now, reason),), source)
    try:
        write_case(case)
        make_private_folder(draft / REPORTS)
        draft.rename(folder)
    except (OSError, StoreError):
        shutil.rmtree(draft)
        if not folder.exists():
            raise
        return None
    return replace(case, folder=folder)


def _create_named_after(root: Path, thread: Place, now: datetime, reason: str) -> Case:
    base = name_for(thread.thread)
    names = (base if n == 1 else f"{base}-{n}" for n in count(1))
    made = (_create(root, name, now=now, reason=reason, source=thread) for name in names)
    return next(case for case in made if case is not None)


def _make_root(root: Path) -> None:
    with _keeping(root):
        make_private_folder(root)


@contextmanager
def _keeping(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        hint = "--debug-store moves the cases too"
        raise StoreError(f"cases cannot be kept in {root}: {exc.strerror}", hint=hint) from exc


def _cases(root: Path) -> list[Case]:
    if not root.is_dir():
        return []
    folders = (folder for folder in root.iterdir() if is_case_name(folder.name) and not folder.is_symlink())
    return [read_case(folder) for folder in folders if (folder / CASE_FILE).is_file()]


def _summary(case: Case) -> CaseSummary:
    runs, _ = read_lines(case.folder / RUNS)
    calls, _ = read_lines(case.folder / CALLS)
    n_escaped = sum(call.get("served_by") == "escaped" for call in calls)
    return CaseSummary(case, len(runs), len(calls), n_escaped, len(read_threads(case)))
