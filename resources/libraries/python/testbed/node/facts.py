"""Facts of a node, collected in one round trip. Unknown is None."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from pydantic import Field, ValidationError

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.host.nics import device_users
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import Frozen, error_text
from resources.libraries.python.model.driver import Driver, InstalledProgram, KernelFeature
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.node.node_query import ask_all
from resources.libraries.python.testbed.node.scripts import driver_needs, leftovers, machine, ports

_DISKS = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - their free space is of interest
"""Runtimes of agents and cores of programs, records, sockets and shared memory are there."""


class Cpu(Frozen):
    """Processors."""

    model: str | None
    microcode: str | None
    hypervisor: bool
    online: str | None
    """Lists of logical CPUs such as `0-3,8`; empty for none."""
    allowed: str | None
    """Those that our processes may use."""
    isolated: str | None
    nohz_full: str | None
    governors: dict[str, tuple[int, ...]]
    """CPUs by frequency governor; empty where the kernel does not set frequencies."""
    smt: str | None
    """As the kernel says it: on, off, forceoff, notsupported, notimplemented."""
    boost: bool | None
    vulnerabilities: dict[str, str]
    """Mitigation of each by the kernel."""
    idle_states: tuple[str, ...] = ()
    """Idle states of the first CPU that are enabled, from the shallowest."""
    rows: tuple[tuple[int, int, int, int], ...]
    """CPU, core, socket, NUMA node."""


class HugePages(Frozen):
    """Huge pages of one size on one NUMA node."""

    size_kb: int
    total: int
    free: int


class MemoryNodeFacts(Frozen):
    """A NUMA node."""

    node: int
    total_mb: int
    free_mb: int
    hugepages: tuple[HugePages, ...]

    def free_hugepage_mb(self) -> int:
        """In pages of all sizes."""
        return sum(pages.free * pages.size_kb for pages in self.hugepages) // 1024


class Memory(Frozen):
    """Memory."""

    total_mb: int | None
    available_mb: int | None
    swap_total_mb: int
    swap_used_mb: int
    nodes: tuple[MemoryNodeFacts, ...]
    modules: dict[str, int] = Field(default_factory=dict)
    """Number of memory modules by size, type and speed, and of empty slots; empty where only root may see them."""
    numa_balancing: bool | None = None
    transparent_hugepages: str | None = None


class Firmware(Frozen):
    """Firmware of the machine, and the machine's model."""

    vendor: str | None = None
    version: str | None = None
    date: str | None = None
    product: str | None = None


class Clock(Frozen):
    """The node's clock."""

    synchronised: bool | None
    """Whether the kernel's clock is disciplined, such as by an NTP client."""
    error_s: float | None
    """The most it may be off, as the kernel estimates."""


class Disk(Frozen):
    """A file system."""

    free_mb: int
    total_mb: int
    free_files: int | None
    read_only: bool


_NOT_AFFECTED = "Not affected"


class MachineFacts(Frozen):
    """As `scripts.machine` says it."""

    hostname: str
    python: tuple[int, int, int]
    uid: int
    distribution: str | None
    kernel: str | None
    command_line: str | None
    boot_id: str | None
    up_s: float | None
    firmware: Firmware = Firmware()
    cpu: Cpu
    memory: Memory
    clock: Clock
    load: tuple[float, float, float] | None
    """Over 1, 5 and 15 minutes."""
    irqbalance: bool
    disks: dict[str, Disk | None]

    def settings(self) -> dict[str, str]:
        """Facts by which equal machines differ, by name; unknown ones are left out."""
        cpu, memory, firmware = self.cpu, self.memory, self.firmware
        found = {
            "machine": firmware.product,
            "BIOS": " ".join(filter(None, (firmware.vendor, firmware.version, firmware.date))),
            "governors": ", ".join(f"{name} x {len(cpus)}" for name, cpus in sorted(cpu.governors.items())),
            "turbo": on_off(cpu.boost),
            "idle states": ", ".join(cpu.idle_states),
            "memory modules": ", ".join(f"{count} x {label}" for label, count in sorted(memory.modules.items())),
            "NUMA balancing": on_off(memory.numa_balancing),
            "transparent huge pages": memory.transparent_hugepages,
            **{f"mitigation of {name}": text for name, text in cpu.vulnerabilities.items() if text != _NOT_AFFECTED},
        }
        return {name: text for name, text in found.items() if text}


