"""Masking on the command line: what leaves a store, what is told of it, and under which name."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentctl.datasets.folder import load_examples
from agentctl.testing import CliResult, run_cli
from tests.support import customers
from tests.support.customers import ASKING, EMAIL, FAILED, NAME, PLANTED, folder_bytes, found_in, stored_bytes

GRAPH = ("--graph", f"{customers.__file__}:graph")
CALL = f"{ASKING}@call:lookup_customer"
ANSWERED = ("--resume", '{"ok": true}')
REFUNDED = ("--check", "reply contains refunded")
OTHER = ("--patch", 'lookup_customer:email="other"')

ONCE = ("email", "phone", "card", "iban", "national_id", "ip")


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a configuration; `debug` is the debug store."""

    folder: Path
    debug: str

    def __call__(self, *words: str, environ: dict[str, str] | None = None, terminal: bool = False) -> CliResult:
        return run_cli(*words, cwd=self.folder, environ=environ, terminal=terminal, width=200)

    def told(self, *words: str) -> Any:
        """The document of a command, which is searched for what was planted, as is all that the command printed."""
        done = self(*words, "--json")
        assert found_in(f"{done.out}\n{done.err}".encode()) == set()
        return done.json

    def customer(self, thread: str) -> Any:
        """The customer in the state of a debug thread."""
        return self("show", f"debug::{thread}", "--json").json["values"]["customer"]

    def left(self) -> set[str]:
        """What of the planted values is in the debug store, the cases or the datasets."""
        return found_in(stored_bytes(self.debug) + folder_bytes(self.folder))


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The production store with the application's threads."""
    path = tmp_path_factory.mktemp("customers") / "prod.sqlite"
    customers.seed(str(path))
    return path


def project_in(folder: Path, store: Path, debug: str, **keys: Any) -> Project:
    profiles = {"prod": {"store": str(store), "default": True}, "vault": {"store": str(store), "mask": "always"}}
    config = {"profiles": profiles, "debug_store": debug, "masking": customers.RULES} | keys
    (folder / "agentctl.yaml").write_text(yaml.safe_dump(config), "utf-8")
    return Project(folder, str(folder / debug) if "://" not in debug else debug)


@pytest.fixture
def project(tmp_path: Path, store: Path) -> Project:
    return project_in(tmp_path, store, "debug.sqlite")


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest, tmp_path: Path, store: Path) -> Iterator[Project]:
    """A project with its debug store on SQLite, then on Postgres."""
    debug = "debug.sqlite" if request.param == "sqlite" else request.getfixturevalue("fresh_postgres_url")
    yield project_in(tmp_path, store, debug)


def test_experiments_leave_nothing_behind_that_was_planted(either: Project) -> None:
    diagnosed = either.told("diagnose", ASKING, "--mask", *OTHER, *REFUNDED, *ANSWERED, "-n", "4", *GRAPH)
    copied = either.told("copy", FAILED, "--mask", "--only", "all")
    compared = either.told("diff", ASKING, f"debug::{ASKING}.fork-1")
    exported = either.told("export", f"debug::{ASKING}.fork-1", "--dataset", "d")
    assert either.left() == set()

    assert diagnosed["verdict"] == "tool_data"
    assert [run["nodes"] for run in diagnosed["replays"]["runs"]] == [["tools", "judge", "ask", "reply"]] * 4
    assert {run["nodes"][-1] for run in diagnosed["forks"][0]["runs"]} == {"refuse"}
    assert diagnosed["side_effects"]["recorded"] == 4
    assert not compared["equal"]
    for document in (diagnosed, copied, exported):
        assert {kind: document["masking"]["values"][kind] for kind in ONCE} == dict.fromkeys(ONCE, 1)
    metadata = either("show", f"debug::{ASKING}.fork-1", "--json").json["metadata"]
    assert metadata["agentctl_masked"] == "true"


@pytest.mark.parametrize("either", ["postgres"], indirect=True)
def test_a_process_of_its_own_gets_masked_values_alone(either: Project) -> None:
    replayed = either.told("replay", CALL, "--mask", *ANSWERED, *GRAPH, "--isolation", "best")
    assert (
        replayed["plan"]["masked"] and replayed["copies"][0]["masked"] and replayed["masking"]["values"]["email"] == 1
    )
    (run,) = replayed["runs"]
    assert run["nodes"] == ["tools", "judge", "ask", "reply"]
    assert "example.com" in run["reply"]
    assert either.left() == set()


