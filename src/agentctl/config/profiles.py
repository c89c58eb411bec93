"""Profiles: named stores and what may be done with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from agentctl.config.origins import DEFAULT, Origin
from agentctl.config.places import check_placeholders, literal_password
from agentctl.config.yamlfile import Section
from agentctl.errors import ConfigError

Access = Literal["read", "write"]
Ticket = Literal["required", "optional"]
Mask = Literal["always", "never"]

ACCESSES: tuple[Access, ...] = ("read", "write")

DEBUG = "debug"
"""Name of the built-in profile that experiments run in."""

_KEYS = frozenset({"store", "access", "default", "schema", "ticket", "audit", "mask", "protected", "retention"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")
_RETENTION = re.compile(r"[1-9]\d*[hdw]")


ALL_THREADS = "*"


@dataclass(frozen=True, slots=True)
class AuditRule:
    """Reads and writes of a profile are logged under its name; with `ticket` each needs a ticket or a reason."""

    profile: str
    ticket: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """A named store as the file has it.

    Attributes:
        name: What stands before `::`.
        store: Store text, `${NAME}` not yet filled in; None only for a `debug` that keeps its built-in store.
        access: `read` profiles are never written.
        default: Whether targets without a profile are here.
        schema: Postgres schema of the tables.
        ticket: Whether a read needs a ticket or a reason.
        audit: Whether reads and writes are logged; where a ticket is required they are in any case.
        mask: Whether copies out of it are always masked.
        protected: Patterns of thread ids that are kept from deletion; `*` for all.
        retention: How long threads are kept (`90d`), or None.
        origin: The place in the file.
    """

    name: str
    store: str | None
    access: Access = "read"
    default: bool = False
    schema: str | None = None
    ticket: Ticket = "optional"
    audit: bool = False
    mask: Mask = "never"
    protected: tuple[str, ...] = ()
    retention: str | None = None
    origin: Origin = DEFAULT

    @property
    def audit_rule(self) -> AuditRule | None:
        """What is asked of a read or write, None for nothing."""
        required = self.ticket == "required"
        return AuditRule(self.name, required) if required or self.audit else None


def read_profiles(section: Section) -> dict[str, Profile]:
    """Returns the profiles of `profiles:` in the order of the file, the built-in `debug` last unless it is there.

    Raises:
        ConfigError: an unknown key, a bad value, a literal password, two defaults.
    """
    profiles = {name: _profile(name, entry) for name, entry in section.sections().items()}
    defaults = [profile for profile in profiles.values() if profile.default]
    if len(defaults) > 1:
        names = " and ".join(profile.name for profile in defaults)
        raise ConfigError(f"{defaults[1].origin.where}: {names} are both marked default", hint="mark one")
    profiles.setdefault(DEBUG, Profile(DEBUG, None, access="write"))
    return profiles


def _profile(name: str, section: Section) -> Profile:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{section.where()}: {name!r} cannot name a profile", hint="names are letters, digits, '_', '-' and '.'"
        )
    section.only(_KEYS)
    retention = section.text("retention")
    if retention is not None and not _RETENTION.fullmatch(retention):
        raise section.error("retention", "must be an age", hint="such as 12h, 90d or 4w")
    built_in: Access = "write" if name == DEBUG else "read"
    access = section.choice("access", ACCESSES, built_in)
    if name == DEBUG and access == "read":
        raise section.error("access", "must be write: experiments run there")
    ticket: Ticket = section.choice("ticket", ("required", "optional"), "optional")
    if name == DEBUG and (ticket == "required" or section.flag("audit")):
        key = "ticket" if ticket == "required" else "audit"
        raise section.error(key, "is for stores of others: the debug store is your own")
    store = store_text(section, "store")
    if store is None and name != DEBUG:
        raise ConfigError(f"{section.where()}: profile {name} has no store", hint="store: postgresql://${USER}@host/db")
    return Profile(
        name,
        store,
        access=access,
        default=section.flag("default"),
        schema=section.text("schema"),
        ticket=ticket,
        audit=section.flag("audit"),
        mask=section.choice("mask", ("always", "never"), "never"),
        protected=_protected(section),
        retention=retention,
        origin=section.origin("store") if store else section.origin(),
    )


def _protected(section: Section) -> tuple[str, ...]:
    """Returns the patterns of `protected`: one or several, or `true` for every thread."""
    if isinstance(section.data.get("protected"), bool):
        return (ALL_THREADS,) if section.flag("protected") else ()
    return section.texts("protected")


def store_text(section: Section, key: str) -> str | None:
    """Returns a store text as written, its secrets checked to be `${NAME}` only.

    Raises:
        ConfigError: a password stands in the file.
    """
    text = section.text(key)
    if text is None:
        return None
    if literal_password(text):
        raise section.error(
            key, "holds a password", hint="put it into a variable: postgresql://USER:${DB_PASSWORD}@HOST/DATABASE"
        )
    check_placeholders(text, section.where(key))
    return text
