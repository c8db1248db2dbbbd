"""Bases of NFs that are network namespaces, with or without a program in each."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.mixed_kinds import OneKind
from resources.libraries.python.drivers.host.links.routing import configure_routers, deliver_locally
from resources.libraries.python.drivers.host.ownership.preflight import missing
from resources.libraries.python.drivers.host.programs.disturbances import Steps, process_steps, refused
from resources.libraries.python.drivers.host.programs.program_output import path_of, version_of
from resources.libraries.python.drivers.host.sockets.socket_tables import (
    socket_counters,
    socket_packets,
    tcp_ports,
    udp_ports,
)
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters, ProcessedPackets
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan, TapPlan
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.nodes import DutNode

_READY_S = 15.0
MERGED = 64
"""Segments of a TCP connection that the kernel merges as they come in, up to 64 KiB, and that are counted as one."""
_TAKEN_IN = 0.9
"""Share of the packets received that must have gone through an NF's program, rules or tunnel."""
Nf = TypeVar("Nf", bound=NfPlan | TapPlan)


def passed_by(seen: int, of: int, *, merged: int = 1, few: int = 1000) -> bool:
    """Whether packets of a port did not go where its NF handles them.

    `merged`: segments of a TCP connection that the kernel merges into one as they come in.
    `few`: packets of the port that may be the system's own, or on their way.
    """
    return merged * seen < _TAKEN_IN * of - few


class NamespaceFunctions(OneKind, Generic[Nf]):
    """Affinity, counters and problems of the ports of NFs in network namespaces.

    `context`: The machine: its namespaces are there before `start`.
    `functions`: The NFs of this kind, of which one may have several pairs of ports.
    """

    _version = ""
    """Name and version of what handles packets, once they may come."""
    _does = ""
    """What it does with a packet, as a phrase of the facts."""

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[Nf]) -> None:
        self._node = node
        self._functions = tuple(functions)
        self._owners = tuple(dict.fromkeys(function.name for function in functions))
        self._fabric = context.fabric

    def affinity(self) -> Mapping[str, frozenset[int]]:
        return self._fabric.affinity(self._owners)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._fabric.counters(self._owners)

    def problems(self) -> tuple[str, ...]:
        """Ports that have lost their data thread or their carrier."""
        return self._fabric.problems(self._owners)

    def facts(self) -> Mapping[str, str]:
        """Version of what handles packets, and what it does with one; empty where the kernel just routes."""
        return {self._functions[0].kind: f"{self._version}, {self._does}"} if self._version else {}

    def _received(self, owner: str) -> int:
        return sum(port.rx_packets for port in self._fabric.counters([owner]).values())

    def _check_requirements(self) -> None:
        if lacks := tuple(missing(self._functions[0].kind.driver, self._node)):
            raise Unsupported("; ".join(map(str, lacks)))

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        """Refuse all events: kinds that declare some say what they consist of."""
        if target in self._owners:
            raise refused(event, f"an NF of kind {self._functions[0].kind}")
        return None

    def stop(self) -> None:
        """Call off an event: what is in the kernel ends with the namespaces, which `Fabric.stop` removes."""
        self.call_off()


class ProgramFunctions(NamespaceFunctions[Nf]):
    """NFs with a program each in their namespaces. Arguments are those of `NamespaceFunctions`."""

    _takes_turns = True
    """See `Companions`."""

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[Nf]) -> None:
        super().__init__(node, context, functions)
        self._companions = context.companions(functions[0].kind, takes_turns=self._takes_turns)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        """The program is what is hit."""
        if target not in self._owners:
            return None
        return process_steps(event, target, lambda: self._companions.processes_of(target))

    def problems(self) -> tuple[str, ...]:
        """Programs that have ended or moved, and ports that have lost their data thread or their carrier."""
        return (*self._companions.problems(), *super().problems())

    def stop(self) -> None:
        super().stop()
        self._companions.stop()


