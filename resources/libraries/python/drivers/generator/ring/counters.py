"""Received packets per interface, out of the kernel, and the wait until no more come."""

import os
import time
from collections.abc import Callable, Mapping, Sequence

from resources.libraries.python.errors import CsitError

_POLL_S = 0.001
_QUIET_S = 0.008
_SETTLE_S = 2.0


def received_packets(text: str) -> dict[str, int]:
    """`rx_packets` by interface, from the text of /proc/net/dev."""
    counts = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.rpartition(":")
        counts[name.strip()] = int(numbers.split()[1])
    return counts


class Counters:
    """The received packets of some interfaces of this process's network namespace."""

    def __init__(self, interfaces: Sequence[str]) -> None:
        # /proc/self/net follows the namespace of the process, unlike a mounted sysfs
        self._file = os.open("/proc/self/net/dev", os.O_RDONLY)
        self._interfaces = tuple(interfaces)

    def read(self) -> tuple[int, ...]:
        """Packets received so far, in the order of the interfaces.

        Raises:
            CsitError: an interface is gone.
        """
        parts = []
        offset = 0
        while part := os.pread(self._file, 1 << 16, offset):
            parts.append(part)
            offset += len(part)
        counts: Mapping[str, int] = received_packets(b"".join(parts).decode())
        try:
            return tuple(counts[interface] for interface in self._interfaces)
        except KeyError as error:
            raise CsitError(f"generator port {error.args[0]} is gone") from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def settle(read: Callable[[], tuple[int, ...]], complete: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Read counters until they are complete, or have not moved for 8 ms, or 2 s are over.

    Args:
        read: gives the counters.
        complete: what they are when nothing was lost.

    Returns:
        The counters, and whether they had stopped.
    """
    started = changed = time.monotonic()
    last = read()
    while True:
        if all(have >= want for have, want in zip(last, complete, strict=True)):
            return last, True
        now = time.monotonic()
        if now - changed >= _QUIET_S:
            return last, True
        if now - started >= _SETTLE_S:
            return last, False
        time.sleep(_POLL_S)
        seen = read()
        if seen != last:
            changed, last = time.monotonic(), seen
