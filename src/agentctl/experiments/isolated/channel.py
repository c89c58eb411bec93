"""Messages between two processes: a length, then as many bytes."""

from __future__ import annotations

import socket
import struct
import threading

from agentctl.experiments.isolated.wire import MAX_FRAME_BYTES, Forged

_LENGTH = struct.Struct("!Q")
_PART_BYTES = 1024 * 1024


class Channel:
    """One end of a pair of sockets. Whole messages are sent, by one thread at a time.

    Args:
        end: The socket.
        max_bytes: The largest message that is taken.
    """

    def __init__(self, end: socket.socket, *, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._end = end
        self._max_bytes = max_bytes
        self._sending = threading.Lock()

    def send(self, data: bytes) -> None:
        """Sends one message.

        Raises:
            OSError: the other side is gone.
        """
        with self._sending:
            self._end.sendall(_LENGTH.pack(len(data)))
            self._end.sendall(data)

    def receive(self) -> bytes | None:
        """Returns the next message, None where the other side has ended.

        Raises:
            Forged: it is larger than is taken, or cut off.
            TimeoutError: none came in the time of `settimeout`.
        """
        head = self._exactly(_LENGTH.size)
        if not head:
            return None
        n_bytes = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else self._max_bytes + 1
        if n_bytes > self._max_bytes:
            raise Forged(f"a message of {n_bytes} bytes, or one that is cut off: {self._max_bytes} are taken")
        data = self._exactly(n_bytes)
        if len(data) != n_bytes:
            raise Forged("a message that is cut off")
        return data

    def wait_at_most(self, timeout_s: float | None) -> None:
        """Lets `receive` wait for this long between two parts of a message; None is for ever."""
        self._end.settimeout(timeout_s)

    def close(self) -> None:
        """Closes this end."""
        self._end.close()

    def _exactly(self, n_bytes: int) -> bytes:
        """Returns as many bytes, or fewer where the other side ended before."""
        data = bytearray()
        while len(data) < n_bytes:
            try:
                part = self._end.recv(min(n_bytes - len(data), _PART_BYTES))
            except ConnectionResetError:
                part = b""
            if not part:
                break
            data += part
        return bytes(data)
