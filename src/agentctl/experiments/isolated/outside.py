"""What of the outside an experiment is given: the hosts that its parent's proxy serves, and variables of its parent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from agentctl.errors import UsageError
from agentctl.sandbox.isolation.confinement import Level
from agentctl.sandbox.isolation.hosts import HostPort
from agentctl.sandbox.providers import provider_of

LEVELS: Final[tuple[Level, ...]] = ("strict", "best", "off")
VARIABLE: Final = "AGENTCTL_ISOLATION"
"""The level where the command line gives none."""

BEST: Final = "--isolation best runs under what there is"
"""What to try where another level is not to be had."""

MODEL_VARIABLE: Final = "AGENTCTL_MODEL"
"""The `provider:model` of graphs that choose one by themselves; it names no secret."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """What a person chose.

    Attributes:
        level: `strict` runs under layers of the kernel alone, `best` under what there is, `off` in the command's own
            process.
        allow_hosts: Hosts that may be reached besides the provider of the model.
        allow_env: Variables of the command's environment that the experiment may see.
    """

    level: Level = "best"
    allow_hosts: tuple[HostPort, ...] = ()
    allow_env: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outside:
    """What an experiment is given: hosts, and names of variables."""

    hosts: frozenset[HostPort] = frozenset()
    variables: frozenset[str] = frozenset()


def parse_isolation(
    level: str | None, hosts: Collection[str], variables: Collection[str], environ: Mapping[str, str]
) -> Isolation:
    """Returns `--isolation`, `--allow-host` and `--allow-env` parsed.

    Raises:
        UsageError: one of them is of no such form.
    """
    text = level or environ.get(VARIABLE) or "best"
    chosen = next((known for known in LEVELS if known == text), None)
    if chosen is None:
        where = "--isolation" if level else VARIABLE
        raise UsageError(f"{where} takes {', '.join(LEVELS)}, not {text!r}", hint=BEST)
    for name in variables:
        if not name or "=" in name:
            raise UsageError(
                f"--allow-env takes the name of a variable, not {name!r}", hint="--env NAME=VALUE gives one"
            )
    return Isolation(chosen, tuple(HostPort.parse(host) for host in hosts), tuple(variables))


def outside_of(
    isolation: Isolation, model: str | None, environ: Mapping[str, str], given: Mapping[str, str]
) -> Outside:
    """Returns what a person allowed, and what the provider of the model needs.

    Args:
        isolation: What a person chose.
        model: `provider:model` of the graph, or None.
        environ: The command's environment.
        given: Values of `--env`; they come before the environment.
    """
    seen = {**environ, **given}
    provider = provider_of(model or seen.get(MODEL_VARIABLE))
    if provider is None:
        return Outside(frozenset(isolation.allow_hosts), frozenset((MODEL_VARIABLE, *isolation.allow_env)))
    bases = [seen[name] for name in provider.bases if seen.get(name)]
    hosts = [_host_of(base) for base in bases] or [HostPort.parse(provider.host)]
    return Outside(
        frozenset((*isolation.allow_hosts, *hosts)),
        frozenset((MODEL_VARIABLE, *isolation.allow_env, *provider.keys, *provider.bases)),
    )


def _host_of(base: str) -> HostPort:
    """Returns the host of a base URL, or of an address without a scheme.

    Raises:
        UsageError: it has none.
    """
    parts = urlsplit(base if "://" in base else f"http://{base}")
    default = 443 if parts.scheme == "https" else 80
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or base
    try:
        port = parts.port or default
    except ValueError:
        raise UsageError(f"this is no address of a model: {base!r}") from None
    return HostPort.parse(f"{host}:{port}")
