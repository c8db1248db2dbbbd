"""A transport whose channels are closed in order.

Paramiko answers the end of a session in its own thread. What another thread is about to send on that channel may then
follow the answer, and OpenSSH cuts the whole connection off when it hears of a channel that it has closed. So whoever
sends on a channel holds its `order`, and the answer waits for that.
"""

import threading
from typing import Any

import paramiko
from paramiko.common import MSG_CHANNEL_CLOSE

_PATIENCE_S = 1.0
"""Nobody holds `order` for long: except while new session keys are made, for which this thread is needed."""


def _close_in_order(channel: Any, message: Any) -> None:  # noqa: ANN401 (paramiko has no types)
    order: threading.Lock | None = getattr(channel, "order", None)
    held = order is not None and order.acquire(timeout=_PATIENCE_S)
    try:
        paramiko.Channel._handle_close(channel, message)
    finally:
        if order is not None and held:
            order.release()


class OrderedTransport(paramiko.Transport):  # type: ignore[misc]
    """A transport for channels that several threads use."""

    _channel_handler_table = {**paramiko.Transport._channel_handler_table, MSG_CHANNEL_CLOSE: _close_in_order}  # noqa: RUF012 (as there)

    def open_ordered_session(self, timeout: float) -> Any:  # noqa: ANN401 (paramiko has no types)
        """A session channel with an `order`, to be held while something is sent on it.

        Args:
            timeout: Seconds.
        """
        channel = self.open_session(timeout=timeout)
        channel.order = threading.Lock()
        return channel
