"""Texts of a configuration file that name a place: `${ENV}` filled in, relative paths made absolute."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from agentctl.config.debug import sqlite_file
from agentctl.errors import ConfigError

HIDDEN = "***"

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PYTHON = re.compile(r"(?P<file>.+\.py):(?P<attribute>[A-Za-z_][\w.]*)")
_USERINFO = re.compile(r"://[^:/@?]*:(?P<password>.+)@")
_PARAMETER = re.compile(r"(password\s*=\s*)([^&\s]+)", re.IGNORECASE)
_SQLITE = "sqlite:///"
_PORTS = {"postgres": "5432", "https": "443", "http": "80"}


def literal_password(url: str) -> bool:
    """Returns whether a store text holds a password that is not wholly `${NAME}`."""
    return any(_PLACEHOLDER.sub("", password) for password in _passwords(url))


def hide_password(url: str) -> str:
    """Returns the text with its passwords as `***`, those written as `${NAME}` left."""
    for password in sorted(set(_passwords(url)), key=len, reverse=True):
        if _PLACEHOLDER.sub("", password):
            url = url.replace(f":{password}@", f":{HIDDEN}@")
            url = _PARAMETER.sub(lambda match: match.group(1) + HIDDEN, url)
    return url


def _passwords(url: str) -> list[str]:
    found = [match.group(2) for match in _PARAMETER.finditer(url)]
    base = url.partition("?")[0]
    if userinfo := _USERINFO.search(base if "@" in base else url):
        found.append(userinfo["password"])
    return found


def check_placeholders(text: str, where: str) -> None:
    """Refuses `${...}` that is no plain variable name.

    Raises:
        ConfigError: such as `${NAME:-default}`; `where` is named.
    """
    for name in _PLACEHOLDER.findall(text):
        if not _VARIABLE.fullmatch(name):
            raise ConfigError(f"{where}: ${{{name}}} is no variable", hint="write ${NAME}; there are no defaults")


def expand(text: str, env: Mapping[str, str], where: str) -> str:
    """Returns the text with every `${NAME}` replaced.

    Raises:
        ConfigError: a variable is not set or empty; it and `where` are named.
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if not env.get(name):
            raise ConfigError(
                f"environment variable {name} is not set, and {where} needs it", hint=f"export {name}=..."
            )
        return env[name]

    return _PLACEHOLDER.sub(value, text)


def locate_store(text: str, folder: Path) -> str:
    """Returns a store text whose file, where it names one, is absolute: relative paths start at `folder`."""
    if text.startswith(_SQLITE):
        return f"{_SQLITE}{_absolute(text[len(_SQLITE) :], folder)}"
    if "://" in text or text.startswith(":"):
        return text
    return locate_code(text, folder) if _PYTHON.fullmatch(text) else _absolute(text, folder)


def same_store(one: str, other: str) -> bool:
    """Returns whether two store texts mean one file, database or server, however they are spelled and whoever asks.

    Files are compared by where they lead, links followed; databases and servers by host, port and name. Two names of
    one host count as two stores, two schemas of one database as one.
    """
    return _identity(one) == _identity(other)


def same_login(one: str, other: str) -> bool:
    """Returns whether two store texts name the same user, or both none."""
    return _user(one) == _user(other)


def _identity(text: str) -> tuple[str, ...]:
    if match := _PYTHON.fullmatch(text):
        return "saver", str(Path(match["file"]).resolve()), match["attribute"]
    if (file := sqlite_file(text)) is not None:
        return "sqlite", str(file.expanduser().resolve())
    parts, given = urlsplit(text), dict(parse_qsl(urlsplit(text).query))
    scheme = parts.scheme.partition("+")[0].replace("postgresql", "postgres")
    hosts = parts.netloc.rpartition("@")[2].lower()
    host, _, port = hosts.rpartition(":") if hosts.rpartition(":")[2].isdigit() else (hosts, "", "")
    host, port = given.get("host") or host or "localhost", given.get("port") or port or _PORTS.get(scheme, "")
    if scheme != "postgres":
        return scheme, host, port, parts.path.rstrip("/")
    return scheme, host, port, given.get("dbname") or unquote(parts.path.strip("/")) or _user(text)


def _user(text: str) -> str:
    parts = urlsplit(text)
    return unquote(parts.username or "") or dict(parse_qsl(parts.query)).get("user", "")


def locate_code(text: str, folder: Path) -> str:
    """Returns `path.py:attr` with an absolute path; a dotted module (`package.module:attr`) stays as it is."""
    match = _PYTHON.fullmatch(text)
    return f"{_absolute(match['file'], folder)}:{match['attribute']}" if match else text


def _absolute(path: str, folder: Path) -> str:
    return str(folder / Path(path).expanduser())


def locate_path(text: str, folder: Path) -> Path:
    """Returns a file or folder of the project as an absolute path."""
    return folder / Path(text).expanduser()