class DaemonFunctions(ProgramFunctions[Nf]):
    """NFs whose programs are started and awaited before packets come. Arguments are those of `NamespaceFunctions`."""

    _prints = False
    """Whether the program prints what it makes on standard output."""
    _version_argument = "--version"

    @abstractmethod
    def argv(self, function: Nf, folder: Path) -> list[str]:
        """Return the command line of an NF's program, whose files are in a folder of its own."""

    def version(self) -> str:
        """Return name and version of the program, the first one of the declaration.

        Raises:
            CsitError: It cannot be run.
        """
        return version_of(self._functions[0].kind.driver.programs[0].name, self._version_argument)

    @abstractmethod
    def not_ready(self, function: Nf) -> str:
        """Return what an NF's program lacks before packets may come; empty for nothing."""

    def deliver(self) -> None:
        """Let packets come, once all programs are ready: give inline NFs their routes."""
        configure_routers((each for each in self._functions if isinstance(each, NfPlan)), self._fabric)

    def start(self) -> None:
        """Start all programs, wait until each is ready, then let packets come.

        Raises:
            Unsupported: Something is missing on this machine.
            CsitError: A program has ended; the text has its last words.
            NotReady: One is not ready in time.
        """
        self._check_requirements()
        self._version = self.version()
        for function in self._functions:
            folder = self._companions.folder / function.name
            folder.mkdir()
            program, *arguments = self.argv(function, folder)
            self._companions.start(function.name, [path_of(program) or program, *arguments], prints=self._prints)
        for function in self._functions:
            self._companions.wait_for(function.name, "ready", partial(self.not_ready, function), _READY_S)
        self.deliver()


class SocketFunctions(DaemonFunctions[NfPlan]):
    """NFs whose programs take the load in by sockets of a protocol, UDP or TCP, and send it on.

    They listen at all addresses, on the ports of the plan's load. Arguments are those of `NamespaceFunctions`.
    """

    _protocol: Protocol
    _workers = False
    """Whether the program starts a process for each data CPU of its NF."""

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        super().__init__(node, context, functions)
        self._ports = context.plan.load_ports.get(self._protocol, ())
        self._cores = context.plan.cores

    def not_ready(self, function: NfPlan) -> str:
        """Return ports without a socket, or that workers are not there yet."""
        there = self._fabric.run_inside(function.name, udp_ports if self._protocol is Protocol.UDP else tcp_ports)
        if lacking := [port for port in self._ports if port not in there]:
            return f"no listener on {self._protocol} ports {lacking}"
        started, workers = self._companions.adopt_children(function.name), len(self._cores.cpus(function.name))
        return f"{started} of {workers} workers are there" if self._workers and started < workers else ""

    def deliver(self) -> None:
        """Take in what comes for the ports of the load, in either direction."""
        for function in self._functions:
            sides = function.left.name, function.right.name
            self._fabric.change(function.name, deliver_locally(sides, self._protocol, self._ports))
        super().deliver()

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Packets that the sockets of each NF sent, and of UDP those that came and were not sent on.

        Raises:
            CsitError: The kernel does not report it.
        """
        return {name: self._counted(name)[0] for name in self._owners}

    def _counted(self, name: str) -> tuple[ProcessedPackets, int]:
        """And all that came."""
        return socket_packets(self._fabric.run_inside(name, socket_counters), self._protocol)

    def problems(self) -> tuple[str, ...]:
        """Programs that have ended or moved, ports without thread or carrier, packets that passed a program by."""
        return super().problems() or tuple(self._passed_by())

    def _passed_by(self) -> Iterator[str]:
        for name in self._owners:
            received, (_, came) = self._received(name), self._counted(name)
            if passed_by(came, received, merged=MERGED if self._protocol is Protocol.TCP else 1):
                wanted = f"were {self._protocol} of the ports {', '.join(map(str, self._ports))}"
                yield f"{name} received {received:,} packets, and only {came:,} {wanted}"
