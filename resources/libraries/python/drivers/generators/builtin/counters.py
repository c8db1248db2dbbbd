"""Packets per interface, out of the kernel, and the wait until no more come."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resources.libraries.python.errors import CsitError

_POLL_S = 0.001
_QUIET_S = 0.025
"""A system that is late by more would have its packets counted as lost here and as surplus in the next trial. Emulated
machines and polling switches on a shared core are late by 10 ms and more; only trials with loss wait for this."""
_MAX_QUIET_S = 0.4
_MIN_QUIET_S = 0.005
_KNOWN_TRIALS = 4
_PAUSES = 5
"""A system that has paused for no longer than a fifth of a time in `_KNOWN_TRIALS` trials or more counts as done after
that time."""
_STRAY = 2
"""Packets beyond those sent that are not taken as late: a system under test sends some itself, such as ARP."""
_NONE_YET_S = 1.0
"""The first packets through a system that is just deployed, or emulated, have come 70 ms late and later."""
_SETTLE_S = 2.0
_RX_PACKETS, _TX_DROPPED = 1, 11


def interface_numbers(text: str) -> dict[str, list[str]]:
    """The columns of /proc/net/dev by interface."""
    rows = (line.rpartition(":") for line in text.splitlines()[2:])
    return {name.strip(): numbers.split() for name, _, numbers in rows}


class Counters:
    """Counters of some interfaces of a network namespace."""

    def __init__(
        self, receiving: Sequence[str], sending: Sequence[str] = (), table: str = "/proc/self/net/dev"
    ) -> None:
        """Open them.

        `receiving`: Interfaces whose received packets are wanted.
        `sending`: Interfaces whose packets that a full queue on the far side dropped are wanted.
        `table`: By default one that follows the namespace of the process, unlike a mounted sysfs.
        """
        self._file = os.open(table, os.O_RDONLY)
        self._receiving = tuple(receiving)
        self._sending = tuple(sending)

    def received(self) -> tuple[int, ...]:
        """Packets received so far, in the order of the interfaces.

        Raises:
            CsitError: an interface is gone.
        """
        return self._column(self._receiving, _RX_PACKETS)

    def refused(self) -> tuple[int, ...]:
        """Packets handed over and dropped at once so far, in the order of the interfaces.

        Raises:
            CsitError: an interface is gone.
        """
        return self._column(self._sending, _TX_DROPPED)

    def rows(self) -> dict[str, list[str]]:
        """All columns of /proc/net/dev by interface."""
        parts = []
        offset = 0
        while part := os.pread(self._file, 1 << 16, offset):
            parts.append(part)
            offset += len(part)
        return interface_numbers(b"".join(parts).decode())

    def _column(self, interfaces: Sequence[str], column: int) -> tuple[int, ...]:
        rows = self.rows()
        try:
            return tuple(int(rows[interface][column]) for interface in interfaces)
        except KeyError as error:
            raise CsitError(f"generator port {error.args[0]} is gone") from error

    def close(self) -> None:
        os.close(self._file)


class QuietTime:
    """How long no packet must arrive for a trial to be over: learned from the trials before.

    At first 25 ms; 5 ms from the fifth trial on where packets that were on their way at the end of sending have never
    paused for more than 1 ms. A system that pauses for 5 ms for the first time at the end of a trial has some of its
    packets counted as lost; in the middle of that trial such a pause would have overrun its queues. It doubles whenever
    packets arrive after it, and is not shortened again: a late packet is counted as lost in its own trial and received
    in the next one, where it hides a loss.
    """

    def __init__(self) -> None:
        self._grown_s = _QUIET_S
        self._trials = 0
        self._longest_s = 0.0
        self._last: tuple[int, ...] = ()

    @property
    def quiet_s(self) -> float:
        """Seconds without a packet that end a trial."""
        if self._trials < _KNOWN_TRIALS or self._grown_s > _QUIET_S:
            return self._grown_s
        return min(max(_MIN_QUIET_S, _PAUSES * self._longest_s), _QUIET_S)

    def begin(self, before: Sequence[int]) -> bool:
        """Take the counters before a trial; return whether packets have arrived since the previous one ended."""
        late = any(now - then > _STRAY for now, then in zip(before, self._last, strict=False))
        self._grow(late)
        return late

    def end(self, received: Sequence[int], sent: Sequence[int], settled: "FinalCounters") -> None:
        """Take the packets received and sent in a trial, and how it ended."""
        self._grow(any(have - most > _STRAY for have, most in zip(received, sent, strict=True)))
        self._last = settled.counts
        self._trials += 1
        self._longest_s = max(self._longest_s, settled.longest_pause_s)

    def _grow(self, late: bool) -> None:
        if late:
            self._grown_s = min(2 * self._grown_s, _MAX_QUIET_S)


@dataclass(frozen=True, slots=True)
class FinalCounters:
    """Counters at the end of a trial."""

    counts: tuple[int, ...]
    stopped: bool
    longest_pause_s: float
    """The longest time without a packet before the last one arrived; 0 where all were there at once."""


def settle(
    read: Callable[[], tuple[int, ...]],
    complete: tuple[int, ...] | None,
    before: tuple[int, ...] | None = None,
    quiet_s: float = _QUIET_S,
) -> FinalCounters:
    """Read counters until they are complete, or have not moved for some time, or 2 s are over.

    While a counter has not moved at all, what is on its way may just be late, and 1 s is waited for it.

    `complete`: What they are when nothing was lost; None when that is not known.
    `before`: What they were before anything was sent, to know those that have not moved.
    `quiet_s`: For how long they do not move, in seconds.
    """
    started = changed = time.monotonic()
    longest_s = 0.0
    last = read()
    while True:
        if complete is not None and all(have >= want for have, want in zip(last, complete, strict=True)):
            return FinalCounters(last, True, longest_s)
        now = time.monotonic()
        wanted = zip(last, before or (), complete or (), strict=False)
        none_yet = any(have == first < want for have, first, want in wanted)
        if now - changed >= (_NONE_YET_S if none_yet else quiet_s):
            return FinalCounters(last, True, longest_s)
        if now - started >= _SETTLE_S:
            return FinalCounters(last, False, longest_s)
        time.sleep(_POLL_S)
        seen = read()
        if seen != last:
            now = time.monotonic()
            longest_s = max(longest_s, now - changed)
            changed, last = now, seen
