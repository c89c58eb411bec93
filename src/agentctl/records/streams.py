"""What a running graph tells on the way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

StreamMode = Literal["updates", "values", "messages", "custom", "debug"]

STREAM_MODES: Final[tuple[StreamMode, ...]] = ("updates", "values", "messages", "custom", "debug")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a run, told as it happens.

    Attributes:
        mode: What kind it is.
        at: When it was told, UTC.
        ns: Namespace of the graph that tells it, '' for the root.
        node: Node path (`verify_income|fetch_statements`); of an event of a whole graph the path of that graph, '' for
            the root.
        data: Inert. `updates`: the node's update, or `{"__interrupt__": [{"id", "value"}]}` where it asks. `values`:
            the state. `messages`: the message, or a piece of one. `custom`: what the application wrote. `debug`:
            `{"type", "step", "payload"}`.
        piece: Of a piece of a message, the id of the message; '' for a whole one and for other modes.
        is_last: Whether no piece of the same message follows.
    """

    mode: StreamMode
    at: datetime
    ns: str
    node: str
    data: object
    piece: str = ""
    is_last: bool = True
