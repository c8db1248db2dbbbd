"""The vSwitch as VPP: a learning bridge domain for each L2 segment, RX queues on planned workers.

The plan says how a physical port is attached. Which of VPP's drivers takes it depends on the installation: one that was
built without DPDK drives a virtio, vmxnet3 or iavf port by itself, and an mlx5 port by its rdma driver.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.host.cpu.memory import too_few
from resources.libraries.python.drivers.host.nics.port_inventory import pci_ids
from resources.libraries.python.drivers.host.programs.disturbances import Disturbed, Steps
from resources.libraries.python.drivers.vpp import Vpp, acl, pool_mb, sized
from resources.libraries.python.drivers.vpp.configuration import commands
from resources.libraries.python.drivers.vpp.installation import Site, plugins, remove_folder
from resources.libraries.python.drivers.vpp.installation import missing as program_missing
from resources.libraries.python.drivers.vpp.interfaces import PLUGINS, InterfaceKind, VppInterface, interfaces_of
from resources.libraries.python.drivers.vpp.member import VppMember, plugins_for
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.plan import Nic, Segment
from resources.libraries.python.model.testbed.attachment import Attachment
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.planning.media import to_vswitch
from resources.libraries.python.planning.placement.queues import ports_of
from resources.libraries.python.testbed.roles.part import VSwitch

_log = logging.getLogger(__name__)


_NATIVE_OF_DRIVER = {
    "virtio_net": InterfaceKind.VIRTIO_PCI,
    "virtio-pci": InterfaceKind.VIRTIO_PCI,
    "vmxnet3": InterfaceKind.VMXNET3,
    "iavf": InterfaceKind.AVF,
}
_NATIVE_OF_VENDOR = {"0x1af4": InterfaceKind.VIRTIO_PCI}
_NATIVE_OF_DEVICE = {
    ("0x15ad", "0x07b0"): InterfaceKind.VMXNET3,
    ("0x8086", "0x154c"): InterfaceKind.AVF,
    ("0x8086", "0x1889"): InterfaceKind.AVF,
    ("0x8086", "0x37cd"): InterfaceKind.AVF,
}
"""By PCI ids, as sysfs writes them."""


def bridging(segments: Sequence[Segment], interfaces: Sequence[VppInterface]) -> tuple[str, ...]:
    """Join ports to segments and bring them up.

    `segments`: Those whose members are ports of these interfaces.
    `interfaces`: Made and named already.
    """
    members = {
        port: {"name": each.name_of(vlan), "tagged": vlan is not None}
        for each in interfaces
        for port, vlan in each.ports
    }
    parents = [each.name for each in interfaces]
    tagged = [member["name"] for member in members.values() if member["tagged"]]
    return commands(
        "vpp-switch.j2",
        {
            "segments": [[members[name] for name in segment.members] for segment in segments],
            "names": [*parents, *tagged],
        },
    )


def kind_of(
    nic: Nic, plugins: Collection[str], ids: tuple[str | None, str | None] = (None, None), *, only_dpdk: bool = False
) -> InterfaceKind:
    """Choose VPP's driver for a physical port.

    `nic`: Its kernel driver, where the topology says it.
    `ids`: Its PCI vendor and device, where the machine says them.
    `only_dpdk`: whether the topology asks for DPDK in so many words.

    Raises:
        Unsupported: The installation has no driver for it.
    """
    vendor, device = (each or "" for each in ids)
    by_id = _NATIVE_OF_DEVICE.get((vendor, device)) or _NATIVE_OF_VENDOR.get(vendor)
    native = by_id or _NATIVE_OF_DRIVER.get(nic.driver or "")
    match nic.attachment:
        case Attachment.KERNEL:
            kinds: tuple[InterfaceKind | None, ...] = (InterfaceKind.HOST,)
        case Attachment.AF_XDP:
            kinds = (InterfaceKind.AF_XDP,)
        case Attachment.RDMA:
            kinds = (InterfaceKind.RDMA,)
        case Attachment.NATIVE:
            kinds = (native,)
        case Attachment.BIFURCATED:
            kinds = (InterfaceKind.DPDK,) if only_dpdk else (InterfaceKind.DPDK, InterfaceKind.RDMA)
        case Attachment.DPDK:
            kinds = (InterfaceKind.DPDK,) if only_dpdk else (InterfaceKind.DPDK, native)
    there = [kind for kind in kinds if kind is not None and PLUGINS.get(kind, "") in {"", *plugins}]
    if there:
        return there[0]
    wanted = sorted({PLUGINS[kind] for kind in kinds if kind is not None and kind in PLUGINS})
    lacks = f"lacks the plugin {' or '.join(wanted)}" if wanted else "has no driver of its own"
    raise Unsupported(
        f"{nic.port} ({nic.pci_address or nic.device}): this VPP {lacks} for a port attached by {nic.attachment}; "
        "install vpp-plugin-dpdk, or say `vpp: {ports: af_packet}` for the kernel's sockets"
    )


class VppSwitch(Disturbed, VSwitch):
    """VPP as vSwitch: bridge domains in L2, or routes."""

    def __init__(self, node: DutNode, context: DriverContext) -> None:
        self._owner = context.vswitch
        ports = ports_of(context.plan.links, context.plan.cores, self._owner)
        settings = sized(node.settings(Vpp), ports)
        self._site = Site(context.plan, context.fabric, context.lock, settings, context.largest_frame_bytes)
        self._member: VppMember | None = None

    def start(self) -> None:
        """Start VPP, make its interfaces, connect all segments.

        The other ends of shared memory come later; so its receive queues are placed when they are first looked at.

        Raises:
            CsitError: VPP ended, or refused something.
            NotReady: It does not answer.
            Unsupported: It cannot have one of the ports.
        """
        plan = self._site.plan
        interfaces = interfaces_of(plan, self._owner, self._site.folder, self._kind_of)
        self._member = member = VppMember(self._site, self._owner, "VPP of the vSwitch", interfaces)
        pages = self._site.pages(1)
        if pages.size == "4k" and any(each.kind is InterfaceKind.DPDK for each in interfaces):
            raise too_few("VPP on DPDK", pool_mb(self._site.settings), plan.cores.numa_node)
        member.start(pages, plugins_for(interfaces, self._site.settings))
        member.instance.wait_ready()
        member.make_interfaces()
        ports = {port for each in interfaces for port, _ in each.ports}
        segments = [segment for segment in plan.segments if ports.issuperset(segment.members)]
        member.instance.do(bridging(segments, interfaces))
        _log.info("VPP %s: %d interfaces in %d bridge domains", member.instance.version, len(interfaces), len(segments))

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        if target != self._owner:
            return None
        return self._running.steps(event, target, self._restart)

    def _restart(self) -> None:
        """Start VPP again after it was killed, with the same configuration.

        Raises:
            CsitError: VPP ended, or refused something.
            NotReady: It does not answer, or shared memory is not connected.
        """
        self._end(self._running)
        self.start()
        self._running.wait_connected()
        self._running.place_queues()

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each port is received from; a port of the kernel by two threads, the kernel's and a worker.

        Empty where one is gone. Queues that have come into being since the last look are placed first.
        """
        return self._running.affinity()

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._running.counters()

    def without_link(self) -> tuple[str, ...]:
        return self._running.without_link()

    def begin_accounts(self) -> tuple[str, ...]:
        self._running.instance.do(["clear runtime"])
        return (self._owner,)

    def accounts(self) -> tuple[NodeCost, ...]:
        return self._running.accounts()

    def facts(self) -> Mapping[str, str]:
        """Version, threads, memory, and what its threads did between the last two readings of the counters."""
        return (
            {} if self._member is None else {"vswitch": f"VPP {self._member.instance.version}", **self._member.facts()}
        )

    def problems(self) -> tuple[str, ...]:
        return ("the vSwitch is not started",) if self._member is None else self._member.problems()

    def stop(self) -> None:
        self.call_off()
        member, self._member = self._member, None
        if member is not None:
            self._end(member)

    def _end(self, member: VppMember) -> None:
        member.instance.request_end()
        member.instance.wait_end()
        remove_folder(self._site.folder, self._owner)

    def _kind_of(self, nic: Nic) -> InterfaceKind:
        """VPP's driver for a physical port, by what it is and what this installation has."""
        ids = (None, None) if nic.pci_address is None else pci_ids(nic.pci_address)
        settings = self._site.settings
        return kind_of(nic, plugins(self._site.prefix), ids, only_dpdk=settings.ports == "dpdk")

    @property
    def _running(self) -> VppMember:
        if self._member is None:
            raise CsitError("the vSwitch is not started")
        return self._member


def missing(node: DutNode) -> Iterator[PreflightProblem]:
    """Requirements of the ports of a node's vSwitch that this machine lacks."""
    plugins = ["af_packet", *acl(node.settings(Vpp))]
    plugins += ["memif"] if any(to_vswitch(node.vswitch, kind) is Medium.MEMIF for kind in node.containers) else []
    plugins += ["vhost"] if node.vms is not None else []
    yield from program_missing(Path(node.settings(Vpp).prefix), plugins)
