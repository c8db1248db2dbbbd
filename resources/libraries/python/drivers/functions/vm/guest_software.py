"""Software inside guests that makes them network functions; all else about a guest is the same."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from resources.libraries.python.drivers.functions.vm.guest import Guest
from resources.libraries.python.drivers.functions.vm.image import Image
from resources.libraries.python.drivers.functions.vm.init import command_line
from resources.libraries.python.drivers.functions.vm.qemu import CPU_MODEL
from resources.libraries.python.model.measurements.counters import InterfaceCounters, ProcessedPackets
from resources.libraries.python.model.plan import NfPlan, Plan, Port, TapPlan


def cards(function: NfPlan | TapPlan) -> tuple[tuple[str, str], ...]:
    """Network cards of an NF's guest: name and MAC of each, from left to right. A passive NF has one."""
    if isinstance(function, TapPlan):
        return ((function.interface, function.mac),)
    return tuple((side.name, side.mac) for side in (function.left, function.right))


class GuestSoftware(Protocol):
    """Software inside all guests of a driver."""

    waits: bool
    """Whether guests wait for interrupts: QEMU's main thread, which brings them, is then a data thread."""

    def cpu_model(self, name: str) -> str:
        """Return the CPU model of the guest of an NF in emulation."""

    def memory_mb(self, name: str) -> int:
        """Return the memory of the guest of an NF whose limits do not say it."""

    def initramfs(self, name: str, base: Image, cache: Path) -> Path:
        """Initial file system of an NF's guest: the image's own, or one with more in it, kept in the cache."""

    def cpus(self, name: str) -> tuple[int, ...]:
        """The CPU of each vCPU of an NF."""

    def command_line(self, function: NfPlan | TapPlan, mtu: int) -> str:
        """Return the command line of the guest's kernel."""

    def arguments(self, function: NfPlan | TapPlan, folder: Path) -> tuple[str, ...]:
        """Further ones of QEMU, after what they need is made in a folder."""

    def configure(self, guests: Mapping[str, Guest], *, emulator: bool) -> None:
        """Make guests that are up NFs, and give their threads priorities.

        `guests`: By NF.
        `emulator`: Whether QEMU's main threads are data threads.

        Raises:
            CsitError: One refuses, or has ended.
        """

    def receives(self, port: Port) -> Sequence[int]:
        """Number of the vCPU that receives from each queue of a port; fewer where nothing does."""

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Return the counters of interfaces that only the guests see."""

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """What NFs have done that do not just forward, by name."""

    def facts(self) -> Mapping[str, str]:
        """About what runs in them."""

    def problems(self, name: str) -> Sequence[str]:
        """Faults inside a running guest."""

    def stop(self) -> None:
        """Release all guests; the driver ends them."""


class Router:
    """Implements `GuestSoftware`: the guest's kernel routes, configured by its command line. A vCPU per data thread."""

    waits = True

    def __init__(self, plan: Plan, memory_mb: int) -> None:
        """Prepare.

        `memory_mb`: of each guest.
        """
        self._plan = plan
        self._memory_mb = memory_mb

    def cpu_model(self, name: str) -> str:
        """One with few features, which are the fastest to emulate."""
        del name
        return CPU_MODEL

    def memory_mb(self, name: str) -> int:
        """The same for all."""
        del name
        return self._memory_mb

    def initramfs(self, name: str, base: Image, cache: Path) -> Path:
        """The image's own."""
        del name, cache
        return base.initramfs

    def cpus(self, name: str) -> tuple[int, ...]:
        """Those of its data threads."""
        return self._plan.cores.cpus(name)

    def command_line(self, function: NfPlan | TapPlan, mtu: int) -> str:
        """Has addresses, routes and neighbours."""
        threads = {port.interface: port.queues for port in self._plan.ports(function.name)}
        return command_line(function, mtu, [threads[name] for name, _ in cards(function)])

    def arguments(self, function: NfPlan | TapPlan, folder: Path) -> tuple[str, ...]:
        del function, folder
        return ()

    def configure(self, guests: Mapping[str, Guest], *, emulator: bool) -> None:
        """They are routers when they are up. Their vCPUs rest when there is no packet, so they get real time.

        Not where vCPUs of a guest share a CPU: one that waits for another in real time would keep it from running.
        """
        for name, guest in guests.items():
            cpus = self.cpus(name)
            if len(set(cpus)) < len(cpus):
                guest.favour(range(len(cpus)), emulator=emulator)
            else:
                guest.make_realtime(emulator=emulator, rests=self.rests(name))

    def rests(self, name: str) -> bool:
        """Whether a guest does nothing while there is no packet."""
        del name
        return True

    def receives(self, port: Port) -> Sequence[int]:
        """The vCPUs of the port's data threads."""
        return port.queues

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """None: unknown outside of the guest."""
        return {}

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """None: they forward."""
        return {}

    def facts(self) -> Mapping[str, str]:
        return {}

    def problems(self, name: str) -> Sequence[str]:
        """None that are known outside of the guest."""
        del name
        return ()

    def stop(self) -> None:
        """Nothing is held."""
