"""Which store a target is in, decided by flag, environment, file and default, in that order."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from agentctl.config.origins import DEFAULT, Origin
from agentctl.config.places import hide_password
from agentctl.config.profiles import Access, AuditRule, Mask
from agentctl.errors import Refused


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """A store that was decided on, not yet opened.

    Attributes:
        url: Store text with variables filled in and paths absolute; it may hold a password.
        profile: The profile's name, or '' where the store was given by itself.
        access: `read` stores are never written.
        schema: Postgres schema of the tables, or None for the search path.
        origin: What decided it.
        mask: Whether copies out of it are always masked.
        protected: Patterns of thread ids that are kept from deletion.
        audit: What is asked of a read or write, None for nothing.
    """

    url: str
    profile: str = ""
    access: Access = "read"
    schema: str | None = None
    origin: Origin = DEFAULT
    mask: Mask = "never"
    protected: tuple[str, ...] = ()
    audit: AuditRule | None = None

    @property
    def shown(self) -> str:
        """The store as it may be printed and kept: passwords replaced."""
        return hide_password(self.url)

    def protects(self, thread: str) -> bool:
        """Returns whether a thread is kept from deletion. Patterns match whole ids, `*` and `?` as in a shell."""
        return any(fnmatchcase(thread, pattern) for pattern in self.protected)

    def __repr__(self) -> str:
        return f"StoreChoice({self.shown!r}, profile={self.profile!r}, access={self.access!r}, origin='{self.origin}')"


def is_masked_on_copy(choice: StoreChoice, asked: bool | None, *, unsaid: bool = False) -> bool:
    """Returns whether what is copied out of a store is masked.

    Args:
        choice: The store.
        asked: What `--mask` or `--no-mask` said, None where neither was given.
        unsaid: What holds then, unless the profile has `mask: always`.

    Raises:
        Refused: `--no-mask`, and the profile has `mask: always`.
    """
    if choice.mask != "always":
        return unsaid if asked is None else asked
    if asked is False:
        raise Refused(
            f"{choice.profile or choice.shown} has mask: always: nothing is copied out of it unmasked",
            hint="leave --no-mask out",
        )
    return True