def on_off(state: bool | None) -> str | None:
    """Return a state as a word; None if it is unknown."""
    return None if state is None else "on" if state else "off"


_ENCODED = {2.5: 0.8, 5.0: 0.8, 64.0: 1.0}
"""Share of the bits on a PCIe lane that carry data, by GT/s: 8b/10b, 128b/130b between, and flits without a code (PCI
Express Base Specification 6.0)."""


class PcieLink(Frozen):
    """The PCIe link that a port's NIC has, and the most that the NIC can do."""

    gt_per_s: float
    """Of each lane."""
    lanes: int
    most_gt_per_s: float
    most_lanes: int

    @property
    def reduced(self) -> bool:
        """Whether the NIC can do more."""
        return self.gt_per_s < self.most_gt_per_s or self.lanes < self.most_lanes

    @property
    def gbps(self) -> float:
        """What the link carries without its line code, in Gb/s each way."""
        return _gbps(self.gt_per_s, self.lanes)

    def __str__(self) -> str:
        has, could = (self.gt_per_s, self.lanes), (self.most_gt_per_s, self.most_lanes)
        return f"{_link(*has)} of {_link(*could)}" if self.reduced else _link(*has)


def _link(gt_per_s: float, lanes: int) -> str:
    return f"{gt_per_s:g} GT/s x{lanes} ({_gbps(gt_per_s, lanes):.0f} Gb/s)"


def _gbps(gt_per_s: float, lanes: int) -> float:
    return gt_per_s * _ENCODED.get(gt_per_s, 128 / 130) * lanes


class PauseFrames(Frozen):
    """Flow control of a port by Ethernet pause frames (IEEE 802.3, annex 31B)."""

    rx: bool
    """It stops sending when it receives one."""
    tx: bool
    """It sends them when its receive queues are full."""

    def __str__(self) -> str:
        return f"rx {on_off(self.rx)}, tx {on_off(self.tx)}"


class RingSizes(Frozen):
    """Descriptors of each queue of a port."""

    rx: int
    tx: int
    most_rx: int
    most_tx: int

    def __str__(self) -> str:
        return f"rx {self.rx} of {self.most_rx}, tx {self.tx} of {self.most_tx}"


class PortFacts(Frozen):
    """A port that the topology names."""

    device: str | None
    """The kernel's name; None where the kernel does not drive it."""
    pci_address: str | None
    driver: str | None
    numa_node: int | None
    vendor: str | None
    model: str | None
    iommu_group: str | None
    virtual_functions: int
    """How many it has."""
    most_virtual_functions: int | None = None
    """How many it can have; None where it is no PCI device."""
    pcie: PcieLink | None
    pause: PauseFrames | None
    """None where the kernel does not drive it, or its driver has no flow control."""
    driver_version: str | None = None
    firmware: str | None = None
    fec: str | None = None
    """Forward error correction in use: off, RS, BaseR or LLRS; None where the port has none, or no link."""
    rings: RingSizes | None = None
    coalescing: str | None = None
    """When packets cause an interrupt."""
    module: str | None = None
    """Vendor and part number of its transceiver or cable."""
    partner_mbps: int | None = None
    """The highest speed that the link partner advertises; None without negotiation."""
    mac_address: str | None
    up: bool | None
    carrier: bool | None
    """None while it is down, when it is unknown."""
    speed_mbps: int | None
    mtu: int | None
    addresses: tuple[str, ...]
    default_route: bool
    master: str | None

    def settings(self, *, kept: bool) -> dict[str, str]:
        """Facts by which equal ports differ, by name; unknown ones are left out.

        `kept`: Whether a run leaves the port to the kernel's driver, which has settings of its own.
        """
        found: dict[str, object] = {
            "PCIe link": self.pcie,
            "NIC": self.nic,
            "firmware": self.firmware,
            "module": self.module,
        }
        if kept:
            found |= {
                "driver": " ".join(filter(None, (self.driver, self.driver_version))),
                "pause frames": self.pause,
                "FEC": self.fec,
                "ring sizes": self.rings,
                "coalescing": self.coalescing,
                "speed": f"{self.speed_mbps} Mb/s" if self.speed_mbps else None,
                "speed of the link partner": f"up to {self.partner_mbps} Mb/s" if self.partner_mbps else None,
            }
        return {name: str(value) for name, value in found.items() if value}

    @property
    def nic(self) -> str | None:
        """Vendor and device id, such as `8086:1592`."""
        ids = [text.removeprefix("0x") for text in (self.vendor, self.model) if text]
        return ":".join(ids) if len(ids) == 2 else None


