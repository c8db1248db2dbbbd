"""NumberedArrivals of numbered frames, counted by the XDP program of `receiver.bpf.c` on the port where they arrive."""

import os
import socket
from contextlib import ExitStack

import numpy as np

from resources.libraries.python.drivers.generators.builtin import kernel
from resources.libraries.python.drivers.generators.losses import NumberedArrivals
from resources.libraries.python.drivers.generators.xdp.bpf import RECEIVER, XdpProgram
from resources.libraries.python.drivers.generators.xdp.sender import Opened
from resources.libraries.python.errors import Unsupported

NUMBERS = 64
"""Of a word."""
MOST_NUMBERS = 1 << 28
"""Maximum number of packets of a flow: 64 MB."""
MOST_LATE = 1 << 18
"""Frames out of order of which the order is kept, of a flow: 2 MB."""
WORD = np.dtype([("bits", "<u8"), ("sent_tai_ns", "<u8")])
LATE = np.dtype([("number", "=u4"), ("order", "=u4")])
STATE = np.dtype(
    [
        ("arrived", "=u8"),  # duplicates not counted
        ("duplicates", "=u8"),
        ("late", "=u8"),
        ("next", "=u8"),
        ("queue", "=u8"),  # receive queue of the first frame, plus one
        ("elsewhere", "=u8"),  # frames of other receive queues
        ("beyond", "=u8"),
    ]
)


class FlowReceiver:
    """Counts the numbered frames of one flow until it is closed."""

    def __init__(self, interface: str, numbers: int, opened: Opened | None = None) -> None:
        """Attach the program.

        Args:
            interface: Port where the frames arrive.
            numbers: Frames that will be sent.
            opened: What keeps a program attached to this port for the sake of sending.

        Raises:
            Unsupported: Too many frames, or the interface takes no XDP program.
        """
        if numbers > MOST_NUMBERS:
            raise Unsupported(f"{numbers} frames of a flow, and {MOST_NUMBERS} can be counted one by one")
        entries = {"words": numbers // NUMBERS + 1, "lates": max(1, min(numbers, MOST_LATE))}
        self._entries = entries
        with ExitStack() as stack:
            self._program = XdpProgram("csit_receiver", RECEIVER, entries)
            stack.callback(self._program.close)
            try:
                if opened is not None and opened.link is not None:
                    self._program.replace_at(opened.link)
                    stack.callback(opened.restore)
                else:
                    stack.callback(os.close, self._program.attach(socket.if_nametoindex(interface)))
            except OSError as error:
                raise Unsupported(f"{interface} takes no XDP program to count frames: {error.strerror}") from error
            self._stack = stack.pop_all()

    def collect(self, sent: int) -> NumberedArrivals:
        """Return what became of the frames so far.

        Args:
            sent: Frames that were sent.
        """
        state = np.frombuffer(bytes(self._program.memory), STATE, count=1)[0]
        words = np.frombuffer(self._program.arrays["words"], WORD, count=self._entries["words"]).copy()
        late = np.frombuffer(self._program.arrays["lates"], LATE, count=self._entries["lates"])
        late = late[: int(state["late"])].copy()
        bits = np.ascontiguousarray(words["bits"]).view(np.uint8)
        came = np.unpackbits(bits, bitorder="little").view(np.bool_)
        sent_ns = np.zeros(len(came), dtype=np.int64)
        seen = np.flatnonzero(words["sent_tai_ns"])
        stamps = words["sent_tai_ns"][seen].astype(np.int64)
        low = stamps & (NUMBERS - 1)
        sent_ns[seen * NUMBERS + low] = stamps - low - kernel.tai_offset_ns()
        return NumberedArrivals(
            came=came[:sent],
            sent_ns=sent_ns[:sent],
            duplicates=int(state["duplicates"]),
            late_numbers=late["number"].astype(np.int64),
            late_orders=late["order"].astype(np.int64),
            late=int(state["late"]),
            elsewhere=int(state["elsewhere"]),
        )

    def close(self) -> None:
        """Detach the program."""
        self._stack.close()
