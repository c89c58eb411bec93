"""The environment variables that the process of an experiment starts with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from agentctl.sandbox.environment import NEVER, UNTRACED

_NEEDED: Final = frozenset(
    {
        "PATH", "LANG", "LANGUAGE", "TZ", "TZDIR", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR",
        "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        "LANGGRAPH_STRICT_MSGPACK",
    }
)  # fmt: skip
"""What Python, locales, certificates and the terminal's width need."""

_NEEDED_PREFIXES: Final = ("LC_", "PYTHON")


def reduced(environ: Mapping[str, str], *, allow: Collection[str], given: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a child: what Python needs, what is allowed by name, what is given, and no more.

    Args:
        environ: The environment to take from.
        allow: Names that pass as well.
        given: Variables with their values; they come before what is in `environ`.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if name in _NEEDED or name.startswith(_NEEDED_PREFIXES) or name in allow
    }
    return {name: value for name, value in {**passed, **UNTRACED, **given}.items() if name != NEVER}