class PortInventory(Frozen):
    """As `scripts.ports` says it."""

    ports: dict[str, PortFacts | None]
    """By name in the topology; None for one that is not there."""
    vfio_pci: str | None
    """`loaded`, `available`, or None; so are the next two."""
    uio_pci_generic: str | None
    igb_uio: str | None
    iommu_groups: int
    vfio_without_iommu: bool
    interfaces: tuple[str, ...]


class DeviceUser(Frozen):
    """A program of user space that has a device open."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.command})"


class DeviceUsers(Frozen):
    """As `drivers.host.nics.device_users` says it, of ports with a PCI address."""

    users: dict[str, tuple[DeviceUser, ...]]
    """By PCI address."""


class DriverFacts(Frozen):
    """As `scripts.driver_needs` says it."""

    programs: dict[str, InstalledProgram]
    """Programs of the node's drivers, by path or name."""
    kernel: dict[str, bool | None]
    """Whether the kernel has features that its drivers need, by label."""


class Owner(Frozen):
    """The process of a run."""

    pid: int
    start_ticks: int
    command: str
    alive: bool
    user: str
    since: str


class LeftProcess(Frozen):
    """A worker that has outlived its run, or works for one now."""

    pid: int
    command: str


class StoredRuntime(Frozen):
    """A folder of an agent runtime: sources or packages."""

    name: str
    mb: int
    unused_days: float

    @property
    def title(self) -> str:
        """Such as `runtime 0123456789ab`."""
        kind, _, digest = self.name.rpartition("-")
        return f"{kind or 'runtime'} {digest[:12]}"


class PreparedSettings(Frozen):
    """Settings that were changed for measuring, and are put back when the testbed is released."""

    by: str
    since: str
    settings: int
    """How many."""


