"""Network functions as virtual machines; vhost-net has the kernel copy packets between tap and guest, not QEMU."""

import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path

from resources.libraries.python.drivers.functions.mixed_kinds import OneKind
from resources.libraries.python.drivers.functions.vm import HUGE_PAGES_MB, NICS, Vm, whole_pages
from resources.libraries.python.drivers.functions.vm.accelerator import AcceleratorChoice, choose, missing, try_kvm
from resources.libraries.python.drivers.functions.vm.guest import Guest
from resources.libraries.python.drivers.functions.vm.guest_software import GuestSoftware, cards
from resources.libraries.python.drivers.functions.vm.image import Image, image
from resources.libraries.python.drivers.functions.vm.qemu import GuestNic, Hardware, arguments
from resources.libraries.python.drivers.functions.vm.taps import close_taps, join, open_taps
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.cpu.memory import require_huge_pages
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY, MachineLock
from resources.libraries.python.drivers.host.programs.disturbances import Steps, process_steps, refused
from resources.libraries.python.drivers.host.programs.image_cache import cache_folder
from resources.libraries.python.drivers.host.sockets.socket_paths import folder_of, socket_of
from resources.libraries.python.errors import CsitError, NotReady, Unsupported
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.counters import InterfaceCounters, ProcessedPackets
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan, Plan, TapPlan

FOLDER = DIRECTORY / "vm"
"""Consoles of the running guests; emptied by the next cell with VMs."""
_TAPS = ("tap1", "tap2")
_log = logging.getLogger(__name__)


VHOST = Path("/dev/vhost-net")


