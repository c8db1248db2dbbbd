"""QEMU's command line and its monitor."""

import json
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.libraries.python.dialogue import record_of, shown
from resources.libraries.python.drivers.functions.vm import NICS, GuestNicModel, whole_pages
from resources.libraries.python.drivers.host.sockets.answers import receive
from resources.libraries.python.errors import CommandFailed, NotReady

QEMU = "qemu-system-x86_64"
CPU_MODEL = "qemu64"
"""Of guests in emulation. Measured: with `max` a Linux guest forwards 75 kpps, with this one 92 kpps."""

_NO_OFFLOADS = ("csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo")
"""Frames are unchanged: no merging, segmentation, or checksum offload."""
_RX_QUEUE_SIZE = 1024
"""Frames for which a guest has room; the most that QEMU takes. Its default of 256 is 2.6 ms at 100,000 packets/s."""
_FIRST_SLOT = 0x10
"""Of the network cards on the PCI bus; other devices begin at 0."""


@dataclass(frozen=True, slots=True)
class GuestNic:
    """A network card of a guest."""

    mac: str
    tap: int | None
    """Descriptor of its tap device; None where it shares its memory with the vSwitch."""
    mtu: int
    vhost: int | None = None
    """Descriptor of /dev/vhost-net, where the host's kernel copies the packets."""
    socket: Path | None = None
    """Where it meets a vSwitch that copies the packets (vhost-user)."""
    queues: int = 1
    """Pairs of queues, of one that meets a vSwitch."""
    model: GuestNicModel = NICS["virtio"]


def pci_address(number: int) -> str:
    """Where a guest finds its network card `number`, 1 or 2."""
    return f"0000:00:{_FIRST_SLOT + number:02x}.0"


@dataclass(frozen=True, slots=True)
class Hardware:
    """Hardware of a guest."""

    accelerator: str
    """`kvm` or `tcg`."""
    memory_mb: int
    vcpus: int
    nics: tuple[GuestNic, ...] = ()
    model: str = CPU_MODEL
    """Model of the CPU in emulation."""
    more: tuple[str, ...] = ()
    huge_page_mb: int = 0
    """Size of the pages that its memory is made of; 0 for ordinary ones."""
    numa_node: int = 0
    """Where huge pages are taken from."""


def arguments(
    name: str, hardware: Hardware, boot: tuple[Path, Path], command_line: str, monitor: int | None = None
) -> tuple[str, ...]:
    """The argument vector of one guest. Its console is QEMU's standard output.

    `boot`: files of the kernel and of its initramfs.
    `monitor`: descriptor of a connected socket for QMP; the guest then waits for `cont` before it boots.
    """
    kernel, initramfs = boot
    kvm, memory_mb = hardware.accelerator == "kvm", whole_pages(hardware.memory_mb, hardware.huge_page_mb)
    argv = [QEMU, "-name", f"{name},debug-threads=on", "-nodefaults", "-no-user-config", "-display", "none"]
    argv += ["-machine", f"q35{_shared(hardware)}", "-m", str(memory_mb), "-smp", str(hardware.vcpus)]
    if _shared(hardware):
        # Of a file without a name: it ends with the guest, and no room in /dev/shm or mount of hugetlbfs is needed.
        huge, node = hardware.huge_page_mb, hardware.numa_node
        pages = f",hugetlb=on,hugetlbsize={huge}M,prealloc=on,host-nodes={node},policy=bind" if huge else ""
        argv += ["-object", f"memory-backend-memfd,id=memory,size={memory_mb}M,share=on{pages}"]
    argv += ["-accel", "kvm", "-cpu", "host"] if kvm else ["-accel", "tcg,thread=multi", "-cpu", hardware.model]
    argv += ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
    argv += ["-no-reboot", "-kernel", str(kernel), "-initrd", str(initramfs), "-append", command_line]
    for number, nic in enumerate(hardware.nics, 1):
        argv += _nic(number, nic, kvm=kvm)
    argv += hardware.more
    if monitor is not None:
        argv += ["-S", "-chardev", f"socket,id=monitor,fd={monitor}", "-mon", "chardev=monitor,mode=control"]
    return tuple(argv)