class Leftovers(Frozen):
    """As `scripts.leftovers` says it: of a run that lives while `in_use`, else of one that was killed."""

    in_use: bool
    problem: str | None
    owner: Owner | None
    namespaces: tuple[str, ...]
    processes: tuple[LeftProcess, ...]
    groups: tuple[str, ...] = ()
    """Control groups, by their folders."""
    containers: tuple[str, ...] = ()
    """Containers of a container engine, by engine and name."""
    folders: tuple[str, ...] = ()
    settings: dict[str, str]
    """With the values they had before."""
    ports: tuple[str, ...]
    bindings: tuple[str, ...]
    others: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Anything else on the record by its key, such as virtual functions and what packages of drivers declare."""
    unclaimed: tuple[str, ...]
    """Namespaces that are named like ours and are on no record."""
    runtimes: tuple[StoredRuntime, ...]
    prepared: PreparedSettings | None = None

    @property
    def who(self) -> str:
        """The process of the run."""
        if self.owner is None:
            return "of an unknown owner"
        return f"pid {self.owner.pid} of {self.owner.user}: {self.owner.command}"

    def lines(self) -> tuple[str, ...]:
        """Return a line for each thing that has to be removed or restored."""
        return (
            *(f"process {each.pid} ({each.command})" for each in self.processes),
            *(f"network namespace {name}" for name in self.namespaces),
            *(f"control group {each}" for each in self.groups),
            *self.containers,
            *(f"folder {each}" for each in self.folders),
            *(f"port in use: {each}" for each in self.ports),
            *(f"driver of a port: {each}" for each in self.bindings),
            *(f"{_label(key)} {each}" for key, entries in self.others.items() for each in entries),
            *(f"setting {name}, which was {value}" for name, value in self.settings.items()),
        )


def _label(key: str) -> str:
    """Description before entries of the record: that of the package of drivers which declares them, or their key."""
    declared = driver_registry.leftovers().get(key)
    return declared.label if declared is not None else f"{key.replace('_', ' ')}:"


class Facts(Frozen):
    """All that one node says about itself, and how long the question took."""

    machine: MachineFacts
    ports: PortInventory
    device_users: DeviceUsers
    driver_needs: DriverFacts
    packages: dict[str, dict[str, Any]]
    """Answers to `NodeCheck`s, by their keys."""
    leftovers: Leftovers
    clock_offset_s: float
    """Its clock minus ours, at most `clock_error_s` wrong."""
    clock_error_s: float
    round_trip_s: float

    def layout_of(self, node: TgNode | DutNode) -> CpuLayout:
        """Logical CPUs of the node as the file lists them, or as they are."""
        return layout(self.machine.cpu.rows) if node.cpus == "discover" else node.layout


def _questions(node: TgNode | DutNode) -> dict[Any, dict[str, Any]]:
    """Facts to ask of a node of a topology."""
    every = (each for driver in drivers_of(node) for each in driver.programs if each.version is not None)
    programs = {each.name: each for each in every}.values()
    checks = {import_module(each.script): each.arguments(node) for each in driver_registry.node_checks()}
    return {
        ports: {"ports": named_ports(node)},
        device_users: {"devices": {each.pci_address: None for each in node.interfaces.values() if each.pci_address}},
        driver_needs: {
            "programs": {each.on(node): each.version for each in programs},
            "kernel": {each.label: (each.config, each.module) for each in kernel_features_of(node)},
        },
        leftovers: {},
        machine: {"disks": _DISKS},
        **{module: dict(arguments) for module, arguments in checks.items() if arguments is not None},
    }


def named_ports(node: TgNode | DutNode) -> dict[str, dict[str, str | None]]:
    """The ports of a node that are to be found by their kernel names or PCI addresses, as in `scripts.ports`."""
    return {
        name: {"device": port.device, "pci_address": port.pci_address}
        for name, port in node.interfaces.items()
        if port.device or port.pci_address
    }


def drivers_of(node: TgNode | DutNode) -> list[Driver]:
    """The drivers that a node can have."""
    if isinstance(node, TgNode):
        return [driver_registry.generators()[node.generator.driver]]
    kinds = (*node.offered, *([node.vms] if node.vms is not None else []))
    return [driver_registry.vswitches()[node.vswitch], *(driver_registry.functions()[kind] for kind in kinds)]


def kernel_features_of(node: TgNode | DutNode) -> dict[KernelFeature, list[Driver]]:
    """Features of the kernel that they need with the node's settings, each with those that need it."""
    found: dict[KernelFeature, list[Driver]] = {}
    for driver in drivers_of(node):
        for feature in driver.kernel:
            if feature.when(node):
                found.setdefault(feature, []).append(driver)
    return found


def gather(
    connection: Connection, nodes: Iterable[TgNode | DutNode], python: str = "python3", *, root: bool = True
) -> Facts:
    """Ask a machine in one round trip for all that may matter.

    `nodes`: What it is in the topology; both nodes where one machine has all of it.

    Raises:
        CsitError: It cannot be asked, or the answer is not of this version.
    """
    asked: dict[Any, dict[str, Any]] = {}
    for node in nodes:
        for module, arguments in _questions(node).items():
            known = asked.setdefault(module, {})
            for key, value in arguments.items():
                both = isinstance(value, dict) and isinstance(known.get(key), dict)
                known[key] = {**known[key], **value} if both else value
    node_answers = ask_all(connection, asked, python=python, within_s=60.0, root=root)
    answers = dict(node_answers.by_program)
    keys = [each.key for each in driver_registry.node_checks() if each.key in answers]
    try:
        return Facts.model_validate(
            {
                "packages": {key: answers.pop(key) for key in keys},
                **answers,
                "clock_offset_s": node_answers.clock_offset_s,
                "clock_error_s": node_answers.clock_error_s,
                "round_trip_s": node_answers.round_trip_s,
            }
        )
    except ValidationError as error:
        raise CsitError(f"{connection.name}: {python} answered with something else: {error_text(error)}") from error
