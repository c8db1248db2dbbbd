"""VPP in guests: image, vCPUs, memory and ports of the guests, and the VPPs themselves."""

import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.vm import Vm
from resources.libraries.python.drivers.functions.vm.accelerator import missing as vm_missing
from resources.libraries.python.drivers.functions.vm.archive import file
from resources.libraries.python.drivers.functions.vm.driver import VirtualMachines
from resources.libraries.python.drivers.functions.vm.guest import Guest
from resources.libraries.python.drivers.functions.vm.guest_software import GuestSoftware
from resources.libraries.python.drivers.functions.vm.image import Image, extended, libraries
from resources.libraries.python.drivers.functions.vm.init import QUIET, READY
from resources.libraries.python.drivers.functions.vm.qemu import pci_address
from resources.libraries.python.drivers.vpp import Vpp, guest_hugepages, guest_mb, show_output
from resources.libraries.python.drivers.vpp.cli import CommandLine, wait_for_reports
from resources.libraries.python.drivers.vpp.configuration import (
    HugePageChoice,
    IdleBehaviour,
    Startup,
    WorkerPlacement,
    default_mode,
    making,
    moves,
    place,
    routing,
    waiting,
)
from resources.libraries.python.drivers.vpp.installation import missing as program_missing
from resources.libraries.python.drivers.vpp.installation import plugin_folder, program
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, VppInterface, after_address
from resources.libraries.python.drivers.vpp.show_output import counted
from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import NfPlan, Plan, Port, TapPlan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.rendering import render

_WITHIN_S = 20.0
"""For each reply: a guest in emulation may have to wait for its CPU."""
Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)
FOLDER = Path("/run/vpp")
"""Folder of VPP in the guest."""
PORT = "csit.vpp"
"""The port from the host to VPP's command line."""
STARTUP = "opt/csit/startup.conf"
"""QEMU's name of the file with VPP's configuration."""
TCP = 5002
"""Where VPP takes commands in the guest: its busybox can connect by TCP only."""
_SYSTEM_MB = 48
"""Memory of a guest's kernel when it unpacks its initial file system."""


class GuestVpp:
    """Configures the VPP of one guest, and asks it.

    `placement`: VPP's threads on the guest's vCPUs.
    """

    def __init__(
        self,
        function: NfPlan,
        interfaces: tuple[VppInterface, ...],
        placement: WorkerPlacement,
        waiting: IdleBehaviour,
        socket: Path,
    ) -> None:
        self.function = function
        self._interfaces = interfaces
        self._placement = placement
        self._waiting = waiting
        self._what = f"VPP in the virtual machine of {function.name}"
        self._cli = CommandLine(socket, _WITHIN_S, b"\n")
        self._work: tuple[show_output.ThreadWork, ...] = ()
        self.version = ""

    def configure(self, largest_frame_bytes: int) -> None:
        """Make its interfaces and let it route between them, each reply checked.

        Raises:
            CommandFailed: It refused something; the text has the command and the reply.
            CsitError: It does not answer.
        """
        self.version = show_output.version(self.ask("show version"))
        self._do(default_mode(self._waiting.rx_mode))
        self._do(*making(self._interfaces, largest_frame_bytes))
        self._do(*routing(self.function))
        self._do(*moves(self._interfaces, self._placement, self._waiting.rx_mode, self._queues()))

    def _queues(self) -> show_output.RxPlacement:
        return show_output.rx_placement(self.ask("show interface rx-placement"))

    def threads_of(self, interface: str) -> tuple[int, ...]:
        """Number of the thread that polls each receive queue of an interface, and so of its vCPU."""
        return tuple(queue.thread for queue in self._queues().get(interface, ()))

    def counters(self) -> dict[str, InterfaceCounters]:
        """Counters by interface. What the threads did since the last reading is kept for the facts."""
        of_vpp = show_output.interfaces(self.ask("show interface"))
        self._work = show_output.runtime(self.ask("show runtime"))
        self._do("clear runtime")
        return dict(counted(self._interfaces, of_vpp, {}, {}))

    def facts(self) -> dict[str, str]:
        """Where its threads are and what they did, and packets that it counted as errors."""
        found = {
            "threads": f"vCPUs: {self._placement}",
            "work": "; ".join(map(str, self._work)),
            "errors": show_output.losses(self.ask("show errors")),
        }
        return {name: text for name, text in found.items() if text}

    def problems(self) -> tuple[str, ...]:
        """Interfaces that are down, workers that are gone, or that it does not answer."""
        try:
            states = show_output.interfaces(self.ask("show interface"))
            running = show_output.threads(self.ask("show threads"))
        except CsitError as error:
            return (str(error),)
        down = [
            f"{each.name} of {self._what} is down"
            for each in self._interfaces
            if each.name not in states or not states[each.name].up
        ]
        gone = [
            f"worker {number} of {self._what} is gone"
            for number in range(len(self._placement.workers))
            if number + 1 not in running
        ]
        return (*down, *gone)

    def close(self) -> None:
        self._cli.close()

    def ask(self, command: str) -> str:
        """What it shows."""
        return self._naming_guest(lambda: self._cli.ask(command))

    def _do(self, *commands: str) -> None:
        self._naming_guest(lambda: self._cli.do(commands))

    def _naming_guest(self, work: Callable[[], Answer]) -> Answer:
        """Say whose reply it was."""
        try:
            return work()
        except CommandFailed as error:
            raise CommandFailed((f"{self._what}:", *error.argv[1:]), error.status, error.stderr) from error
        except CsitError as error:
            raise CsitError(f"{self._what}: {error}") from error


