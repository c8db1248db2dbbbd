"""Counters of the generator's ports, read each second from the first packet on."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event, Thread

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.counters import InterfaceCounters

_FIRST_LOOK_S = 0.01
_SECOND_S = 1.0
Counters = Mapping[str, InterfaceCounters]


@dataclass(frozen=True, slots=True)
class PortReading:
    """Counters of all ports at one time."""

    clock_s: float
    """Seconds of the day, local time: as D-ITG's logs have it."""
    counters: Counters


class Watch:
    """Reads in a thread of its own, from `start` to `stop`."""

    def __init__(self, read: Callable[[], Counters], moving: Callable[[Counters], bool]) -> None:
        """Prepare.

        Args:
            read: Gives the counters.
            moving: Returns whether sending has begun.
        """
        self._read = read
        self._moving = moving
        self._ended = Event()
        self._thread = Thread(target=self._watch, name="counters of the generator", daemon=True)
        self._readings: list[PortReading] = []
        self._error: CsitError | None = None

    def start(self) -> None:
        """Begin to look for the first packet."""
        self._thread.start()

    def stop(self) -> list[PortReading]:
        """Readings from the first packet on, each a second after the one before; none where no packet was sent.

        Raises:
            CsitError: Counters could not be read.
        """
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._readings

    def _watch(self) -> None:
        try:
            while not self._moving(self._read()):
                if self._ended.wait(_FIRST_LOOK_S):
                    return
            due = time.monotonic()
            while True:
                self._readings.append(PortReading(seconds_of_day(), self._read()))
                due += _SECOND_S
                if self._ended.wait(max(0.0, due - time.monotonic())):
                    return
        except CsitError as error:
            self._error = error


def seconds_of_day() -> float:
    """Now, in local time."""
    now = time.time()
    local = time.localtime(now)
    return local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec + now % 1