def open_vhost(count: int) -> list[int]:
    """Open the device once for each network card.

    Raises:
        Unsupported: It cannot be opened.
    """
    opened: list[int] = []
    try:
        for _ in range(count):
            opened.append(os.open(VHOST, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        for descriptor in opened:
            os.close(descriptor)
        raise Unsupported(f"{VHOST} cannot be opened: {error.strerror}") from error
    return opened


def place_workers(pid: int | None, cpus: tuple[int, ...], root: Path = Path("/proc")) -> list[int]:
    """Pin the threads that copy a guest's packets to its data CPUs, in turns; return their ids.

    `pid`: Of QEMU. The threads are called `vhost-<pid>`, and are QEMU's own from kernel 6.4 on.
    """
    own = (entry.name for entry in (root / str(pid) / "task").iterdir())
    others = (entry.name for entry in root.iterdir() if entry.name.isdigit())
    found = sorted(
        {int(thread) for thread in (*own, *others) if data_threads.name(int(thread), root) == f"vhost-{pid}"}
    )
    for number, thread in enumerate(found):
        data_threads.pin(thread, cpus[number % len(cpus)])
    return found


class VirtualMachines(OneKind):
    """A guest per NF, behind its ports.

    The fabric's ports stay as they are, with their data threads and counters: what a port receives goes to the guest's
    tap, what the guest sends leaves through the port. So a packet that enters a guest counts as received at one port,
    and one that leaves it as sent at the other.

    `functions`: The NFs that are virtual machines, inline or passive.
    `fabric`: Has the ports; started before `start`.
    `settings`: Memory, accelerator, network cards and deadline of the guests.
    `inside`: What runs in the guests; None for routers that are their kernels.
    `image_in`: Gives what guests with a model of network cards boot from, kept in the cache of this path.
    """

    def __init__(
        self,
        functions: Sequence[NfPlan | TapPlan],
        plan: Plan,
        fabric: Fabric,
        machine: MachineLock,
        settings: Vm,
        *,
        inside: GuestSoftware | None = None,
        image_in: Callable[[Path, str], Image] = image,
    ) -> None:
        self._functions = functions
        self._plan = plan
        self._fabric = fabric
        self._machine = machine
        self._settings = settings
        self._nic = NICS[settings.nic]
        self._inside = inside or GuestSoftware(plan, settings.memory_mb)
        self._image_in = image_in
        self._owners = tuple(function.name for function in functions)
        self._ports = {port.interface: port for name in self._owners for port in plan.ports(name)}
        self._sockets = {
            link.b.interface: socket_of(folder_of(machine), link)
            for link in plan.links
            if link.medium is Medium.VHOST_USER and link.b.owner in self._owners
        }
        self._guests: dict[str, Guest] = {}
        self._facts: dict[str, str] = {}
        self._emulator = False

    def start(self) -> None:
        """Boot all guests side by side, wait until every one is up, and configure what is in them.

        Raises:
            Unsupported: This machine has no QEMU, or guests cannot be made here.
            NotReady: A guest does not come up; the text has the end of its console.
            CsitError: A guest ended, or something else went wrong.
        """
        problems = missing(self._settings.nic)
        if problems:
            raise Unsupported("; ".join(map(str, problems)))
        if page_mb := HUGE_PAGES_MB[self._settings.huge_pages]:
            needs_mb = sum(whole_pages(self._memory_mb(each), page_mb) for each in self._functions)
            require_huge_pages("memory of virtual machines", needs_mb, self._plan.cores.numa_node)
        cache = cache_folder()
        boot = self._image_in(cache, self._settings.nic)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        choice = choose(
            self._settings.accelerator,
            boot.description.kernel_version,
            cache / "accelerator.json",
            lambda: try_kvm(boot, FOLDER, self._machine),
        )
        begin = time.monotonic()
        vhost = choice.accelerator == "kvm" and VHOST.exists() and not self._sockets and self._nic.shares_queues
        # Without vhost-net QEMU's main thread copies between tap and guest.
        self._emulator = emulator = not vhost and (self._inside.waits or not self._sockets)
        for function in self._functions:
            files = (boot.kernel, self._inside.initramfs(function.name, boot, cache))
            self._start(function, files, choice, vhost=vhost, emulator=emulator)
        self._wait_ready(list(self._guests.values()))
        self._inside.configure(self._guests, emulator=emulator)
        if vhost:
            for function in self._functions:
                place_workers(self._guests[function.name].pid, self._plan.cores.cpus(function.name))
        self._facts = {
            "accelerator": choice.accelerator,
            "why": choice.why,
            "nic": self._settings.nic,
            "vhost": self._copied_by(choice, vhost=vhost),
            "qemu": next(iter(self._guests.values())).qemu,
            "guest kernel": boot.description.kernel_version,
            "guest packages": ", ".join(" ".join(row) for row in sorted(boot.description.packages.items())),
            "boot_s": f"{time.monotonic() - begin:.2f}",
        }
        _log.info("booted %d guests with %s in %s s", len(self._guests), choice.accelerator, self._facts["boot_s"])

    def _memory_mb(self, function: NfPlan | TapPlan) -> int:
        return function.limits.memory_mib or self._inside.memory_mb(function.name)

    def _copied_by(self, choice: AcceleratorChoice, *, vhost: bool) -> str:
        """Threads that copy packets between guest and host."""
        if self._sockets:
            return "user: the vSwitch maps the guests' memory"
        if not self._nic.shares_queues:
            return f"off: {self._settings.nic} has none"
        return "on" if vhost else f"off: no {VHOST}" if choice.accelerator == "kvm" else "off: TCG"

    def _start(
        self,
        function: NfPlan | TapPlan,
        boot: tuple[Path, Path],
        choice: AcceleratorChoice,
        *,
        vhost: bool,
        emulator: bool,
    ) -> None:
        name, mtu = function.name, self._fabric.mtu
        vcpus = self._inside.cpus(name)
        data = self._plan.cores.cpus(name)
        main = self._plan.cores.cpus(name, ThreadRole.MAIN)
        sides = cards(function)
        guest = self._guests[name] = Guest(name, FOLDER / f"{name}.console", self._machine)
        by_tap = [port for port, _ in sides if port not in self._sockets]
        taps = self._fabric.run_inside(name, lambda: open_taps(_TAPS[: len(by_tap)])) if by_tap else []
        helpers: list[int] = []
        try:
            behind = dict(zip(by_tap, taps, strict=True))
            for port, tap in behind.items():
                self._fabric.change(name, join(tap, (port, self._fabric.index(port)), mtu))
            helpers += open_vhost(len(taps)) if vhost and taps else []
            copiers = dict(zip(behind, helpers, strict=False))
            nics = tuple(
                GuestNic(
                    mac,
                    behind[port].descriptors[0] if port in behind else None,
                    mtu,
                    copiers.get(port),
                    self._sockets.get(port),
                    len(self._ports[port].queues),
                    self._nic,
                )
                for port, mac in sides
            )
            hardware = Hardware(
                choice.accelerator,
                self._memory_mb(function),
                len(vcpus),
                nics,
                self._inside.cpu_model(name),
                self._inside.arguments(function, FOLDER),
                HUGE_PAGES_MB[self._settings.huge_pages],
                self._plan.cores.numa_node,
            )
            words = self._inside.command_line(function, mtu)
            guest.start(
                lambda monitor: arguments(name, hardware, boot, words, monitor),
                (*(descriptor for tap in taps for descriptor in tap.descriptors), *helpers),
                vcpus,
                # Threads that copy packets run on the NF's data cores, which bound an NF of this size.
                data if emulator else main,
            )
        finally:
            close_taps(taps)
            for helper in helpers:
                os.close(helper)

    def _wait_ready(self, left: list[Guest]) -> None:
        """Wait for guests. The deadline counts from the last one that came up: on few cores they boot in turns."""
        begin = time.monotonic()
        while left:
            still = [guest for guest in left if not guest.console.ready]
            for guest in still:
                if problem := guest.problem():
                    raise CsitError(problem)
            if len(still) < len(left):
                left, begin = still, time.monotonic()
            elif time.monotonic() - begin > self._settings.boot_within_s:
                _log.error("the console of %s:\n%s", left[0].name, left[0].console.text())
                what = f"virtual machine of {left[0].name}"
                raise NotReady(what, self._settings.boot_within_s, f"\n{left[0].console.tail()}")
            time.sleep(0.02)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        kind = next((function.kind for function in self._functions if function.name == target), None)
        if kind is None:
            return None
        if event not in kind.driver.events:
            raise refused(event, f"{target} ({kind})")
        guest = self._guests[target]
        if event is PartEvent.RESTART:
            return Steps("reset, then booted again", guest.reset, partial(self._boot_again, guest))
        return process_steps(event, target, lambda: [] if guest.pid is None else [guest.pid])

    def _boot_again(self, guest: Guest) -> None:
        """Wait until a guest that was reset is up, and make it an NF again."""
        self._wait_ready([guest])
        guest.end_on_reboot()
        self._inside.configure({guest.name: guest}, emulator=self._emulator)

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which packets of each receive queue may be handled: by its port's data thread and by its vCPU."""
        found: dict[str, frozenset[int]] = {
            interface: cpus | own if cpus and (own := self._vcpu_affinity(interface)[interface]) else frozenset()
            for interface, cpus in self._fabric.affinity(self._owners).items()
        }
        return found | {
            name: cpus for interface in self._sockets for name, cpus in self._vcpu_affinity(interface).items()
        }

    def _vcpu_affinity(self, interface: str) -> dict[str, frozenset[int]]:
        """By receive queue of an interface."""
        port = self._ports[interface]
        guest = self._guests.get(port.owner)
        if guest is None or guest.ended():
            return dict.fromkeys(port.queue_names, frozenset())
        vcpus = self._inside.receives(port)[: len(port.queues)]
        return {
            name: frozenset() if vcpu is None else guest.affinity(vcpu)
            for name, vcpu in zip_longest(port.queue_names, vcpus)
        }

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by interface. A port that shares memory with the vSwitch has those of the guest, if any."""
        return {**self._inside.counters(), **self._fabric.counters(self._owners)}

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Processed packets by name of the NF: as guests report, and of others the packets sent."""
        sent, counters = dict.fromkeys(self._owners, 0), self.counters()
        for interface, row in counters.items():
            sent[self._ports[interface].owner] += row.tx_packets
        return {name: ProcessedPackets(packets) for name, packets in sent.items()} | dict(self._inside.processed())

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: (guest.pid,) for name, guest in self._guests.items() if guest.pid is not None}

    def facts(self) -> Mapping[str, str]:
        """Accelerator and why, versions of QEMU and of what is in the guests, the time to boot them all."""
        return {**self._facts, **self._inside.facts()} if self._facts else {}

    def problems(self) -> tuple[str, ...]:
        """Guests that have ended or lost a vCPU, ports that have lost their data thread or their carrier."""
        found: list[str] = []
        for guest in self._guests.values():
            if problem := guest.problem():
                found.append(problem)
                continue
            found += self._inside.problems(guest.name)
        return (*found, *self._fabric.problems(self._owners))

    def stop(self) -> None:
        """End all guests: taps, rules and consoles go with them."""
        self.call_off()
        guests, self._guests = self._guests, {}
        self._inside.stop()
        for guest in guests.values():
            guest.kill()
        for guest in guests.values():
            guest.wait()
        if guests:
            with suppress(FileNotFoundError):
                shutil.rmtree(FOLDER)
        self._facts = {}
