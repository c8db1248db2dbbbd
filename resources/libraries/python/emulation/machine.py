"""An emulated machine as QEMU's argument vector and the kernel's command line: processors, NUMA nodes, IOMMU, PCI NICs.

Device properties and addresses are those of QEMU 7.2 (docs/pcie.txt and docs/pci_expander_bridge.txt in its sources).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

from resources.libraries.python.model.testbed.nodes import CpuGroup

QEMU = "qemu-system-x86_64"
CONTROL_MAC = "02:c5:1e:ff:ff:ff"
"""Of the port that SSH comes in by: the network behind it is each machine's own."""
_CPU = "Cascadelake-Server-v4,-erms"
"""A model with pages of 1 GB and SMT siblings that Linux recognizes, which `max` has not in emulation. Without ERMS
memory is copied 13 times as fast there: with it, byte by byte."""
_TRANSLATIONS_MB = 512
"""Memory for translated code; QEMU's own choice is 1 GB."""
_BUSES_PER_NODE = 64
"""Bus numbers of a NUMA node's host bridge: node 0 has 0x40 and what follows, node 1 has 0x80."""
_RX_QUEUE_SIZE = 1024
"""The most that QEMU takes; its default of 256 frames is full after a tenth of a second at 2,500 packets per second."""
_BRIDGE_SLOT = 0x10


class EmulatedNicModel(StrEnum):
    """An emulated NIC for which both Linux and DPDK have drivers."""

    VIRTIO = "virtio"
    E1000E = "e1000e"
    IGB = "igb"
    """From QEMU 8 on; older ones say that they do not know it."""
    VMXNET3 = "vmxnet3"

    @property
    def name_in_topology(self) -> str:
        """As `model` of a port."""
        return {
            "virtio": "RedHat-Virtio", "e1000e": "Intel-82574L", "igb": "Intel-82576", "vmxnet3": "VMware-VMXNET3"
        }[self]  # fmt: skip


_DEVICES = {
    # Without iommu_platform a virtio device reads memory past the IOMMU, and vfio refuses it.
    EmulatedNicModel.VIRTIO: f"virtio-net-pci,iommu_platform=on,disable-legacy=on,rx_queue_size={_RX_QUEUE_SIZE}",
    EmulatedNicModel.E1000E: "e1000e",
    EmulatedNicModel.IGB: "igb",
    EmulatedNicModel.VMXNET3: "vmxnet3",
}


@dataclass(frozen=True, slots=True)
class EmulatedNic:
    """A PCI NIC with one end of a cable."""

    model: EmulatedNicModel
    numa_node: int
    slot: int
    """Root port on its NUMA node's host bridge, from 0."""
    mac: str
    near: str
    """UNIX socket of this end of the cable, relative to the testbed's folder."""
    far: str
    """The same of the other end."""
    queues: int = 1
    """Receive queues. With more than one the cable is a pair of tap devices and has no sockets."""

    @property
    def pci_address(self) -> str:
        """Where the machine finds it; SeaBIOS numbers buses behind root ports in the order of their slots."""
        return f"0000:{_first_bus(self.numa_node) + self.slot + 1:02x}:00.0"

    @property
    def device(self) -> str:
        """The kernel's name of the port, as systemd's scheme has it."""
        return f"enp{_first_bus(self.numa_node) + self.slot + 1}s0"


@dataclass(frozen=True, slots=True)
class NumaNode:
    """Memory of a NUMA node, which is also a processor socket."""

    memory_mb: int
    hugepages_2m: int = 0
    hugepages_1g: int = 0


@dataclass(frozen=True, slots=True)
class EmulatedMachine:
    """An emulated machine. CPUs are numbered sibling by sibling, core by core, socket by socket."""

    name: str
    cores: int
    """Physical cores per socket."""
    numa: tuple[NumaNode, ...]
    nics: tuple[EmulatedNic, ...]
    threads: int = 2
    """Per core."""
    system_cores: int = 1
    """Cores of each socket, which are not isolated."""

    @property
    def cpus_per_node(self) -> int:
        """Logical CPUs of a NUMA node."""
        return self.cores * self.threads

    def cpu_groups(self) -> tuple[CpuGroup, ...]:
        """Logical CPUs and their cores, as a topology has them: a group per NUMA node and sibling number."""
        return tuple(
            CpuGroup(
                cpus=_list(self._cpu(node, core, thread) for core in range(self.cores)),
                cores=_list(node * self.cores + core for core in range(self.cores)),
                socket=node,
                node=node,
            )
            for node in range(len(self.numa))
            for thread in range(self.threads)
        )

    def isolated(self) -> str:
        """Isolated CPUs."""
        return ",".join(
            f"{self._cpu(node, self.system_cores, 0)}-{self._cpu(node, self.cores, 0) - 1}"
            for node in range(len(self.numa))
            if self.cores > self.system_cores
        )

    def _cpu(self, node: int, core: int, thread: int) -> int:
        return node * self.cpus_per_node + core * self.threads + thread


@dataclass(frozen=True, slots=True)
class Boot:
    """Boot files of a machine."""

    kernel: Path
    initramfs: Path
    disk: Path
    """Read only: what the machine writes is in a file without a name, which ends with QEMU."""


