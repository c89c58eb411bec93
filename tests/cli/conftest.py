"""A project for every test; its production store is made once, since looking does not change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, seed, write_project


@pytest.fixture(scope="session")
def prod(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seed(tmp_path_factory.mktemp("prod"))


@pytest.fixture
def cli(tmp_path: Path, prod: Path) -> Cli:
    return write_project(tmp_path, prod)
