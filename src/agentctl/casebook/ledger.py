"""A case's ledger: its runs, tool calls, debug threads, reports and recording, only ever added to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from agentctl.casebook.casefile import read_case, require_open
from agentctl.casebook.files import add_document, append_lines, locked, read_lines, read_plain, require_plain_folder
from agentctl.codec.jsontext import jsonable, timestamp
from agentctl.config.debug import make_private_folder
from agentctl.config.places import hide_password
from agentctl.records.cases import Case, DebugThread
from agentctl.records.copies import Place
from agentctl.records.runs import RunReport, ToolCallReport

RUNS: Final = "runs.jsonl"
CALLS: Final = "calls.jsonl"
THREADS: Final = "threads.jsonl"
REPORTS: Final = "reports"
RECORDING: Final = "recording"


def add_run(case: Case, run: RunReport, *, kind: str, source: Place, now: datetime) -> None:
    """Adds one run; see `add_runs`."""
    add_runs(case, [run], kind=kind, source=source, now=now)


def add_runs(case: Case, runs: Sequence[RunReport], *, kind: str, source: Place, now: datetime) -> None:
    """Adds runs and all of their tool calls; they are on the disk when this returns.

    Args:
        case: An open case.
        runs: The runs, over.
        kind: `replay`, `fork`, ...
        source: The checkpoint they ran from.
        now: The clock, UTC.

    Raises:
        Refused: the case was closed meanwhile.
    """
    lines = [{"at": timestamp(now), "kind": kind, "source": jsonable(source), **_record(run)} for run in runs]
    calls = [_call_line(call, run.thread, now) for run in runs for call in run.tool_calls]
    with locked(case.folder):
        require_open(read_case(case.folder))
        if calls:
            append_lines(case.folder / CALLS, calls)
        if lines:
            append_lines(case.folder / RUNS, lines)


def add_calls(case: Case, calls: Sequence[ToolCallReport], *, thread: str, now: datetime) -> None:
    """Adds tool calls that belong to no finished run, such as those of a run that was killed.

    Raises:
        Refused: the case was closed meanwhile.
    """
    with locked(case.folder):
        require_open(read_case(case.folder))
        if calls:
            append_lines(case.folder / CALLS, [_call_line(call, thread, now) for call in calls])


def add_threads(case: Case, threads: Sequence[Place], *, kind: str, now: datetime) -> None:
    """Notes debug threads, before they are made, so that closing the case finds them whatever happens.

    Args:
        case: An open case.
        threads: Where they will be; passwords in store URLs are not kept.
        kind: `replay`, `fork`, ...
        now: The clock, UTC.

    Raises:
        Refused: the case was closed meanwhile.
    """
    lines: list[dict[str, object]] = [
        {
            "at": timestamp(now),
            "kind": kind,
            "store": hide_password(place.store),
            "profile": place.profile,
            "thread": place.thread,
        }
        for place in threads
    ]
    with locked(case.folder):
        require_open(read_case(case.folder))
        if lines:
            append_lines(case.folder / THREADS, lines)


def read_threads(case: Case) -> tuple[DebugThread, ...]:
    """Returns the debug threads of a case, each once, in the order they were made."""
    lines, _ = read_lines(case.folder / THREADS)
    threads: dict[tuple[str, str, str], DebugThread] = {}
    for line in lines:
        store, profile, thread = (str(line.get(key)) for key in ("store", "profile", "thread"))
        key = (store, profile, thread)
        at, deleted_at = _time(line.get("at")), _time(line.get("deleted_at"))
        if deleted_at and key in threads:
            threads[key] = replace(threads[key], deleted_at=deleted_at)
        elif at:
            threads[key] = DebugThread(store, thread, profile, str(line.get("kind")), at)
    return tuple(threads.values())


def mark_deleted(case: Case, thread: DebugThread, *, n_rows: int, now: datetime) -> None:
    """Notes that a debug thread is gone. The caller holds the folder's lock."""
    line = {"store": thread.store, "profile": thread.profile, "thread": thread.thread, "n_rows": n_rows}
    append_lines(case.folder / THREADS, [{**line, "deleted_at": timestamp(now)}])


def add_report(case: Case, kind: str, document: Mapping[str, object]) -> Path:
    """Keeps what a command answered as `reports/NNN-KIND.json`; returns the file.

    Raises:
        Refused: the case was closed meanwhile.
    """
    folder = case.folder / REPORTS
    with locked(case.folder):
        require_open(read_case(case.folder))
        require_plain_folder(folder)
        make_private_folder(folder)
        taken = [int(path.name.partition("-")[0]) for path in folder.glob("[0-9]*-*.json")]
        path = folder / f"{max(taken, default=0) + 1:03d}-{kind}.json"
        add_document(path, document)
    return path


def keep_recording(case: Case, document: Mapping[str, object]) -> Path:
    """Keeps the tool results of a source thread; returns the file.

    The first is `recording.json`; a different one (of another thread, or of the same one grown) goes beside it, and one
    that is there already is not written again.

    Raises:
        Refused: the case was closed meanwhile.
    """
    wanted = jsonable(document)
    with locked(case.folder):
        require_open(read_case(case.folder))
        path = case.folder / f"{RECORDING}.json"
        n = 1
        while not add_document(path, document) and json.loads(read_plain(path)) != wanted:
            n += 1
            path = case.folder / f"{RECORDING}-{n}.json"
    return path


def _time(value: object) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else None


def _call_line(call: ToolCallReport, thread: str, now: datetime) -> dict[str, object]:
    return {"at": timestamp(now), "thread": thread, **_record(call)}


def _record(record: RunReport | ToolCallReport) -> dict[str, object]:
    value = jsonable(record)
    assert isinstance(value, dict)
    return value