def kernel_line(machine: EmulatedMachine) -> str:
    """The command line of the machine's kernel."""
    words = ["console=ttyS0", "quiet", "panic=5", "intel_iommu=on", "iommu=pt"]
    # In emulation they cost most of the speed; clearing pages also takes host memory for huge pages that are not used.
    words += ["mitigations=off", "init_on_alloc=0"]
    # A vCPU that gets no time from its host is no fault of the kernel; a late tick is a panic without no_timer_check.
    words += ["nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1", "no_timer_check"]
    # A kernel at a random place may be in the middle of what would be the huge page of 1 GB.
    words += ["nokaslr"]
    words += [f"default_hugepagesz=2M {_hugepages('2M', [node.hugepages_2m for node in machine.numa])}"]
    words += [_hugepages("1G", [node.hugepages_1g for node in machine.numa])]
    if isolated := machine.isolated():
        words += [f"{key}={isolated}" for key in ("isolcpus", "nohz_full", "rcu_nocbs")]
    return " ".join(words)


def arguments(
    machine: EmulatedMachine,
    boot: Boot,
    port: int,
    accelerator: Literal["tcg", "kvm"] = "tcg",
    taps: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[str, ...]:
    """QEMU's argument vector. Sockets and logs are relative to QEMU's working directory.

    `port`: TCP port on 127.0.0.1 that leads to its SSH server.
    `accelerator`: `tcg` is software emulation.
    `taps`: Descriptors of tap devices by MAC address, for ports with several queues.
    """
    kvm = accelerator == "kvm"
    sockets, memory = len(machine.numa), sum(node.memory_mb for node in machine.numa)
    argv = [QEMU, "-name", machine.name, "-nodefaults", "-no-user-config", "-display", "none"]
    argv += ["-machine", "q35,kernel-irqchip=split", "-device", "intel-iommu,intremap=on,caching-mode=on,aw-bits=48"]
    tcg = ["-accel", f"tcg,thread=multi,tb-size={_TRANSLATIONS_MB}", "-cpu", _CPU]
    argv += ["-accel", "kvm", "-cpu", "host"] if kvm else tcg
    counts = f"sockets={sockets},cores={machine.cores},threads={machine.threads}"
    argv += ["-smp", f"{sockets * machine.cpus_per_node},{counts}", "-m", f"{memory}M"]
    for number, node in enumerate(machine.numa):
        first = number * machine.cpus_per_node
        argv += ["-object", f"memory-backend-ram,id=memory{number},size={node.memory_mb}M"]
        cpus = f"{first}-{first + machine.cpus_per_node - 1}"
        argv += ["-numa", f"node,nodeid={number},cpus={cpus},memdev=memory{number}"]
    argv += ["-drive", f"file={_escaped(boot.disk)},format=raw,if=none,id=disk,snapshot=on,cache=unsafe"]
    argv += ["-device", "virtio-blk-pci,drive=disk,addr=0x2"]
    # Nothing that a machine sends leaves this computer: its own network has one host, which forwards SSH to it.
    argv += ["-netdev", f"user,id=control,restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:{port}-:22"]
    argv += ["-device", f"virtio-net-pci,netdev=control,mac={CONTROL_MAC},addr=0x3,romfile="]
    argv += _nics(machine.nics, taps or {})
    argv += ["-chardev", f"file,id=console,path={machine.name}.console,append=on", "-serial", "chardev:console"]
    argv += ["-qmp", f"unix:{machine.name}.qmp,server=on,wait=off"]
    argv += ["-kernel", str(boot.kernel), "-initrd", str(boot.initramfs), "-append", kernel_line(machine)]
    return tuple(argv)


def _nics(nics: Sequence[EmulatedNic], taps: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """A host bridge for each NUMA node: a device on the machine's first bridge would have no node."""
    for node in sorted({nic.numa_node for nic in nics}):
        bridge = f"pxb-pcie,id=bridge{node},bus_nr={_first_bus(node)},numa_node={node}"
        yield from ("-device", f"{bridge},bus=pcie.0,addr={_BRIDGE_SLOT + node:#x}")
    for number, nic in enumerate(nics):
        root = f"pcie-root-port,id=root{number},bus=bridge{nic.numa_node},chassis={number + 1},slot={number + 1}"
        yield from ("-device", f"{root},addr={nic.slot:#x}")
        device = _DEVICES[nic.model]
        if nic.mac in taps:
            descriptors = ":".join(map(str, taps[nic.mac]))
            yield from ("-netdev", f"tap,id=cable{number},fds={descriptors}")
            # An interrupt for each queue of either direction, one for changes, one for commands.
            device += f",mq=on,vectors={2 * nic.queues + 2}"
        else:
            ends = f"local.type=unix,local.path={nic.near},remote.type=unix,remote.path={nic.far}"
            yield from ("-netdev", f"dgram,id=cable{number},{ends}")
        # Without its ROM, which would try to boot from the network.
        yield from ("-device", f"{device},netdev=cable{number},bus=root{number},mac={nic.mac},romfile=")


def _first_bus(numa_node: int) -> int:
    return _BUSES_PER_NODE * (numa_node + 1)


def _hugepages(size: str, counts: Sequence[int]) -> str:
    pages = ",".join(f"{node}:{count}" for node, count in enumerate(counts) if count)
    return f"hugepagesz={size} hugepages={pages or 0}"


def _list(numbers: Iterator[int]) -> str:
    return ",".join(map(str, numbers))


def _escaped(path: Path) -> str:
    """A comma in a value is written twice."""
    return str(path).replace(",", ",,")
