"""What a `--store` text means: which kind of store, where, and how to show it without its password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agentctl.errors import StoreError
from agentctl.stores.base import StoreKind

FORMS = "FILE.sqlite, sqlite:///FILE, postgresql://USER@HOST/DATABASE, https://HOST or PATH.py:ATTRIBUTE"
HIDDEN = "***"

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_SAVER = re.compile(r"^(?P<file>.+\.py):(?P<attribute>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)$")
_PASSWORD = re.compile(r"(?<=://)([^:/@]*):.*@", re.DOTALL)
_PASSWORD_PARAMETER = re.compile(r"((?:ssl)?password=)[^&]*")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A parsed `--store`.

    Attributes:
        kind: Which reader opens it.
        location: A file path, a libpq URL, the address of an Agent Server, or the .py file.
        attribute: The name inside the .py file, else ''.
    """

    kind: StoreKind
    location: str
    attribute: str = ""


def parse_store_url(text: str) -> StoreUrl:
    """Returns what a store text points at. Nothing is opened and no file is looked for.

    Raises:
        StoreError: It is none of the forms that can be opened.
    """
    scheme = _SCHEME.match(text)
    if scheme is not None:
        return _with_scheme(text, scheme.group(1).lower(), text[scheme.end() :])
    if not text.strip():
        raise StoreError("the store is an empty text", hint=f"--store takes {FORMS}")
    if text == ":memory:":
        raise _no_file(text)
    if saver := _SAVER.match(text):
        return StoreUrl("saver", saver["file"], saver["attribute"])
    return StoreUrl("sqlite", str(Path(text).expanduser()))


def hide_password(url: str) -> str:
    """Returns a URL that can be shown: the password, in front of the host or as a parameter, becomes ***."""
    base, mark, parameters = url.partition("?")
    if "@" not in base and "@" in parameters:
        return _PASSWORD.sub(rf"\1:{HIDDEN}@", url)
    return _PASSWORD.sub(rf"\1:{HIDDEN}@", base) + mark + _PASSWORD_PARAMETER.sub(rf"\1{HIDDEN}", parameters)


def _with_scheme(text: str, scheme: str, rest: str) -> StoreUrl:
    dialect, _, _ = scheme.partition("+")
    if dialect in ("postgresql", "postgres"):
        return StoreUrl("postgres", f"postgresql://{rest}")
    if dialect == "sqlite":
        return StoreUrl("sqlite", _sqlite_path(text, rest))
    if dialect in ("http", "https"):
        return StoreUrl("server", _server_address(text, scheme, rest))
    raise StoreError(f"no kind of store is called {scheme}: {hide_password(text)}", hint=f"--store takes {FORMS}")


def _server_address(text: str, scheme: str, rest: str) -> str:
    """Returns the address of an Agent Server in one spelling: host in small letters, no trailing slash."""
    host, slash, path = rest.partition("/")
    if "@" in rest:
        raise StoreError(
            f"the address of an Agent Server holds no user and no password: {hide_password(text)}",
            hint="put its key into the environment: export LANGGRAPH_API_KEY=...",
        )
    if not host or set(rest) & set("?#") or any(letter.isspace() for letter in rest):
        shown = re.split(r"[?#]", rest)[0]  # a key may stand behind
        raise StoreError(
            f"this is no address of an Agent Server: {scheme}://{shown}",
            hint="--store takes https://HOST or https://HOST/PATH, and the key comes from LANGGRAPH_API_KEY",
        )
    return f"{scheme}://{host.lower()}{slash}{path}".rstrip("/")


def _sqlite_path(text: str, rest: str) -> str:
    """Returns the path in `sqlite:///relative` or `sqlite:////absolute` (SQLAlchemy's form)."""
    path = rest.partition("?")[0]
    if path in ("", "/", "/:memory:"):
        raise _no_file(text)
    if not path.startswith("/"):
        raise StoreError(f"{text} names a host, and a SQLite file has none", hint=f"--store sqlite:///{path}")
    return path[1:]


def _no_file(text: str) -> StoreError:
    return StoreError(
        f"{text} is a database inside one process: there is no file to read", hint=f"--store takes {FORMS}"
    )
