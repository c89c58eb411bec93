"""Fixtures of the workflow tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.backoffice import SupportWorld, support_world
from tests.support.loan import LoanWorld, loan_world
from tests.support.travel import Agency, agency_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SupportWorld]:
    """A back office of the test's own, and the support workflow over it."""
    with support_world(tmp_path) as running:
        yield running


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[LoanWorld]:
    """A back office of the test's own, and the loan workflow over it."""
    with loan_world(tmp_path) as running:
        yield running


@pytest.fixture
def agency(tmp_path: Path) -> Iterator[Agency]:
    """A back office of the test's own, and the travel workflow over it."""
    with agency_world(tmp_path) as running:
        yield running
