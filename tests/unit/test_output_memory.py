"""A document that is printed is not held in memory, however long."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from agentctl.cli.env import real_env
from agentctl.cli.output import Answer, emit

ROW = {"text": "x" * 1000}


class Watched(tempfile.SpooledTemporaryFile[Any]):
    """Tells when it goes on in a file."""

    n_rolled = 0

    def rollover(self) -> None:
        type(self).n_rolled += 1
        super().rollover()


def test_a_long_document_waits_in_a_file_from_before_its_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", Watched)
    monkeypatch.setattr(Watched, "n_rolled", 0)
    before_each: list[int] = []

    def rows() -> Iterator[dict[str, str]]:
        for _ in range(3000):
            before_each.append(Watched.n_rolled)
            yield ROW

    env = real_env(["--json"])
    env.stdout = StringIO()
    emit(env, Answer(human=lambda width: (), plain=lambda: (), document=lambda: {"items": rows()}))
    assert before_each[0] == 0 and before_each[-1] == 1
    assert env.stdout.getvalue().count("x" * 1000) == 3000