def test_a_masked_thread_takes_the_same_route_to_the_same_verdict(project: Project) -> None:
    plain = project("diagnose", ASKING, *OTHER, *REFUNDED, *ANSWERED, "-n", "4", *GRAPH, "--json").json
    masked = project.told("diagnose", ASKING, "--mask", *OTHER, *REFUNDED, *ANSWERED, "-n", "4", *GRAPH)
    assert plain["masking"] is None
    for key in ("verdict", "p_value", "side_effects"):
        assert masked[key] == plain[key]
    for one, other in zip(masked["replays"]["runs"], plain["replays"]["runs"], strict=True):
        assert one["nodes"] == other["nodes"]
        assert [(call["name"], call["id"]) for call in one["tool_calls"]] == [
            (call["name"], call["id"]) for call in other["tool_calls"]
        ]


def test_the_plan_says_whether_the_prompts_are_masked(project: Project) -> None:
    assert "prompts masked" in project("replay", CALL, "--mask", *ANSWERED, *GRAPH).err
    assert "prompts not masked" in project("replay", CALL, "--no-mask", *ANSWERED, *GRAPH).err
    again = project("replay", f"debug::{ASKING}.replay-1@call:lookup_customer", *ANSWERED, *GRAPH)
    assert "prompts masked" in again.err, "the thread is a masked copy"


def test_a_masked_thread_stays_one_when_it_goes_on(project: Project) -> None:
    workflow = {"letters": {"graph": GRAPH[1], "sandbox": f"{customers.__file__}:sandbox"}}
    config = yaml.safe_load((project.folder / "agentctl.yaml").read_text("utf-8"))
    (project.folder / "agentctl.yaml").write_text(yaml.safe_dump(config | {"workflows": workflow}), "utf-8")
    project.told("copy", f"{ASKING}@interrupt", "--mask", "--only", "point", "--as", "waiting")
    ran = project("run", "letters", "--thread", "debug::waiting")
    assert ran.code == 0, ran.err
    assert "prompts masked" in ran.err
    head = project("show", "debug::waiting", "--json").json
    assert head["metadata"]["agentctl_masked"] == "true" and head["next"] == []


def test_a_profile_that_is_always_masked_needs_no_option(project: Project) -> None:
    assert project.told("copy", f"vault::{ASKING}")["masked"]
    assert project.left() == set()
    refused = project("export", f"vault::{ASKING}", "--no-mask", "--dataset", "d", *REFUNDED)
    assert refused.code == 5
    assert "vault has mask: always" in refused.err
    assert not (project.folder / "datasets").exists()


def test_an_export_is_masked_unless_that_is_not_wanted(project: Project) -> None:
    masked = project("export", ASKING, "--dataset", "masked", *REFUNDED, terminal=True)
    assert "masked 2 addresses, 1 birth date, 1 card, 1 email" in masked.out
    (example,) = load_examples(project.folder / "datasets" / "masked" / "examples.jsonl")
    assert found_in(repr(example).encode()) == set()
    raw = project("export", ASKING, "--dataset", "raw", "--no-mask", *REFUNDED)
    assert raw.rows[0][6:] == ["false", ""]
    assert "not masked: the dataset holds personal data" in raw.err
    (example,) = load_examples(project.folder / "datasets" / "raw" / "examples.jsonl")
    assert NAME in repr(example)


def test_a_masked_thread_is_exported_as_it_is_and_says_so(project: Project) -> None:
    project.told("fork", ASKING, "--mask", *OTHER, *GRAPH)
    fork = f"debug::{ASKING}.fork-1"
    exported = project("export", fork, "--dataset", "d")
    assert f"{fork} is masked already" in exported.err
    (example,) = load_examples(project.folder / "datasets" / "d" / "examples.jsonl")
    email = project.customer(f"{ASKING}.fork-1")["email"]
    assert email in repr(example.inputs), "what came before the fork is read from the source, with the same tokens"
    refused = project("export", fork, "--dataset", "d", "--no-mask")
    assert refused.code == 5
    assert "is masked already: what was there before does not come back" in refused.err


def test_a_masked_copy_is_compared_with_its_source_masked(project: Project) -> None:
    project.told("copy", ASKING, "--mask", "--only", "all")
    same = project("diff", ASKING, f"debug::{ASKING}.copy-1", "--exit-code")
    assert same.code == 0
    assert f"{ASKING} is compared masked, as the other side is" in same.err
    project("copy", ASKING)
    assert "compared masked" not in project("diff", ASKING, f"debug::{ASKING}.copy-2").err


