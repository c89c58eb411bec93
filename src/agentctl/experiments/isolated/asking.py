"""How a child asks its parent: one question at a time, whatever thread it comes from."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from typing import Any

from agentctl.experiments.isolated.channel import Channel
from agentctl.experiments.isolated.messages import Asked, Failed, Told, as_error, write_message


class Asking:
    """The child's side of the conversation.

    Args:
        channel: To the parent, whose answers are trusted.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._one_at_a_time = threading.Lock()
        self._waiting: deque[Told] = deque()

    def tell(self, message: Told) -> None:
        """Says something that has no answer."""
        self._channel.send(write_message(message))

    def later(self, message: Told) -> None:
        """Says something before the next question. It may be called at any time, also while another one is asked."""
        self._waiting.append(message)

    def ask(self, question: Asked) -> Any:
        """Returns the answer.

        Raises:
            AgentctlError: what the parent met while it looked.
            EOFError: the parent is gone.
        """
        with self._one_at_a_time:
            while self._waiting:
                self.tell(self._waiting.popleft())
            self._channel.send(write_message(question))
            answer = self.hear()
        if isinstance(answer, Failed):
            raise as_error(answer)
        return answer

    def hear(self) -> Any:
        """Returns the next thing that the parent says.

        Raises:
            EOFError: the parent is gone.
        """
        data = self._channel.receive()
        if data is None:
            raise EOFError("the command that this experiment belongs to has ended")
        return pickle.loads(data)
