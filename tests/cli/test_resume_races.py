"""Two commands on one thread, and commands that are cut off: real processes on SQLite and Postgres."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from agentctl.stores.open import open_reader, open_writer
from agentctl.testing import CliResult, run_cli
from tests.support import gated
from tests.support.forked import Forked, Forks

pytestmark = pytest.mark.real_process
TIMEOUT_S = 60
STORES = ("sqlite", "postgres")


@dataclass(frozen=True)
class Place:
    """A project with the gated application; `prefix` and `options` make a command run in its debug or live store."""

    folder: Path
    store: str
    forks: Forks
    prefix: str = "debug::"
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        return f"{self.prefix}t"

    @property
    def paid(self) -> list[str]:
        return (self.folder / "paid").read_text().splitlines()

    def __call__(self, *words: str) -> CliResult:
        """Runs a command in this process, which counts as another one for the lock."""
        with patch.dict(os.environ, self.environ(gate=False)):
            return run_cli(*words, *self.options, cwd=self.folder)

    def environ(self, *, gate: bool = True) -> dict[str, str]:
        held = {"GATED_AT": str(self.folder / "gate")} if gate else {}
        return {"GATED_PAID": str(self.folder / "paid"), "USER": "zoe", **self.variables, **held}

    def start_thread(self) -> None:
        started = self("run", "gated", "--thread", self.target, "--input", "{}")
        assert started.code == 0, started.err

    def process(self, *words: str, gate: bool = True) -> Forked:
        """Starts a command in a process of its own; with the gate its payment is held up."""
        environ = {**os.environ, **self.environ(gate=gate), "USER": "ana"}
        return self.forks.start([*words, *self.options], self.folder, environ)

    @contextmanager
    def paying(self, *words: str) -> Iterator[Forked]:
        """A process that resumes the thread and is held up right after its payment."""
        with self.process("resume", self.target, "--value", "3", "--stream", "custom", *words) as process:
            assert any('{"paid": 3}' in line for line in iter(process.stdout.readline, ""))
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def opened_gate(self) -> Iterator[None]:
        """Lets every payment that is held up go on."""
        pipe = os.open(self.folder / "gate", os.O_RDWR)
        try:
            os.write(pipe, b"go")
            yield
        finally:
            os.close(pipe)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("fresh_postgres_url"))
    (tmp_path / "store").mkdir()
    return str(tmp_path / "store" / "threads.sqlite")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.close()


def project(folder: Path, url: str, forks: Forks, *, live: bool = False) -> Place:
    app = Path(gated.__file__)
    config = {
        "profiles": {"live": {"store": url if live else "none.sqlite", "access": "write"}},
        "debug_store": "debug.sqlite" if live else url,
        "workflows": {
            "gated": {
                "graph": f"{app}:build_graph",
                "sandbox": f"{app}:registry",
                "production": f"{app}:registry",
            }
        },
    }
    (folder / "agentctl.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (folder / "paid").touch()
    os.mkfifo(folder / "gate")
    if not live:
        return Place(folder, url, forks)
    open_writer(url).setup()
    return Place(folder, url, forks, "live::", ("--tools", "production"), {"AGENTCTL_ENV": "production"})


@pytest.mark.parametrize("url", STORES, indirect=True)
def test_of_two_answers_one_wins_and_the_other_is_told_whose(tmp_path: Path, url: str, forks: Forks) -> None:
    place = project(tmp_path, url, forks)
    place.start_thread()
    with place.paying("--configurable", "actor=maria") as process:
        for words in (("resume", place.target, "--value", "4"), ("run", "gated", "--thread", place.target)):
            refused = place(*words)
            assert (refused.code, refused.out) == (5, "")
            assert f"{place.target} is being run by maria (ana@" in refused.err
            assert " since 20" in refused.err and "(agentctl resume)" in refused.err
        assert place("run", "gated", "--thread", f"{place.prefix}other", "--input", "{}").code == 0
        with place.opened_gate():
            out, err = process.communicate(TIMEOUT_S)
    assert process.returncode == 0, err
    assert out.splitlines()[-1].split("\t")[:3] == ["end", place.target, "done"]
    late = place("resume", place.target, "--value", "4")
    assert late.code == 5
    assert "has no question waiting for an answer; it was taken on by maria (ana@" in late.err
    assert place.paid == ["3"]


@pytest.mark.parametrize("url", STORES, indirect=True)
def test_of_two_commands_at_the_same_moment_one_runs_in_production_too(tmp_path: Path, url: str, forks: Forks) -> None:
    place = project(tmp_path, url, forks, live=True)
    place.start_thread()
    both = [place.process("resume", place.target, "--value", amount, gate=False) for amount in ("1", "2")]
    told = [process.communicate(TIMEOUT_S) for process in both]
    assert sorted(process.returncode for process in both) == [0, 5], told
    assert len(place.paid) == 1


@pytest.mark.parametrize("url", STORES, indirect=True)
def test_a_killed_command_keeps_nobody_out(tmp_path: Path, url: str, forks: Forks) -> None:
    place = project(tmp_path, url, forks)
    place.start_thread()
    with place.paying() as process:
        process.send_signal(signal.SIGKILL)
        process.wait(TIMEOUT_S)
    goes_on = place("run", "gated", "--thread", place.target)
    assert (goes_on.code, goes_on.rows[0][1]) == (0, "done"), goes_on.err
    assert place.paid == ["3", "3"]


@pytest.mark.parametrize(("url", "how"), [("sqlite", "closed pipe"), ("postgres", "Ctrl-C")], indirect=["url"])
def test_a_command_that_is_cut_off_keeps_what_was_saved_and_its_calls(
    tmp_path: Path, url: str, forks: Forks, how: str
) -> None:
    place = project(tmp_path, url, forks)
    place.start_thread()
    with place.paying("--stream", "updates") as process:
        if how == "Ctrl-C":
            process.send_signal(signal.SIGINT)
            code = process.wait(TIMEOUT_S)
        else:
            process.stdout.close()
            with place.opened_gate():
                code = process.wait(TIMEOUT_S)
        err = process.stderr.read()
    assert code == {"Ctrl-C": 130, "closed pipe": 141}[how], err
    assert "Traceback" not in err
    assert "stopped; what was finished is saved, and goes on with: agentctl run gated --thread debug::t" in err
    assert place("case", "show", "t", "--json").json["n_calls"] == 1
    goes_on = place("run", "gated", "--thread", place.target)
    assert (goes_on.code, goes_on.rows[0][1]) == (0, "done"), goes_on.err


@pytest.mark.parametrize("url", STORES, indirect=True)
def test_the_lock_leaves_nothing_behind(tmp_path: Path, url: str, forks: Forks) -> None:
    place = project(tmp_path, url, forks)
    place.start_thread()
    assert place("resume", place.target, "--value", "1").code == 0
    if "://" not in url:
        assert sorted(path.name for path in Path(url).parent.iterdir()) == ["cases", "threads.sqlite"]
    reader = open_reader(url)
    try:
        assert len(reader.rows("t")) == 5
    finally:
        reader.close()