def _shared(hardware: Hardware) -> str:
    """Options for guest memory that a vSwitch can map, or huge pages; empty where neither is needed."""
    shares = any(nic.socket is not None for nic in hardware.nics)
    return ",memory-backend=memory" if shares or hardware.huge_page_mb else ""


def _nic(number: int, nic: GuestNic, *, kvm: bool) -> Sequence[str]:
    vhost = "" if nic.vhost is None else f",vhost=on,vhostfd={nic.vhost}"
    if nic.socket is not None:
        # A vSwitch does not negotiate the MTU; the guest's init sets it.
        ends = ["-chardev", f"socket,id=vhost{number},path={nic.socket}"]
        several = nic.queues > 1
        ends += ["-netdev", f"vhost-user,id=net{number},chardev=vhost{number}" + f",queues={nic.queues}" * several]
        # A vector for each queue, one for the configuration and one for the control queue. In emulation QEMU 7.2 dies
        # (SIGSEGV) when a guest unmasks an MSI-X vector of such a port.
        vectors = f",vectors={2 * nic.queues + 2}" if several else ""
        more = ",mq=on" * several + (vectors if kvm else ",vectors=0")
    else:
        ends = ["-netdev", f"tap,id=net{number},fd={nic.tap}{vhost}"]
        more = f",host_mtu={nic.mtu}"
    device = f"{nic.model.device},netdev=net{number},addr={_FIRST_SLOT + number:#x},mac={nic.mac}"
    if nic.model.shares_queues:
        offloads = ",".join(f"{name}=off" for name in _NO_OFFLOADS)
        device += f"{more},rx_queue_size={_RX_QUEUE_SIZE},{offloads}"
    # Without its ROM, which would try to boot from the network.
    return [*ends, "-device", f"{device},romfile="]


_ANSWER_WITHIN_S = 30.0
"""QEMU answers at once, but on few cores many guests may start at the same time."""


class Monitor:
    """The near end of a connected socket whose other end QEMU has."""

    def __init__(self, name: str, near: socket.socket, within_s: float = _ANSWER_WITHIN_S) -> None:
        """Read QEMU's greeting and let it take commands.

        `within_s`: Deadline for every answer, in seconds.

        Raises:
            NotReady: QEMU says nothing, or has ended.
        """
        self._name = name
        self._socket = near
        self._within_s = within_s
        self._buffer = b""
        greeting = self._next(within_s)["QMP"]["version"]
        numbers = greeting["qemu"]
        self.version = f"{numbers['major']}.{numbers['minor']}.{numbers['micro']} {greeting['package']}".strip()
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: str) -> Any:  # noqa: ANN401 - JSON
        """Send a command and wait for its result.

        Raises:
            NotReady: No answer.
            CommandFailed: QEMU refused.
        """
        message = {"execute": command, **({"arguments": arguments} if arguments else {})}
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise NotReady(f"the monitor of {self._name}", self._within_s, str(error)) from error
        deadline = time.monotonic() + self._within_s
        while True:  # events come between
            answer = self._next(deadline - time.monotonic())
            if "return" in answer:
                return answer["return"]
            if (refusal := answer.get("error")) is not None:
                reason = refusal.get("desc") if isinstance(refusal, dict) else None
                raise CommandFailed(("qmp", command), None, f"{self._name}: {reason or shown(refusal)}")

    def close(self) -> None:
        self._socket.close()

    def _next(self, within_s: float) -> dict[str, Any]:
        what = f"the monitor of {self._name}"
        if within_s <= 0:
            raise NotReady(what, self._within_s, "events without an answer")
        try:
            got = receive(self._socket, what, lambda got: b"\n" in got, within_s, begun=self._buffer)
        except OSError as error:
            raise NotReady(what, self._within_s, str(error)) from error
        line, _, self._buffer = got.partition(b"\n")
        return record_of(line)
