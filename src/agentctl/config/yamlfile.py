"""A YAML file as checked sections: every complaint names the file, the line and the key."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agentctl.config.origins import Origin
from agentctl.config.yamldocument import NotYaml, read_document
from agentctl.errors import ConfigError

if TYPE_CHECKING:
    from yaml.nodes import Node

Choice = TypeVar("Choice", bound=str)
KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One mapping of the file. `path` are the keys above it; `lines` maps key paths of the whole file to lines."""

    file: Path
    path: KeyPath
    data: Mapping[str, object]
    lines: Mapping[KeyPath, int]

    def where(self, key: str = "") -> str:
        """Returns `FILE:LINE` of a key, or of the section."""
        path = (*self.path, key) if key else self.path
        line = self.lines.get(path)
        return f"{self.file}:{line}" if line else str(self.file)

    def origin(self, key: str = "") -> Origin:
        """Returns where a key was set."""
        return Origin("file", self.where(key))

    def name(self, key: str) -> str:
        """Returns the dotted name of a key."""
        return ".".join((*self.path, key))

    def only(self, keys: Collection[str]) -> None:
        """Refuses keys that are not among `keys`.

        Raises:
            ConfigError: with the nearest key, or all of them.
        """
        for key in self.data:
            if key not in keys:
                near = difflib.get_close_matches(key, list(keys), n=1)
                hint = f"did you mean {near[0]}?" if near else f"keys are: {', '.join(sorted(keys))}"
                raise ConfigError(f"{self.where(key)}: unknown key {self.name(key)}", hint=hint)

    def sections(self) -> dict[str, Section]:
        """Returns every value as a section, by key.

        Raises:
            ConfigError: a value is no mapping.
        """
        return {key: self.section(key) for key in self.data}

    def section(self, key: str) -> Section:
        """Returns the mapping under a key, empty where the key is missing or null.

        Raises:
            ConfigError: the value is no mapping.
        """
        value = self.data.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.error(key, "must be a mapping")
        return Section(self.file, (*self.path, key), _text_keys(value, self, key), self.lines)

    def text(self, key: str) -> str | None:
        """Returns a text, None where the key is missing or null.

        Raises:
            ConfigError: the value is no text, or empty.
        """
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, "must be a text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Returns one text or a list of texts as a tuple.

        Raises:
            ConfigError: anything else.
        """
        value = self.data.get(key)
        items = value if isinstance(value, list) else [] if value is None else [value]
        texts = tuple(item for item in items if isinstance(item, str) and item.strip())
        if len(texts) != len(items):
            raise self.error(key, "must be a text or a list of texts")
        return texts

    def flag(self, key: str) -> bool:
        """Returns true or false; false where the key is missing.

        Raises:
            ConfigError: anything else.
        """
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value

    def choice(self, key: str, options: tuple[Choice, ...], default: Choice) -> Choice:
        """Returns one of `options`.

        Raises:
            ConfigError: anything else.
        """
        value = self.data.get(key, default)
        for option in options:
            if value == option:
                return option
        raise self.error(key, f"must be {' or '.join(options)}, not {value}")

    def error(self, key: str, message: str, *, hint: str | None = None) -> ConfigError:
        """Returns an error about a key that names its place."""
        return ConfigError(f"{self.where(key)}: {self.name(key)} {message}", hint=hint)


def read_yaml(file: Path) -> Section:
    """Returns the file's top mapping, empty for an empty file.

    Raises:
        ConfigError: unreadable, no YAML, a key given twice, or no mapping at the top.
    """
    try:
        data, root = read_document(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{file} cannot be read: {exc}") from exc
    except NotYaml as exc:
        line = f":{exc.line}" if exc.line else ""
        raise ConfigError(f"{file}{line}: not YAML: {exc}") from exc
    lines: dict[KeyPath, int] = {}
    if root is not None:
        _collect(root, (), lines, file)
    top = Section(file, (), {}, lines)
    if data is None:
        return top
    if not isinstance(data, dict):
        raise ConfigError(f"{file}: must be a mapping of keys", hint="such as: profiles: {prod: {store: ...}}")
    return Section(file, (), _text_keys(data, top, ""), lines)


def _collect(node: Node, path: KeyPath, lines: dict[KeyPath, int], file: Path) -> None:
    """Notes the line of every key; a key given twice is refused, where YAML itself would take the last."""
    from yaml.nodes import MappingNode

    if not isinstance(node, MappingNode):
        return
    for key, value in node.value:
        here = (*path, str(key.value))
        line = key.start_mark.line + 1
        if here in lines:
            raise ConfigError(f"{file}:{line}: {'.'.join(here)} was given in line {lines[here]} already")
        lines[here] = line
        _collect(value, here, lines, file)


def _text_keys(data: Mapping[object, object], section: Section, key: str) -> dict[str, object]:
    for name in data:
        if not isinstance(name, str):
            raise ConfigError(f"{section.where(key)}: the key {name!r} must be a text", hint="write it in quotes")
    return {str(name): value for name, value in data.items()}
