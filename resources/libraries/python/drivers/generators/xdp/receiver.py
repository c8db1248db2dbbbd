"""Arrivals of numbered frames, counted by the XDP program of `receiver.bpf.c` on the port where they arrive."""

import os
import socket
from contextlib import ExitStack

import numpy as np

from resources.libraries.python.drivers.generators.builtin import kernel
from resources.libraries.python.drivers.generators.losses import NumberedArrivals
from resources.libraries.python.drivers.generators.xdp.bpf import RECEIVER, XdpProgram
from resources.libraries.python.drivers.generators.xdp.sender import RedirectTarget
from resources.libraries.python.errors import Unsupported

NUMBERS = 64
"""Of a word."""
MAX_NUMBERS = 1 << 26
"""Maximum number of packets of all flows of a worker: 16 MB of maps, and some seconds and 1 GB to compute figures."""
MAX_LATE, MAX_LATE_IN_ALL = 1 << 18, 1 << 22
"""Frames out of order of which the order is kept, of a flow and of all flows of a worker: 2 and 32 MB."""
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
        ("foreign", "=u8"),  # frames of other flows or trials
        ("mark", "=u8"),  # of the frames of the flow in this trial, as in the frame
    ]
)


class FlowReceiver:
    """Counts the numbered frames of one flow until it is closed."""

    def __init__(
        self,
        interface: str,
        numbers: int,
        mark: int,
        opened: RedirectTarget | None = None,
        *,
        most_late: int = MAX_LATE,
    ) -> None:
        """Attach the program.

        `mark`: Of the frames, a number of 32 bits.
        `opened`: What keeps a program attached to this port for the sake of sending.
        `most_late`: Frames out of order of which the order is kept.

        Raises:
            Unsupported: The interface takes no XDP program.
        """
        entries = {"words": numbers // NUMBERS + 1, "lates": max(1, min(numbers, most_late))}
        self._entries = entries
        with ExitStack() as stack:
            self._program = XdpProgram("csit_receiver", RECEIVER, entries)
            stack.callback(self._program.close)
            np.frombuffer(self._program.memory, STATE, count=1)["mark"] = socket.htonl(mark)
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
        """Return what became of the frames so far."""
        state = np.frombuffer(bytes(self._program.memory), STATE, count=1)[0]
        words = np.frombuffer(self._program.arrays["words"], WORD, count=self._entries["words"]).copy()
        late = np.frombuffer(self._program.arrays["lates"], LATE, count=self._entries["lates"])
        late = late[: int(state["late"])].copy()
        bits = np.ascontiguousarray(words["bits"]).view(np.uint8)
        came = np.unpackbits(bits, bitorder="little").view(np.bool_)
        seen = np.flatnonzero(words["sent_tai_ns"] >= NUMBERS)  # less is the number of a frame without time stamp
        stamps = words["sent_tai_ns"][seen].astype(np.int64)
        low = stamps & (NUMBERS - 1)
        return NumberedArrivals(
            came=came[:sent],
            stamped=seen * NUMBERS + low,
            stamps_ns=stamps - low - kernel.tai_offset_ns(),
            duplicates=int(state["duplicates"]),
            late_numbers=late["number"].astype(np.int64),
            late_orders=late["order"].astype(np.int64),
            late=int(state["late"]),
            elsewhere=int(state["elsewhere"]),
            foreign=int(state["foreign"]),
        )

    def close(self) -> None:
        self._stack.close()


def most_late(numbers: int, flows: int) -> int:
    """Return of how many frames out of order of a flow the order is kept.

    `numbers`: frames of a flow that will be sent.

    Raises:
        Unsupported: Too many frames of all flows.
    """
    if numbers * flows > MAX_NUMBERS:
        raise Unsupported(
            f"{numbers * flows:,} packets in a trial, and {MAX_NUMBERS:,} can be counted one by one: make it "
            f"{numbers * flows / MAX_NUMBERS:.1f} times shorter"
        )
    return min(MAX_LATE, MAX_LATE_IN_ALL // flows)
