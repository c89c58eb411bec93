"""Versioned files of a workflow, in folders of its own: policies as YAML, prompts as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

_Policy = TypeVar("_Policy")


class UnknownPrompt(LookupError):
    """There is no prompt of that version."""


class UnknownPolicy(LookupError):
    """There is no policy of that version."""


def read_policies(folder: Path, parse: Callable[[Mapping[str, Any]], _Policy]) -> dict[str, _Policy]:
    """Reads every version of a policy, by the `version` that its document names.

    Args:
        folder: Its `*.yaml` are the versions.
        parse: Makes the policy of a document.
    """
    documents = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))]
    return {document["version"]: parse(document) for document in documents}


def policy_of(policies: Mapping[str, _Policy], version: str) -> _Policy:
    """Returns one version of a policy.

    Raises:
        UnknownPolicy: there is none; those that there are are named.
    """
    if version not in policies:
        raise UnknownPolicy(f"there is no policy {version}; there are {', '.join(sorted(policies))}")
    return policies[version]


def read_prompt(folder: Path, name: str) -> str:
    """Returns the text of a prompt.

    Raises:
        UnknownPrompt: the folder has no `NAME.md`; those that it has are named.
    """
    path = folder / f"{name}.md"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.md")))
        raise UnknownPrompt(f"there is no prompt {name}; there are {known}")
    return path.read_text(encoding="utf-8")
