"""Applications of Linux guests: what runs besides routing, as in a network namespace, and how it is counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from resources.libraries.python import driver_registry
from resources.libraries.python.dialogue import record_of
from resources.libraries.python.drivers.functions.monitor import suricata
from resources.libraries.python.drivers.functions.namespace_functions import MERGED
from resources.libraries.python.drivers.host.sockets.socket_tables import socket_packets
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.plan import NfPlan, TapPlan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol as LoadProtocol
from resources.libraries.python.model.testbed.nodes import DutNode

PLACE = Path("/tmp")  # noqa: S108 - in the guest
"""The folder of the program and its files in the guest."""


PACKETS, CONTROL, DATAGRAMS = "packets", "control", "datagrams"
"""Questions that the guest's init answers. The lines to a control socket follow `CONTROL` and are separated by tabs."""

Ask = Callable[[str], str]
"""Sends a question to one guest and returns its answer."""


class Counts(Protocol):
    """The counters of the program in one guest."""

    merged: int
    """Packets that the program may have seen as one."""

    def read(self, ask: Ask) -> tuple[ProcessedPackets, int]:
        """Work of the program since it was started, and the packets that came for it.

        Raises:
            CsitError: The program has ended, or the guest does not answer.
            ValueError: The answer has no counters.
        """


class PacketSockets:
    """Fulfils `Counts` by the packet sockets of a program. Reading sets their counters to zero, so they are added up.

    Suricata reads them too, each second: what it has taken is asked by its control socket.

    `interface`: At which Suricata counts by itself; None for other programs.
    """

    merged = MERGED

    def __init__(self, interface: str | None = None) -> None:
        self._interface = interface
        self._read = ProcessedPackets(0, 0)

    def read(self, ask: Ask) -> tuple[ProcessedPackets, int]:
        packets, dropped = map(int, ask(PACKETS).split())
        self._read += ProcessedPackets(packets - dropped, dropped)
        done = self._read if self._interface is None else self._read + self._taken(ask, self._interface)
        return done, done.packets + (done.dropped or 0)

    @staticmethod
    def _taken(ask: Ask, interface: str) -> ProcessedPackets:
        lines = (suricata.GREETING, suricata.counters_of(interface))
        answers = ask(f"{CONTROL} " + "\t".join(lines)).splitlines()
        messages = [suricata.accepted(line, record_of(answer)) for line, answer in zip(lines, answers, strict=True)]
        return suricata.counted(messages[-1], interface)


class Datagrams:
    """Fulfils `Counts` for programs that take datagrams in, by the guest's counters of UDP."""

    merged = 1

    def read(self, ask: Ask) -> tuple[ProcessedPackets, int]:
        return socket_packets(ask(DATAGRAMS), LoadProtocol.UDP)


@dataclass(frozen=True, slots=True)
class Application:
    """Application of one guest: rules of its kernel, or a program beside it."""

    about: str
    """For messages."""
    version: Callable[[], str]
    """Version of the program that counts, with its name."""
    rules: str = ""
    """Rules of nftables, in force before its ports are up."""
    counter: str = ""
    """Counter of those rules that counts every packet."""
    argv: tuple[str, ...] = ()
    """Command line of the program, which is up before the guest is ready."""
    prints: bool = False
    """Whether it prints what it makes on standard output, beside what it has to say."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that the program reads from `PLACE`: texts by name."""
    more: tuple[Path, ...] = ()
    """Further files of this machine that the program loads."""
    up: str = ""
    """A shell's test whether the program is up, given its process id."""
    then: str = ""
    """Shell commands for the moment in which it is."""
    needs: tuple[str, ...] = ()
    """Features of a CPU in emulation, in QEMU's words."""
    counts: Callable[[], Counts] = PacketSockets
    """Makes what reads the program's counters."""


def application(function: NfPlan | TapPlan, node: DutNode, vcpus: int = 1) -> Application | None:
    """Return the application of an NF's guest; None where the guest only routes.

    Raises:
        Unsupported: A passive NF is of a kind that packets have to go through.
    """
    guest = None if function.kind.in_guest is None else function.kind.in_guest.driver.guest
    if guest is None:
        return None
    if isinstance(function, TapPlan) and not function.kind.driver.passive:
        raise Unsupported(f"{function.name}: an NF of kind {function.kind} cannot be passive")
    return cast(Application, driver_registry.load(guest.application)(function, node, vcpus))


def needed(kind: NfKind) -> tuple[str, ...]:
    """Names of the programs that a guest of a kind gets from this machine."""
    guest = None if kind.in_guest is None else kind.in_guest.driver.guest
    return () if guest is None else tuple(program.name for program in guest.programs)
