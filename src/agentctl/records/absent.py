"""The mark for a value that is not there, where None would be a value."""

from __future__ import annotations

from typing import Final


class _Absent:
    """The value of a path that one side does not have."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
