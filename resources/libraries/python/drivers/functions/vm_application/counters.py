"""Counters of programs in guests, read by questions to the guest's init."""

from collections.abc import Callable
from typing import Protocol

from resources.libraries.python.dialogue import record_of
from resources.libraries.python.drivers.functions.monitor import control
from resources.libraries.python.drivers.functions.nginx import program as nginx
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.counters import Processed

PACKETS, CONTROL, DATAGRAMS = "packets", "control", "datagrams"
"""Questions that the guest's init answers. The lines to a control socket follow `CONTROL` and are separated by tabs."""

Ask = Callable[[str], str]
"""Sends a question to one guest and returns its answer."""


class Counts(Protocol):
    """The counters of the program in one guest."""

    merged: int
    """Packets that the program may have seen as one."""

    def read(self, ask: Ask) -> tuple[Processed, int]:
        """What the program has done since it was started, and the packets that came for it.

        Raises:
            CsitError: The program has ended, or the guest does not answer.
            ValueError: The answer has no counters.
        """


class PacketSockets:
    """Fulfils `Counts` by the packet sockets of a program. Reading sets their counters to zero, so they are added up.

    Suricata reads them too, each second: what it has taken is asked by its control socket.
    """

    merged = 64
    """Segments of a TCP connection that a kernel merges as they come in, up to 64 KiB."""

    def __init__(self, interface: str | None = None) -> None:
        """Prepare.

        Args:
            interface: At which Suricata counts by itself; None for other programs.
        """
        self._interface = interface
        self._read = Processed(0, 0)

    def read(self, ask: Ask) -> tuple[Processed, int]:
        packets, dropped = map(int, ask(PACKETS).split())
        self._read = Processed(self._read.packets + packets - dropped, (self._read.dropped or 0) + dropped)
        taken = self._taken(ask, self._interface) if self._interface is not None else Processed(0, 0)
        done = Processed(self._read.packets + taken.packets, (self._read.dropped or 0) + (taken.dropped or 0))
        return done, done.packets + (done.dropped or 0)

    @staticmethod
    def _taken(ask: Ask, interface: str) -> Processed:
        lines = (control.GREETING, control.counters_of(interface))
        answers = ask(f"{CONTROL} " + "\t".join(lines)).splitlines()
        messages = [control.accepted(line, record_of(answer)) for line, answer in zip(lines, answers, strict=True)]
        return control.counted(messages[-1], interface)


class Datagrams:
    """Fulfils `Counts` for nginx, by the guest's counters of UDP."""

    merged = 1

    def read(self, ask: Ask) -> tuple[Processed, int]:
        try:
            return nginx.counted(ask(DATAGRAMS))
        except KeyError as error:
            raise CsitError(f"the guest's kernel has no counter {error} of UDP") from error
