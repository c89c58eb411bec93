"""Which extra a missing package belongs to: as the installed metadata says."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable

import pytest

from agentctl.sandbox.extras import DISTRIBUTION, extra_of, install_command, missing_of
from agentctl.sandbox.failures import graph_failed

REQUIRES = [
    "typer>=0.28",
    "httpx>=0.27; extra == 'workflows'",
    'langchain-mcp-adapters>=0.3; python_version >= "3.11" and extra == "workflows"',
    "absent-package; extra == 'workflows'",
    "langsmith>=0.15; extra == 'langsmith'",
    f"{DISTRIBUTION}[workflows,langsmith]; extra == 'dev'",
    "httpx; extra == 'dev'",
    "langchain-mcp-adapters; extra == 'dev'",
    "pytest; extra == 'dev'",
    "ruff; extra == 'dev'",
]

Says = Callable[[list[str] | None], None]


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> Says:
    def says(requires: list[str] | None) -> None:
        def read(name: str) -> list[str] | None:
            if requires is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return requires

        monkeypatch.setattr(importlib.metadata, "requires", read)

    return says


def test_the_smallest_extra_that_lists_a_package_is_named(metadata: Says) -> None:
    metadata(REQUIRES)
    assert [
        extra_of(name) for name in ("httpx", "langchain_mcp_adapters", "langsmith", "pytest", "typer", "numpy")
    ] == [
        "workflows",
        "workflows",
        "langsmith",
        "dev",
        None,
        None,
    ]
    assert missing_of("workflows") == ("absent_package",)


def test_without_metadata_no_extra_is_named(metadata: Says) -> None:
    metadata(None)
    assert extra_of("httpx") is None
    assert missing_of("workflows") == ()


def test_every_package_of_the_extra_is_imported_by_its_own_name() -> None:
    assert extra_of("starlette") == "workflows"
    assert missing_of("workflows") == ()


@pytest.mark.parametrize(
    ("module", "message", "hint"),
    [
        ("httpx", "g.py:graph needs httpx", install_command("workflows")),
        ("my_tools", "g.py:graph needs my_tools", "install what the graph imports beside agentctl: my_tools is not"),
        ("httpx.nothing", "g.py:graph cannot be loaded", None),
    ],
)
def test_a_missing_module_is_named_and_the_extra_only_where_it_has_it(
    metadata: Says, module: str, message: str, hint: str | None
) -> None:
    metadata(REQUIRES)
    error = ImportError("could not import")
    error.__cause__ = ModuleNotFoundError(f"No module named {module!r}", name=module)
    failed = graph_failed("g.py:graph", error)
    assert failed.message.startswith(message)
    assert (failed.hint or "").startswith(hint) if hint else failed.hint is None