def initramfs(base: Image, prefix: Path, cache: Path) -> Path:
    """An archive with the guests' image and VPP, made once for each VPP; the last one only is kept.

    Raises:
        Unsupported: Libraries of VPP cannot be found.
        CsitError: It cannot be made.
    """
    vpp = program(prefix)
    files = (vpp, *libraries([vpp]))
    init = render_init(base.description.user_space_modules, vpp, files[1:])
    return extended(base, "vpp", files, [file("init", init.encode(), executable=True)], cache)


def render_init(modules: Sequence[str], vpp: Path, needed: Iterable[Path]) -> str:
    """The guest's first program.

    `modules`: names of kernel modules, in the order of loading.
    """
    values = {
        "modules": modules,
        "folder": FOLDER,
        "port": PORT,
        "startup": STARTUP,
        "program": vpp,
        "libraries": list(dict.fromkeys(str(path.parent) for path in needed)),
        "tcp": TCP,
        "ready": READY,
    }
    return render("guest-vpp-init.sh.j2", values)


def vcpu_cpus(plan: Plan, name: str) -> tuple[int, ...]:
    """The CPU of each vCPU: first that of VPP's main thread, then those of its workers.

    Where planned threads share a CPU, so do VPP's: it then has fewer of them, and the guest fewer vCPUs.
    """
    on_host = place(plan.cores.cpus(name, ThreadRole.MAIN)[0], plan.cores.cpus(name))
    return (on_host.main, *on_host.workers)


def placement(plan: Plan, name: str) -> WorkerPlacement:
    """Threads of VPP by vCPU."""
    cpus = vcpu_cpus(plan, name)
    return WorkerPlacement(0, tuple(range(1, len(cpus))), tuple(cpus.index(cpu) for cpu in plan.cores.cpus(name)))


def interfaces_inside(plan: Plan, function: NfPlan) -> tuple[VppInterface, ...]:
    """The guest's two network cards, left and right."""
    ports = {port.interface: port for port in plan.ports(function.name)}
    return tuple(
        VppInterface(
            kind=InterfaceKind.VIRTIO,
            name=side.name,
            made_as=after_address("virtio", pci_address(number)),
            mac=side.mac,
            data_threads=ports[side.name].queues,
            ports=((side.name, None),),
            pci_address=pci_address(number),
        )
        for number, side in enumerate((function.left, function.right), 1)
    )


