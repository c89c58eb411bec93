"""The audit log as a file: its chain, what adding to it survives, and what checking it finds."""

from __future__ import annotations

import errno
import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import agentctl
from agentctl.casebook.audit.accesses import log_closing, log_opening, read_accesses
from agentctl.casebook.audit.chain import seal
from agentctl.casebook.audit.log import HEAD, LOG, append
from agentctl.casebook.audit.verify import parse_anchor, verify
from agentctl.casebook.audit.words import kept_words
from agentctl.errors import StoreError, UsageError
from agentctl.records.audit import Person, Touched, Why

NOW = datetime(2026, 11, 30, 3, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of five lines."""
    folder = tmp_path / "audit"
    for i in range(5):
        append(folder, {"event": "opened", "text": f"entry {i}"})
    return folder


def lines_of(folder: Path) -> list[bytes]:
    return (folder / LOG).read_bytes().splitlines(keepends=True)


def put(folder: Path, lines: list[bytes]) -> None:
    (folder / LOG).write_bytes(b"".join(lines))


def found(folder: Path) -> list[tuple[str, int | None]]:
    return [(fault.kind, fault.line) for fault in verify(folder).faults]


def test_a_log_that_nobody_touched_is_whole(folder: Path) -> None:
    checked = verify(folder)
    assert (checked.faults, checked.n_entries) == ((), 5)
    assert verify(folder, parse_anchor(checked.anchor)).faults == ()


def test_it_is_readable_by_its_owner_alone(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_no_byte_can_change_without_being_found(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    append(folder, {"text": "one"})
    append(folder, {"text": "two"})
    text = (folder / LOG).read_bytes()
    for i, byte in enumerate(text):
        (folder / LOG).write_bytes(text[:i] + bytes([byte ^ 1]) + text[i + 1 :])
        assert found(folder), i


def test_each_way_to_tamper_is_found_at_its_line(folder: Path) -> None:
    whole = lines_of(folder)

    def after(lines: list[bytes]) -> list[tuple[str, int | None]]:
        put(folder, lines)
        return found(folder)

    assert after([whole[0], whole[1].replace(b"entry 1", b"entry 7"), *whole[2:]]) == [("edited", 2)]
    assert after([whole[0], whole[1].replace(b'": ', b'":  ', 1), *whole[2:]]) == [("edited", 2)]
    assert ("gap", 3) in after([*whole[:2], *whole[3:]])
    assert ("gap", 1) in after(whole[1:])
    assert ("order", 3) in after([*whole[:2], whole[1], *whole[2:]])
    assert ("gap", 2) in after([whole[0], whole[2], whole[1], *whole[3:]])
    assert ("cut", 3) in after(whole[:3])
    assert ("cut", 5) in after([*whole[:4], whole[4][:20]])
    assert ("cut", None) in after([])
    assert ("damaged", 3) in after([*whole[:2], b"noise\n", *whole[3:]])
    assert after(whole) == []


def test_a_line_that_was_sealed_anew_no_longer_fits_the_next(folder: Path) -> None:
    whole = lines_of(folder)
    prev = re.findall(rb'"prev": "([0-9a-f]+)"', whole[2])[0].decode()
    put(folder, [*whole[:2], seal(3, prev, {"event": "opened", "text": "forged"})[0] + b"\n", *whole[3:]])
    assert ("order", 4) in found(folder)


def test_a_missing_or_damaged_head_is_found(folder: Path) -> None:
    text = (folder / HEAD).read_text()
    (folder / HEAD).unlink()
    assert found(folder) == [("missing", None)]
    (folder / HEAD).write_text("{}")
    assert found(folder) == [("damaged", None)]
    (folder / HEAD).write_text(text.replace('"n_bytes": ', '"n_bytes": 1'))
    assert found(folder) == [("damaged", None)]
    (folder / HEAD).write_text(text)
    (folder / LOG).unlink()
    assert found(folder) == [("cut", None)]


def test_a_cut_of_log_and_head_together_is_told_by_an_anchor_alone(folder: Path) -> None:
    kept = parse_anchor(verify(folder).anchor)
    early = {path: path.read_bytes() for path in (folder / LOG, folder / HEAD)}
    append(folder, {"event": "opened", "text": "what I did"})
    later = parse_anchor(verify(folder).anchor)
    for path, text in early.items():
        path.write_bytes(text)
    assert verify(folder).faults == ()
    assert verify(folder, kept).faults == ()
    assert [fault.kind for fault in verify(folder, later).faults] == ["anchor"]


def test_a_log_that_was_written_anew_is_told_by_an_anchor(folder: Path) -> None:
    kept = parse_anchor(verify(folder).anchor)
    for path in list(folder.iterdir()):
        path.unlink()
    assert [fault.kind for fault in verify(folder, kept).faults] == ["anchor"]
    for i in range(5):
        append(folder, {"event": "opened", "text": f"innocent {i}"})
    assert verify(folder).faults == ()
    assert [(fault.kind, fault.line) for fault in verify(folder, kept).faults] == [("anchor", 5)]


def test_an_anchor_is_a_number_and_a_hash() -> None:
    assert parse_anchor("41:9f2c4be1d07a6e55") == (41, "9f2c4be1d07a6e55")
    for text in ("41", "0:9f2c4be1d07a6e55", "41:9f2c", "x:9f2c4be1d07a6e55"):
        with pytest.raises(UsageError, match="N:HASH"):
            parse_anchor(text)


def test_the_chain_holds_where_many_write_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda i: append(folder, {"text": str(i)}), range(40)))
    assert sorted(numbers) == list(range(1, 41))
    assert verify(folder).faults == ()


def test_a_crash_between_a_line_and_its_head_is_told_and_taken_on(folder: Path) -> None:
    before = (folder / HEAD).read_bytes()
    append(folder, {"text": "cut off"})
    (folder / HEAD).write_bytes(before)
    assert found(folder) == [("uncovered", 6)]
    assert append(folder, {"text": "next"}) == 7
    assert found(folder) == []


def test_a_line_that_a_crash_cut_short_makes_way(folder: Path) -> None:
    with (folder / LOG).open("ab") as file:
        file.write(b'{"n": 6, "prev": "')
    assert found(folder) == [("cut", 6)]
    assert append(folder, {"text": "next"}) == 6
    assert found(folder) == []


def test_a_full_disk_refuses_and_leaves_the_log_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def half(handle: int, data: memoryview) -> int:
        if len(data) < 40:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[: len(data) // 2])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(StoreError, match="cannot be written: No space left on device; no log, no read"):
            append(folder, {"text": "x"})
    assert found(folder) == []
    assert append(folder, {"text": "y"}) == 6


@pytest.mark.parametrize("how", ["cut", "edited", "forged", "head"])
def test_nothing_is_added_to_a_log_that_is_not_as_it_was_left(folder: Path, how: str) -> None:
    whole = lines_of(folder)
    if how == "cut":
        put(folder, whole[:3])
    elif how == "edited":
        put(folder, [*whole[:4], whole[4].replace(b"entry 4", b"entry number 4")])
    elif how == "forged":
        put(folder, [*whole, seal(6, "0" * 64, {"event": "opened"})[0] + b"\n"])
    else:
        (folder / HEAD).write_text("[]")
    with pytest.raises(StoreError, match="not as it was left") as raised:
        append(folder, {"text": "x"})
    assert "agentctl audit verify" in str(raised.value.hint)


def test_a_folder_that_others_can_write_keeps_no_log(folder: Path, tmp_path: Path) -> None:
    folder.chmod(0o770)
    with pytest.raises(StoreError, match="can be written by others"):
        append(folder, {"text": "x"})
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(StoreError, match="no plain folder"):
        append(link, {"text": "x"})


def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    folder.mkdir(0o700)
    (tmp_path / "elsewhere").touch()
    (folder / LOG).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="cannot be written"):
        append(folder, {"text": "x"})
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_what_was_logged_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    who, why = Person("maria", "desk-3"), Why("INC-31", "refund \x1b[31mrefused\n")
    first = log_opening(
        folder, who=who, command=("show", "a b"), profile="prod", store="x", use="read", why=why, now=NOW
    )
    log_opening(folder, who=who, command=("size",), profile="prod", store="x", use="write", why=Why(), now=NOW)
    log_closing(folder, first, Touched(("a b",), ("1f",), 1, 1, {"states": 2}), now=NOW)
    (shown, cut_off), n_damaged = read_accesses(folder)
    assert (shown.n, shown.at, shown.who, shown.why, shown.command) == (1, NOW, who, why, ("show", "a b"))
    assert (shown.touched, shown.ended_at) == (Touched(("a b",), ("1f",), 1, 1, {"states": 2}), NOW)
    assert (cut_off.use, cut_off.touched, n_damaged) == ("write", None, 0)
    assert len(lines_of(folder)) == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", "2026-11-30"),
        ("at", "soon"),
        ("event", "closed"),
        ("command", "show"),
        ("user", None),
        ("store", None),
        ("ticket", None),
    ],
)
def test_a_line_that_says_what_no_command_logs_is_counted(tmp_path: Path, field: str, value: object) -> None:
    good: dict[str, object] = {
        "event": "opened",
        "at": "2026-11-30T03:12:00Z",
        "user": "u",
        "host": "h",
        "command": ["size"],
        "profile": "prod",
        "store": "x",
        "use": "read",
        "ticket": "",
        "reason": "",
    }
    folder = tmp_path / "audit"
    append(folder, good)
    append(folder, {key: item for key, item in good.items() if key != field} | ({field: value} if value else {}))
    accesses, n_damaged = read_accesses(folder)
    assert (len(accesses), n_damaged) == (1, 1)


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"n": -1, "hash": "", "n_bytes": 0}', '{"n": 1}', "7"])
def test_a_head_that_is_none_is_found_and_nothing_is_added(folder: Path, text: str) -> None:
    (folder / HEAD).write_text(text)
    assert found(folder) == [("damaged", None)]
    with pytest.raises(StoreError, match=r"its head\.json is damaged"):
        append(folder, {"text": "x"})


def test_lines_that_cannot_be_read_are_counted(folder: Path) -> None:
    put(folder, [b"noise\n", *lines_of(folder)])
    assert read_accesses(folder) == ((), 6)


def test_secrets_of_a_command_line_are_not_kept() -> None:
    words = [
        *("copy", "prod::a", "--to", "postgresql://u:hunter2@db/x", "--store=postgresql://u:hunter2@db/y"),
        *("--env", "LEVEL=hunter2", "--env=KEY=hunter2", "--configurable", "api_key=hunter2"),
        *("--context", '{"password": "hunter2", "user": "u-1"}', "--model", "sk-hunter2hunter2hunter2"),
        *("--answer", 'login={"token": "hunter2"}', "--ticket", "INC-1"),
    ]
    kept = kept_words(words)
    assert not any("hunter2" in word for word in kept)
    assert kept[:2] == ("copy", "prod::a")
    assert '{"password": "***", "user": "u-1"}' in kept
    assert kept[-2:] == ("--ticket", "INC-1")
    assert max(map(len, kept_words(["--reason", "x" * 10_000]))) < 600


def test_stores_are_opened_only_where_reads_are_admitted() -> None:
    """A new place that opens a store goes through `Stores` or `admitted`, or is called inside, and is named here."""
    package = Path(agentctl.__file__).parent
    calls = re.compile(r"(?<!def )\bopen_(reader|writer|deleter)\(|= open_writer if")
    opening = {str(path.relative_to(package)) for path in package.rglob("*.py") if calls.search(path.read_text())}
    admitted = {"cli/opening.py", "cli/experimenting.py", "cli/run.py", "cli/case.py"}
    called_inside_one = {"cli/prune.py", "experiments/workflows/runs.py"}
    stores_of_its_own = {"cli/touring/production.py", "experiments/forking/scratch.py"}
    assert opening == admitted | called_inside_one | stores_of_its_own
