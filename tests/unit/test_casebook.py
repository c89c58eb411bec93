"""Cases and their ledgers, as files on the disk."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.casebook.cases import case_for, close_case, find_case, list_cases, open_case, show_case
from agentctl.casebook.files import add_document, append_lines, locked, read_lines
from agentctl.casebook.ledger import add_calls, add_report, add_run, add_runs, add_threads, keep_recording, read_threads
from agentctl.casebook.names import case_folder, is_case_name, name_for
from agentctl.errors import NotFound, Refused, StoreError, UsageError
from agentctl.records.cases import Case, DebugThread
from agentctl.records.copies import Place
from agentctl.records.runs import RunReport, ServedBy, ToolCallReport, Usage

NOW = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
SOURCE = Place("/data/prod.sqlite", "support-17", "9d03f8c9", "prod")


def call(name: str = "lookup_order", served_by: ServedBy = "recorded") -> ToolCallReport:
    return ToolCallReport(name, {"order_id": "A1"}, "c1", served_by, duration_ms=1.5, result="delivered")


def run(thread: str = "support-17.replay-1", *calls: ToolCallReport) -> RunReport:
    return RunReport(thread, "done", ("agent",), calls, "No refund is due.", True, None, Usage())


def deleting(gone: list[str]) -> Callable[[DebugThread], int]:
    def delete(thread: DebugThread) -> int:
        gone.append(thread.thread)
        return 3

    return delete


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state" / "cases"


def test_looking_for_cases_creates_nothing(root: Path) -> None:
    assert list_cases(root) == ()
    with pytest.raises(NotFound) as caught:
        find_case(root, "inc-31")
    assert caught.value.hint == "agentctl case open NAME"
    assert not root.exists()


def test_a_new_case_is_open_and_readable_by_its_owner_alone(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW, reason="customer was told no")
    assert (case.state, case.opened_at, case.closed_at, case.reason) == ("open", NOW, None, "customer was told no")
    add_run(case, run("t", call()), kind="replay", source=SOURCE, now=NOW)
    add_report(case, "replay", {"n": 5})
    folders = [root, case.folder, case.folder / "reports"]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    files = [path for path in case.folder.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert [path.name for path in root.iterdir()] == ["inc-31"]


def test_opening_an_open_case_again_is_the_same_case(root: Path) -> None:
    first = open_case(root, "inc-31", now=NOW, reason="why")
    assert open_case(root, "inc-31", now=LATER) == first
    assert find_case(root, "inc-31") == first


def test_runs_of_one_command_are_kept_in_order_with_their_calls(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    runs = [run(f"t.replay-{n}", call(f"tool-{n}")) for n in (1, 2)]
    add_runs(case, runs, kind="replay", source=SOURCE, now=NOW)
    add_runs(case, [], kind="replay", source=SOURCE, now=NOW)
    kept, calls = [
        [json.loads(text) for text in (case.folder / name).read_text().splitlines()]
        for name in ("runs.jsonl", "calls.jsonl")
    ]
    assert [line["thread"] for line in kept] == ["t.replay-1", "t.replay-2"]
    assert [(line["thread"], line["name"]) for line in calls] == [("t.replay-1", "tool-1"), ("t.replay-2", "tool-2")]


def test_a_run_and_its_calls_are_in_the_ledger_as_plain_lines(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    add_run(case, run("t.replay-1", call(), call("issue_refund", "stub")), kind="replay", source=SOURCE, now=NOW)
    (line,) = [json.loads(text) for text in (case.folder / "runs.jsonl").read_text().splitlines()]
    assert (line["kind"], line["thread"], line["status"], line["failed"]) == ("replay", "t.replay-1", "done", True)
    assert line["source"] == {"store": "/data/prod.sqlite", "thread": "support-17", "id": "9d03f8c9", "profile": "prod"}
    assert line["at"] == "2026-11-30T14:00:00.000000Z"
    first, second = [json.loads(text) for text in (case.folder / "calls.jsonl").read_text().splitlines()]
    assert (first["thread"], first["name"], first["args"]) == ("t.replay-1", "lookup_order", {"order_id": "A1"})
    assert (second["name"], second["served_by"], second["duration_ms"]) == ("issue_refund", "stub", 1.5)


def test_a_list_counts_runs_calls_threads_and_escaped_ones_newest_case_first(root: Path) -> None:
    old = open_case(root, "old", now=NOW)
    new = open_case(root, "new", now=LATER)
    add_run(old, run("t", call(), call(served_by="escaped")), kind="replay", source=SOURCE, now=NOW)
    add_calls(old, [call(served_by="escaped")], thread="t2", now=NOW)
    add_threads(old, [Place("d.sqlite", "t", profile="debug")], kind="replay", now=NOW)
    summaries = list_cases(root)
    assert [summary.case.name for summary in summaries] == ["new", "old"]
    counts = [(each.n_runs, each.n_calls, each.n_escaped, each.n_threads) for each in summaries]
    assert counts == [(0, 0, 0, 0), (1, 3, 2, 1)]
    assert summaries[0].case == new


def test_show_has_the_whole_ledger(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    add_run(case, run("t", call()), kind="replay", source=SOURCE, now=NOW)
    report = add_report(case, "replay", {"n": 5})
    view = show_case(root, "inc-31")
    assert [line["thread"] for line in view.runs] == ["t"]
    assert [line["name"] for line in view.calls] == ["lookup_order"]
    assert (view.reports, view.n_damaged) == ((report,), 0)


def test_reports_are_numbered_in_the_order_they_came(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    names = [add_report(case, kind, {"kind": kind}).name for kind in ("replay", "fork", "diagnose", "replay")]
    assert names == ["001-replay.json", "002-fork.json", "003-diagnose.json", "004-replay.json"]
    assert json.loads((case.folder / "reports" / "003-diagnose.json").read_bytes()) == {"kind": "diagnose"}


def test_a_recording_is_kept_once_and_another_one_beside_it(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    first = keep_recording(case, {"results": [1.0, float("nan")]})
    again = keep_recording(case, {"results": [1.0, float("nan")]})
    other = keep_recording(case, {"results": [2]})
    assert [path.name for path in (first, again, other)] == ["recording.json", "recording.json", "recording-2.json"]
    assert json.loads(first.read_bytes()) == {"results": [1.0, {"$float": "nan"}]}


def test_closing_deletes_the_debug_threads_and_keeps_the_evidence(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    places = [Place("d.sqlite", f"t.replay-{n}", profile="debug") for n in (1, 2)]
    add_threads(case, places, kind="replay", now=NOW)
    add_run(case, run("t.replay-1", call()), kind="replay", source=SOURCE, now=NOW)
    before = (case.folder / "runs.jsonl").read_bytes()
    gone: list[str] = []
    view = close_case(root, "inc-31", "stale order record", deleting(gone), now=LATER)
    assert gone == ["t.replay-1", "t.replay-2"]
    assert view.summary.case.state == "closed"
    assert (view.summary.case.closed_at, view.summary.case.conclusion) == (LATER, "stale order record")
    assert [thread.deleted_at for thread in view.threads] == [LATER, LATER]
    assert (case.folder / "runs.jsonl").read_bytes() == before
    assert view.summary.n_runs == 1


def test_a_closed_case_takes_nothing_more(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    close_case(root, "inc-31", "", deleting([]), now=LATER)
    before = {path.name: path.read_bytes() for path in case.folder.rglob("*") if path.is_file()}
    for refused in (
        lambda: add_run(case, run("t", call()), kind="replay", source=SOURCE, now=LATER),
        lambda: add_calls(case, [call()], thread="t", now=LATER),
        lambda: add_threads(case, [SOURCE], kind="replay", now=LATER),
        lambda: add_report(case, "replay", {}),
        lambda: keep_recording(case, {}),
        lambda: close_case(root, "inc-31", "again", deleting([]), now=LATER),
        lambda: case_for(root, "inc-31", SOURCE, now=LATER),
    ):
        with pytest.raises(Refused) as caught:
            refused()
        assert caught.value.hint == "reopen it: agentctl case open inc-31"
    assert {path.name: path.read_bytes() for path in case.folder.rglob("*") if path.is_file()} == before


def test_reopening_a_case_appends_to_what_is_there(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW, reason="first")
    add_run(case, run("t1", call()), kind="replay", source=SOURCE, now=NOW)
    close_case(root, "inc-31", "not sure", deleting([]), now=LATER)
    again = open_case(root, "inc-31", now=LATER, reason="it came back")
    add_run(again, run("t2", call()), kind="replay", source=SOURCE, now=LATER)
    assert (again.state, again.opened_at, again.closed_at, again.reason) == ("open", NOW, None, "it came back")
    assert again.conclusion == "not sure"
    assert [event.kind for event in again.events] == ["opened", "closed", "reopened"]
    assert [line["thread"] for line in show_case(root, "inc-31").runs] == ["t1", "t2"]


def test_a_thread_that_cannot_be_deleted_leaves_the_case_open_and_closing_goes_on_later(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    add_threads(case, [Place("d.sqlite", name, profile="debug") for name in ("a", "b")], kind="fork", now=NOW)

    def fails_on_b(thread: DebugThread) -> int:
        if thread.thread == "b":
            raise StoreError("the store is gone")
        return 1

    with pytest.raises(StoreError):
        close_case(root, "inc-31", "x", fails_on_b, now=LATER)
    assert find_case(root, "inc-31").state == "open"
    assert [thread.deleted_at is None for thread in read_threads(case)] == [False, True]
    gone: list[str] = []
    close_case(root, "inc-31", "x", deleting(gone), now=LATER)
    assert gone == ["b"]


def test_a_debug_thread_made_again_after_its_deletion_is_deleted_again(root: Path) -> None:
    place = Place("d.sqlite", "t.replay-1", profile="debug")
    case = open_case(root, "inc-31", now=NOW)
    add_threads(case, [place, place], kind="replay", now=NOW)
    gone: list[str] = []
    close_case(root, "inc-31", "", deleting(gone), now=NOW)
    add_threads(open_case(root, "inc-31", now=NOW), [place], kind="replay", now=NOW)
    close_case(root, "inc-31", "", deleting(gone), now=NOW)
    assert gone == ["t.replay-1", "t.replay-1"]


def test_no_password_of_a_store_is_kept(root: Path) -> None:
    source = Place("postgresql://r:hunter2@db/prod", "support-17")
    case = case_for(root, None, source, now=NOW)
    add_threads(case, [Place("postgresql://w:hunter2@db/debug", "t", profile="debug")], kind="replay", now=NOW)
    assert all(b"hunter2" not in path.read_bytes() for path in case.folder.rglob("*") if path.is_file())
    assert read_threads(case)[0].store == "postgresql://w:***@db/debug"
    assert case_for(root, None, source, now=LATER) == case


def test_without_a_name_a_case_is_named_after_its_thread_and_used_again_while_open(root: Path) -> None:
    first = case_for(root, None, SOURCE, now=NOW, reason="look")
    assert (first.name, first.source) == ("support-17", replace(SOURCE, id=None))
    assert case_for(root, None, replace(SOURCE, id="other"), now=LATER) == first
    close_case(root, first.name, "", deleting([]), now=LATER)
    assert case_for(root, None, SOURCE, now=LATER).name == "support-17-2"


def test_threads_that_would_share_a_name_get_cases_of_their_own(root: Path) -> None:
    names = [case_for(root, None, Place("s", thread), now=NOW).name for thread in ("a/b", "a b", "a-b", "a/b")]
    assert names == ["a-b", "a-b-2", "a-b-3", "a-b"]
    other_store = case_for(root, None, Place("other", "a/b"), now=NOW)
    assert other_store.name == "a-b-4"


def test_a_named_case_is_not_taken_for_the_one_opened_by_itself(root: Path) -> None:
    open_case(root, "support-17", now=NOW)
    assert case_for(root, None, SOURCE, now=NOW).name == "support-17-2"


def test_a_name_given_makes_the_case_or_uses_it(root: Path) -> None:
    made = case_for(root, "inc-31", SOURCE, now=NOW, reason="look")
    assert (made.name, made.reason, made.source) == ("inc-31", "look", None)
    assert case_for(root, "inc-31", Place("s", "another thread"), now=LATER) == made


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc", ".hidden", "a\nb", "a\x00b", "x" * 101, "-x", "ä"]
)
def test_a_name_that_could_lead_elsewhere_is_refused(root: Path, name: str) -> None:
    for use in (
        lambda: open_case(root, name, now=NOW),
        lambda: find_case(root, name),
        lambda: case_for(root, name, SOURCE, now=NOW),
        lambda: close_case(root, name, "", deleting([]), now=NOW),
    ):
        with pytest.raises(UsageError):
            use()
    assert not root.exists()


def test_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    elsewhere = open_case(tmp_path / "other", "real", now=NOW)
    root.mkdir(parents=True)
    (root / "fake").symlink_to(elsewhere.folder)
    (root / "dangling").symlink_to(tmp_path / "nothing")
    for name in ("fake", "dangling"):
        with pytest.raises(StoreError, match="link"):
            open_case(root, name, now=NOW)
    assert list_cases(root) == ()


@given(st.text(max_size=150))
def test_every_thread_id_gives_a_name_that_is_safe(thread: str) -> None:
    name = name_for(thread)
    assert is_case_name(name)
    assert case_folder(Path("/cases"), name).parent == Path("/cases")


def test_an_unknown_case_names_its_neighbour(root: Path) -> None:
    open_case(root, "support-17", now=NOW)
    with pytest.raises(NotFound) as caught:
        show_case(root, "suport-17")
    assert caught.value.hint == "did you mean support-17?"
    assert caught.value.candidates == ({"case": "support-17"},)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"schema": "agentctl.case/2"}', '{"schema": "agentctl.case/1", "state": "open", "events": []}'],
)
def test_a_damaged_case_is_an_error_that_names_the_file(root: Path, text: str) -> None:
    case = open_case(root, "inc-31", now=NOW)
    (case.folder / "case.json").write_text(text)
    for read in (lambda: list_cases(root), lambda: find_case(root, "inc-31")):
        with pytest.raises(StoreError, match=r"case\.json"):
            read()


def test_folders_that_are_no_cases_are_passed_over(root: Path) -> None:
    open_case(root, "inc-31", now=NOW)
    (root / "notes").mkdir()
    (root / ".new-abc").mkdir()
    (root / "file").write_text("x")
    assert [summary.case.name for summary in list_cases(root)] == ["inc-31"]


def test_a_line_cut_by_a_crash_spoils_nothing_but_itself(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    add_calls(case, [call()], thread="t1", now=NOW)
    with (case.folder / "calls.jsonl").open("a") as file:
        file.write('{"at": "2026-11-30T14:00')
    add_calls(case, [call("issue_refund", "escaped")], thread="t2", now=NOW)
    view = show_case(root, "inc-31")
    assert [line["thread"] for line in view.calls] == ["t1", "t2"]
    assert (view.n_damaged, view.summary.n_escaped) == (1, 1)


def test_a_ledger_keeps_any_text_and_any_value(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    odd = replace(call(), args={"text": "a\nb\u2028\ud800\x1b[31m", "n": float("inf"), "raw": b"\x00", "at": NOW})
    add_calls(case, [odd], thread="t", now=NOW)
    (line,) = show_case(root, "inc-31").calls
    assert isinstance(line["args"], dict)
    assert line["args"]["text"] == "a\nb\u2028\ud800\x1b[31m"
    assert line["args"]["n"] == {"$float": "inf"}


def _add_many(folder: Path, writer: int, n: int) -> None:
    case = find_case(folder.parent, folder.name)
    for i in range(n):
        add_run(case, run(f"t-{writer}-{i}", *[call()] * 3), kind="replay", source=SOURCE, now=NOW)
        add_report(case, "replay", {"writer": writer, "i": i})


def _holds_all(root: Path, n_writers: int) -> None:
    view = show_case(root, "inc-31")
    threads = sorted(f"t-{writer}-{i}" for writer in range(n_writers) for i in range(8))
    assert sorted(str(line["thread"]) for line in view.runs) == threads
    assert (len(view.calls), view.n_damaged) == (24 * n_writers, 0)
    assert [path.name[:3] for path in view.reports] == [f"{n:03d}" for n in range(1, 8 * n_writers + 1)]


def test_threads_that_write_at_once_lose_and_mix_nothing(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda writer: _add_many(case.folder, writer, 8), range(4)))
    _holds_all(root, 4)


@pytest.mark.real_process
def test_processes_that_write_at_once_lose_and_mix_nothing(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_add_many, args=(case.folder, writer, 8)) for writer in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0]
    _holds_all(root, 2)


def test_cases_opened_at_once_are_all_made_and_one_of_each_name(root: Path) -> None:
    def open_both(n: int) -> tuple[str, str]:
        own = case_for(root, None, Place("s", "a/b" if n % 2 else "a b"), now=NOW)
        return own.name, case_for(root, "shared", SOURCE, now=NOW).name

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(open_both, range(12)))
    assert {shared for _, shared in made} == {"shared"}
    assert sorted({own for own, _ in made}) == ["a-b", "a-b-2"]
    assert not [path for path in root.iterdir() if path.name.startswith(".new-")]


def test_a_document_appears_once_and_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert add_document(path, {"n": 1})
    assert not add_document(path, {"n": 2})
    assert json.loads(path.read_bytes()) == {"n": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_folder_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be kept"):
        open_case(tmp_path / "file" / "cases", "inc-31", now=NOW)
    with pytest.raises(StoreError, match="cannot be written"), locked(tmp_path / "gone"):
        pass
    with pytest.raises(StoreError, match="cannot be written"):
        append_lines(tmp_path / "gone" / "x.jsonl", [{}])


def test_a_case_whose_folder_was_removed_is_a_store_error(root: Path) -> None:
    case = open_case(root, "inc-31", now=NOW)
    moved = Case(case.name, case.folder.with_name("other"), case.state, case.events)
    with pytest.raises(StoreError):
        add_calls(moved, [call()], thread="t", now=NOW)


def test_a_missing_ledger_has_no_lines(tmp_path: Path) -> None:
    assert read_lines(tmp_path / "none.jsonl") == ((), 0)


def test_a_disk_that_is_full_leaves_no_part_of_a_case(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("agentctl.casebook.files.os.fsync", full)
    with pytest.raises(StoreError) as caught:
        open_case(root, "inc-31", now=NOW)

    assert "make room" in (caught.value.hint or "")
    assert [path.name for path in root.iterdir() if path.is_dir()] == []
