"""Software inside guests that makes them network functions; all else about a guest is the same."""

from collections.abc import Mapping, Sequence
from pathlib import Path

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


class GuestSoftware:
    """What makes the guests of a driver NFs: their kernels route, configured by their command lines.

    Each has a vCPU per data thread. Subclasses run more in them.

    `memory_mb`: of each guest.
    """

    waits = True
    """Whether guests wait for interrupts: QEMU's main thread, which brings them, is then a data thread."""

    def __init__(self, plan: Plan, memory_mb: int) -> None:
        self._plan = plan
        self._memory_mb = memory_mb

    def cpu_model(self, name: str) -> str:  # noqa: ARG002
        """CPU model of the guest of an NF in emulation; this one has few features, which are the fastest to emulate."""
        return CPU_MODEL

    def memory_mb(self, name: str) -> int:  # noqa: ARG002
        """Memory of the guest of an NF whose limits do not say it."""
        return self._memory_mb

    def initramfs(self, name: str, base: Image, cache: Path) -> Path:  # noqa: ARG002
        """Initial file system of an NF's guest: the image's own, or one with more in it, kept in the cache."""
        return base.initramfs

    def cpus(self, name: str) -> tuple[int, ...]:
        """The CPU of each vCPU of an NF."""
        return self._plan.cores.cpus(name)

    def command_line(self, function: NfPlan | TapPlan, mtu: int) -> str:
        """Return the command line of the guest's kernel, with addresses, routes and neighbours."""
        threads = {port.interface: port.queues for port in self._plan.ports(function.name)}
        return command_line(function, mtu, [threads[name] for name, _ in cards(function)])

    def arguments(self, function: NfPlan | TapPlan, folder: Path) -> tuple[str, ...]:  # noqa: ARG002
        """Further ones of QEMU, after what they need is made in a folder."""
        return ()

    def configure(self, guests: Mapping[str, Guest], *, emulator: bool) -> None:
        """Make guests that are up NFs, and give their threads priorities.

        Those that just route rest when there is no packet, so they get real time. Not where vCPUs of a guest share a
        CPU: one that waits for another in real time would keep it from running.

        `emulator`: Whether QEMU's main threads are data threads.

        Raises:
            CsitError: One refuses, or has ended.
        """
        for name, guest in guests.items():
            cpus = self.cpus(name)
            if len(set(cpus)) < len(cpus):
                guest.favour(range(len(cpus)), emulator=emulator)
            else:
                guest.make_realtime(emulator=emulator, rests=self.rests(name))

    def rests(self, name: str) -> bool:  # noqa: ARG002
        """Whether a guest does nothing while there is no packet."""
        return True

    def receives(self, port: Port) -> Sequence[int]:
        """Number of the vCPU that receives from each queue of a port; fewer where nothing does."""
        return port.queues

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters of interfaces that only the guests see."""
        return {}

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """What NFs have done that do not just forward, by name."""
        return {}

    def facts(self) -> Mapping[str, str]:
        """About what runs in them."""
        return {}

    def problems(self, name: str) -> Sequence[str]:  # noqa: ARG002
        """Faults inside a running guest."""
        return ()

    def stop(self) -> None:
        """Release all guests; the driver ends them."""
