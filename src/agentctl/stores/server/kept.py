"""What is kept of the last states that were read whole, up to a number of bytes: commands look at a state twice."""

from __future__ import annotations

from typing import Final

from agentctl.stores.server.states import State

_MAX_BYTES: Final = 8 * 1024 * 1024

Place = tuple[str, str, str]
"""Thread, namespace and checkpoint id."""


class LastStates:
    """The last whole states by place, the oldest given up first.

    Args:
        max_bytes: How many bytes their values may have together.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._states: dict[Place, State] = {}
        self._n_bytes = 0

    def get(self, place: Place) -> State | None:
        """Returns a state that is still kept, with all of its values."""
        return self._states.get(place)

    def put(self, state: State) -> None:
        """Keeps a state that was read with all of its values."""
        place = (state.row.thread, state.row.ns, state.row.id)
        if place in self._states:
            return
        self._states[place] = state
        self._n_bytes += _size(state)
        while self._n_bytes > self._max_bytes:
            self._n_bytes -= _size(self._states.pop(next(iter(self._states))))


def _size(state: State) -> int:
    return sum(len(value.data) for value in state.values.values())