def test_equal_values_stay_equal_from_command_to_command(project: Project) -> None:
    for thread in (ASKING, FAILED):
        project.told("copy", thread, "--mask")
    first, second = project.customer(f"{ASKING}.copy-1"), project.customer(f"{FAILED}.copy-1")
    assert first == second
    project.told("copy", ASKING, "--mask", "--debug-store", "other.sqlite")
    other = run_cli("show", f"{ASKING}.copy-1", "--store", "other.sqlite", "--json", cwd=project.folder).json
    assert other["values"]["customer"]["email"] != first["email"]


def test_the_key_is_kept_for_its_owner_alone_beside_the_debug_store(project: Project) -> None:
    file = project.folder / "debug.sqlite.mask-key"
    project.told("copy", ASKING, "--mask", "--dry-run")
    assert not file.exists()
    project.told("copy", ASKING, "--mask")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() not in folder_bytes(project.folder / "cases").decode("utf-8", "replace")
    file.chmod(0o644)
    refused = project("copy", ASKING, "--mask")
    assert refused.code == 4
    assert "others may read it" in refused.err and "chmod 600" in refused.err


def test_a_key_of_the_environment_is_used_in_its_place(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCTL_MASK_KEY", "a key of somebody's choice")
    project.told("copy", ASKING, "--mask")
    project.told("copy", ASKING, "--mask", "--debug-store", "other.sqlite")
    assert not (project.folder / "debug.sqlite.mask-key").exists()
    other = run_cli("show", f"{ASKING}.copy-1", "--store", "other.sqlite", "--json", cwd=project.folder).json
    assert other["values"]["customer"] == project.customer(f"{ASKING}.copy-1")
    monkeypatch.setenv("AGENTCTL_MASK_KEY", "short")
    assert project("copy", ASKING, "--mask").code == 4


def test_a_thread_whose_id_is_personal_is_copied_under_another_name(tmp_path: Path, store: Path) -> None:
    project = project_in(tmp_path, store, "debug.sqlite")
    assert project("copy", ASKING, "--as", EMAIL, "--to", "mails.sqlite").code == 0
    project("copy", ASKING, "--as", EMAIL, "--to", "mails.sqlite")
    source = tmp_path / "mails.sqlite"
    for words in (("copy",), ("replay", *GRAPH), ("fork", *OTHER, *GRAPH)):
        verb, *more = words
        refused = project(verb, EMAIL, "--store", str(source), "--mask", *more)
        assert refused.code == 5, refused
        assert "the thread's id holds personal data" in refused.err
        assert f"agentctl copy --store {source} {EMAIL} --mask --as NAME" in refused.err
    named = project.told("copy", EMAIL, "--store", str(source), "--mask", "--as", "case-1", "--only", "all")
    assert named["source"]["thread"] != EMAIL
    source.unlink()
    assert project.left() == set()
    assert project.customer("case-1")["email"] == named["source"]["thread"]


def test_printed_commands_mask_where_the_command_did(project: Project) -> None:
    refused = project("replay", ASKING, "--mask", *GRAPH)
    assert refused.code == 5
    assert "agentctl replay --mask prod::complaint-7@" in refused.err
    assert "--mask" not in project("replay", ASKING, *GRAPH).err


def test_for_a_pipe_counts_are_cells_and_for_people_a_line(project: Project) -> None:
    (row,) = project("copy", ASKING, "--mask").rows
    assert row[6] == "true"
    assert "email=1" in row[7].split(",") and "iban=1" in row[7].split(",")
    shown = project("copy", ASKING, "--mask", terminal=True).out
    assert "masked, verified" in shown
    assert "1 email, 1 IBAN, 1 IP address, 2 names, 1 national id" in shown
    (row,) = project("copy", ASKING).rows
    assert row[6:] == ["false", ""]


def test_planted_values_are_found_where_nothing_is_masked(project: Project) -> None:
    assert project("replay", CALL, *ANSWERED, *GRAPH).code == 0
    left = project.left()
    assert [text for text in PLANTED if not any(one.startswith(text) for one in left)] == []


def test_a_starter_registry_takes_its_examples_masked(project: Project) -> None:
    made = project("sandbox", "init", ASKING, *GRAPH)
    assert made.code == 0, made.err
    text = (project.folder / "sandbox_tools.py").read_text("utf-8")
    assert "lookup_customer" in text and "ORD-1182" in text
    assert found_in(text.encode()) == set()
    assert project("sandbox", "init", ASKING, *GRAPH, "--no-mask", "--force").code == 0
    assert NAME in (project.folder / "sandbox_tools.py").read_text("utf-8")