class VppInside(GuestSoftware):
    """VPP in guests.

    A guest has a vCPU for VPP's main thread and one for each of its workers. Its VPP drives the network cards by
    itself, in huge pages of the guest's: cards read memory by physical addresses. The host needs none for it.

    `largest_frame_bytes`: The largest L2 frame that will be sent, FCS included.
    """

    def __init__(self, plan: Plan, node: DutNode, *, largest_frame_bytes: int = 1518) -> None:
        super().__init__(plan, guest_mb(node))
        self._settings = node.settings(Vpp)
        self._largest_frame_bytes = largest_frame_bytes
        # Polling on shared cores too: interrupts over UIO take a way through QEMU's and VPP's main threads.
        mode = "polling" if node.settings(Vpp).rx_mode == "auto" else node.settings(Vpp).rx_mode
        settings = node.settings(Vpp).model_copy(update={"rx_mode": mode})
        self._waiting = waiting(settings, oversubscribed=plan.cores.oversubscribed)
        self.waits = mode != "polling"
        self._hugepages = guest_hugepages(node)
        self._vpps: dict[str, GuestVpp] = {}

    def cpu_model(self, name: str) -> str:
        """One with the vector instructions that VPP is made for."""
        del name
        return "max"

    def initramfs(self, name: str, base: Image, cache: Path) -> Path:
        """The guests' image and this machine's VPP.

        Raises:
            Unsupported: Libraries of VPP cannot be found, or a guest has no room for them.
            CsitError: It cannot be made.
        """
        archive = initramfs(base, Path(self._settings.prefix), cache)
        memory_mb = self._plan.function(name).limits.memory_mib or self._memory_mb
        room_mb = memory_mb - 2 * self._hugepages
        needed_mb = 2 * (archive.stat().st_size >> 20) + _SYSTEM_MB  # packed and unpacked at the same time
        if needed_mb > room_mb:
            raise Unsupported(
                f"{name}: a guest with the VPP of {self._settings.prefix} needs {needed_mb} MB besides its huge pages "
                f"to boot, and has {room_mb} MB: remove debugging symbols from VPP's libraries (strip --strip-debug), "
                f"or give guests {needed_mb - room_mb} MB more by vm.memory_mb or memory_mib"
            )
        return archive

    def cpus(self, name: str) -> tuple[int, ...]:
        """First that of VPP's main thread, then those of its workers."""
        return vcpu_cpus(self._plan, name)

    def command_line(self, function: NfPlan | TapPlan, mtu: int) -> str:
        """Equal for all guests: VPP is configured later."""
        del function, mtu
        return " ".join([*QUIET, f"hugepages={self._hugepages}"])

    def arguments(self, function: NfPlan | TapPlan, folder: Path) -> tuple[str, ...]:
        """The port to VPP's command line, and the file with its configuration.

        Raises:
            Unsupported: The NF is passive.
        """
        if isinstance(function, TapPlan):
            raise Unsupported(f"{function.name}: VPP in a virtual machine cannot be passive")
        name = function.name
        startup, socket = folder / f"{name}.startup.conf", folder / f"{name}.cli"
        startup.write_text(self.startup(name).text(), encoding="utf-8")
        self._vpps[name] = GuestVpp(
            function,
            interfaces_inside(self._plan, function),
            placement(self._plan, name),
            self._waiting,
            socket,
        )
        return (
            *("-fw_cfg", f"name={STARTUP},file={startup}"),
            *("-device", "virtio-serial-pci"),
            *("-chardev", f"socket,id=cli,path={socket},server=on,wait=off"),
            *("-device", f"virtserialport,chardev=cli,name={PORT}"),
        )

    def startup(self, name: str) -> Startup:
        """startup.conf of an NF's VPP."""
        return Startup(
            name="csit",
            folder=FOLDER,
            placement=placement(self._plan, name),
            heap_mb=self._settings.main_heap_mb,
            buffers=self._settings.buffers,
            pages=HugePageChoice("2m", "huge pages of the guest"),
            waiting=self._waiting,
            plugins=(),
            plugin_folder=plugin_folder(Path(self._settings.prefix)),
            largest_frame_bytes=self._largest_frame_bytes,
            cli_address=f"127.0.0.1:{TCP}",
        )

    def configure(self, guests: Mapping[str, Guest], *, emulator: bool) -> None:
        """Let every VPP route. Workers may never rest, so their vCPUs get no real time.

        Raises:
            CsitError: One refused something, does not answer, or its guest has ended; the text has its last words.
        """
        for name, vpp in self._vpps.items():
            try:
                vpp.configure(self._largest_frame_bytes)
            except CsitError as error:
                if problem := guests[name].problem():
                    raise CsitError(problem) from error
                raise
            workers = range(1, len(self.cpus(name))) or range(1)  # one thread that does all
            guests[name].favour(workers, emulator=emulator)
        wait_for_reports((vpp.function, vpp.ask) for vpp in self._vpps.values())
        _log.info("%d VPPs route in virtual machines", len(self._vpps))

    def receives(self, port: Port) -> Sequence[int]:
        """The vCPUs of the threads that VPP says poll the queues of a port."""
        return self._vpps[port.owner].threads_of(port.interface)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters of the VPPs; of one that does not answer, nothing."""
        found: dict[str, InterfaceCounters] = {}
        for vpp in self._vpps.values():
            try:
                found |= vpp.counters()
            except CsitError as error:
                _log.warning("%s", error)
        return found

    def facts(self) -> Mapping[str, str]:
        """Version and how they run, and of each what it did between the last two readings of the counters."""
        if not self._vpps:
            return {}
        version = next(iter(self._vpps.values())).version
        found = {
            "vpp": f"VPP {version} in virtual machines of {self._memory_mb} MB",
            "data threads": self._waiting.data_threads,
            "waiting": str(self._waiting),
        }
        for name, vpp in self._vpps.items():
            try:
                found |= {f"{name} {what}": text for what, text in vpp.facts().items()}
            except CsitError as error:
                _log.warning("%s", error)
        return found

    def problems(self, name: str) -> Sequence[str]:
        """Errors that the VPP of a guest reports, or that it does not answer."""
        return self._vpps[name].problems()

    def stop(self) -> None:
        vpps, self._vpps = self._vpps, {}
        for vpp in vpps.values():
            vpp.close()


def make(node: DutNode, context: DriverContext, row: Sequence[NfPlan]) -> VirtualMachines:
    """Make the driver of NFs on a node."""
    inside = VppInside(context.plan, node, largest_frame_bytes=context.largest_frame_bytes)
    return VirtualMachines(row, context.plan, context.fabric, context.lock, node.settings(Vm), inside=inside)


def missing(node: DutNode, _: NfKind) -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks: those of all virtual machines, VPP, or what finds its libraries."""
    yield from vm_missing()
    yield from program_missing(Path(node.settings(Vpp).prefix), ())
    if shutil.which("ldd") is None:
        yield PreflightProblem(
            "there is no ldd, which finds what VPP needs inside of a guest", "install glibc's programs"
        )
