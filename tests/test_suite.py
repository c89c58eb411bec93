"""What the suite itself relies on."""

from __future__ import annotations

import os

import pytest


def test_tests_of_a_file_run_in_one_process(request: pytest.FixtureRequest) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("there is one process alone")
    assert request.node.nodeid.endswith("@tests/test_suite.py"), "pytest-xdist does not group by this pytest's ids"
