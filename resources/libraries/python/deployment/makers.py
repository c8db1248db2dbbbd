"""Which driver fulfils a role on a machine: a table for each role, with a line for each driver."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from resources.libraries.python.deployment.owned import OwnedGenerator
from resources.libraries.python.drivers.function.linux_router import LinuxRouters
from resources.libraries.python.drivers.function.nftables import rulesets
from resources.libraries.python.drivers.function.nftables.driver import NftablesRouters
from resources.libraries.python.drivers.function.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.function.several import Several
from resources.libraries.python.drivers.function.testpmd.driver import Testpmds
from resources.libraries.python.drivers.function.testpmd.driver import missing as testpmd_missing
from resources.libraries.python.drivers.function.vm.driver import VirtualMachines
from resources.libraries.python.drivers.function.vm.requirements import missing as vm_missing
from resources.libraries.python.drivers.function.vm_vpp.inside import VppInside
from resources.libraries.python.drivers.function.vm_vpp.requirements import missing as vm_vpp_missing
from resources.libraries.python.drivers.function.vpp.driver import VppRouters
from resources.libraries.python.drivers.function.vpp.requirements import missing as vpp_missing
from resources.libraries.python.drivers.generator.builtin.driver import BuiltInGenerator
from resources.libraries.python.drivers.generator.builtin.wire import Sending
from resources.libraries.python.drivers.generator.ditg.driver import DitgGenerator
from resources.libraries.python.drivers.generator.ditg.requirements import missing as ditg_missing
from resources.libraries.python.drivers.generator.trex.driver import TrexGenerator
from resources.libraries.python.drivers.generator.trex.ports import table_of as trex_ports
from resources.libraries.python.drivers.generator.trex.requirements import missing as trex_missing
from resources.libraries.python.drivers.generator.xdp.machine import why_not
from resources.libraries.python.drivers.host.fabric import Fabric
from resources.libraries.python.drivers.host.ownership import MachineLock
from resources.libraries.python.drivers.host.preflight import Problem
from resources.libraries.python.drivers.switch.linux_bridge import LinuxBridge
from resources.libraries.python.drivers.switch.ovs import programs
from resources.libraries.python.drivers.switch.ovs.driver import OpenVSwitch
from resources.libraries.python.drivers.switch.vpp.driver import VppSwitch
from resources.libraries.python.drivers.switch.vpp.requirements import missing as vpp_switch_missing
from resources.libraries.python.drivers.vpp.interfaces import drives_by_dpdk
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.cell import NfKind
from resources.libraries.python.model.nodes import DutNode, TgNode
from resources.libraries.python.model.plan import Medium, NfPlan, Plan, Port
from resources.libraries.python.planning.names import GENERATOR, VSWITCH, is_vswitch
from resources.libraries.python.roles.function import NetworkFunctions
from resources.libraries.python.roles.generator import TrafficGenerator
from resources.libraries.python.roles.vswitch import VSwitch


@dataclass(frozen=True, slots=True)
class Site:
    """What drivers stand on: a machine with its share of a plan."""

    plan: Plan
    fabric: Fabric
    lock: MachineLock
    largest_frame_bytes: int
    """L2, FCS included."""
    vswitch: str = VSWITCH
    """Which of the plan's vSwitches is on this machine."""


def _built_in(sending: Sending) -> Callable[[TgNode, Site], TrafficGenerator]:
    return lambda _, site: OwnedGenerator(
        BuiltInGenerator(site.plan, sending=sending), site.lock, lambda: site.fabric.wait_for_cables(GENERATOR)
    )


_SWITCHES: dict[str, Callable[[DutNode, Site], VSwitch]] = {
    "linux_bridge": lambda _, site: LinuxBridge(site.plan, site.fabric, site.vswitch),
    "ovs": lambda node, site: OpenVSwitch(
        site.plan, site.fabric, site.lock, ports=node.ovs.ports, largest_frame_bytes=site.largest_frame_bytes
    ),
    "vpp": lambda node, site: VppSwitch(
        site.plan,
        site.fabric,
        site.lock,
        node.vpp,
        largest_frame_bytes=site.largest_frame_bytes,
        owner=site.vswitch,
    ),
}
_FUNCTIONS: dict[NfKind, Callable[[DutNode, Site, Sequence[NfPlan]], NetworkFunctions]] = {
    NfKind.LINUX_ROUTER: lambda _, site, row: LinuxRouters(row, site.fabric),
    NfKind.LINUX_FIREWALL: lambda node, site, row: NftablesRouters(
        row, site.fabric, rulesets.firewall(node.firewall.rules)
    ),
    NfKind.LINUX_NAT: lambda _, site, row: NftablesRouters(row, site.fabric, rulesets.nat()),
    NfKind.QEMU: lambda node, site, row: VirtualMachines(row, site.plan, site.fabric, site.lock, node.vm),
    NfKind.QEMU_VPP: lambda node, site, row: VirtualMachines(
        row,
        site.plan,
        site.fabric,
        site.lock,
        node.vm,
        inside=VppInside(site.plan, node, largest_frame_bytes=site.largest_frame_bytes),
    ),
    NfKind.TESTPMD: lambda _, site, row: Testpmds(
        row, site.plan, site.fabric, site.lock, largest_frame_bytes=site.largest_frame_bytes
    ),
    NfKind.VPP: lambda node, site, row: VppRouters(
        row, site.plan, site.fabric, site.lock, node.vpp, largest_frame_bytes=site.largest_frame_bytes
    ),
}
_GENERATORS: dict[str, Callable[[TgNode, Site], TrafficGenerator]] = {
    "auto": _built_in("auto"),
    "xdp": _built_in("xdp"),
    "ring": _built_in("ring"),
    "ditg": lambda _, site: DitgGenerator(site.plan, site.fabric, site.lock),
    "trex": lambda node, site: TrexGenerator(
        site.plan, site.fabric, site.lock, node.trex, largest_frame_bytes=site.largest_frame_bytes
    ),
}
_MISSING_FOR_SWITCH: dict[str, Callable[[DutNode], Sequence[Problem]]] = {
    "ovs": lambda node: tuple(programs.missing(node.ovs.ports)),
    "vpp": lambda node: tuple(vpp_switch_missing(node)),
}
_MISSING_FOR_FUNCTIONS: dict[NfKind, Callable[[DutNode], Sequence[Problem]]] = {
    NfKind.LINUX_FIREWALL: lambda _: tuple(nft_missing()),
    NfKind.LINUX_NAT: lambda _: tuple(nft_missing()),
    NfKind.TESTPMD: lambda _: tuple(testpmd_missing()),
    NfKind.VPP: lambda node: tuple(vpp_missing(node.vpp)),
}
_MISSING_FOR_VMS: dict[NfKind, Callable[[DutNode], Sequence[Problem]]] = {
    NfKind.QEMU: lambda _: tuple(vm_missing()),
    NfKind.QEMU_VPP: lambda node: tuple(vm_vpp_missing(node.vpp)),
}
_MISSING_FOR_GENERATOR: dict[str, Callable[[TgNode], Sequence[Problem]]] = {
    "trex": lambda node: tuple(trex_missing(node.trex)),
    "xdp": lambda _: tuple(_missing_for_xdp()),
    "ditg": lambda _: tuple(ditg_missing()),
}
"""What a machine lacks for a driver. VMs apart: a machine without them runs all else."""
_ON_REQUEST = frozenset({NfKind.LINUX_FIREWALL, NfKind.LINUX_NAT})
"""Kinds that a topology offers beside its default: a machine that lacks something for them runs all else too."""


def switch(node: DutNode, site: Site) -> VSwitch:
    """The driver of a DUT's vSwitch.

    Raises:
        Unsupported: There is none.
    """
    if node.vswitch not in _SWITCHES:
        raise Unsupported(f"machines have no driver for the vSwitch {node.vswitch}")
    return _SWITCHES[node.vswitch](node, site)


def functions(node: DutNode, site: Site, row: Sequence[NfPlan]) -> NetworkFunctions:
    """The drivers of NFs, one for each kind, as one.

    Raises:
        Unsupported: There is none for a kind.
    """
    groups: dict[NfKind, list[NfPlan]] = {}
    for function in row:
        groups.setdefault(function.kind, []).append(function)
    for kind in groups:
        if kind not in _FUNCTIONS:
            raise Unsupported(f"machines have no driver for NFs of kind {kind}")
    return Several(_FUNCTIONS[kind](node, site, group) for kind, group in groups.items())


def generator(node: TgNode, site: Site) -> TrafficGenerator:
    """The driver of a TG's generator.

    Raises:
        Unsupported: There is none.
    """
    if (name := node.generator.driver) not in _GENERATORS:
        raise Unsupported(f"machines have no driver for the generator {name}")
    return _GENERATORS[name](node, site)


def known_generator(name: str) -> bool:
    """Whether there is a driver for a generator of that name."""
    return name in _GENERATORS


def past_the_kernel(node: TgNode | DutNode, plan: Plan) -> tuple[Port, ...]:
    """Physical ports that the driver of a node's role takes from the kernel, to drive them itself."""
    ports = [port for link in plan.links if link.medium is Medium.CABLE for port in (link.a, link.b)]
    if isinstance(node, TgNode):
        polled = node.generator.driver == "trex" and trex_ports(plan, node.trex).dpdk
        return tuple(port for port in ports if polled and port.owner == GENERATOR)
    polled = node.vswitch == "vpp"
    return tuple(port for port in ports if polled and is_vswitch(port.owner) and port.nic and drives_by_dpdk(port.nic))


def missing(node: TgNode | DutNode) -> Iterator[Problem]:
    """What the present machine lacks for a node's drivers."""
    if isinstance(node, TgNode):
        yield from _MISSING_FOR_GENERATOR.get(node.generator.driver, _nothing)(node)
        return
    yield from _MISSING_FOR_SWITCH.get(node.vswitch, _nothing)(node)
    for kind in node.containers:
        if kind is node.containers[0] or kind not in _ON_REQUEST:
            yield from _MISSING_FOR_FUNCTIONS.get(kind, _nothing)(node)


def missing_for_some(node: DutNode) -> Iterator[Problem]:
    """What the present machine lacks for a node's virtual machines, or for other NFs that are there on request."""
    if node.vms is not None:
        yield from _MISSING_FOR_VMS.get(node.vms, _nothing)(node)
    requested = (kind for kind in node.containers[1:] if kind in _ON_REQUEST)
    yield from dict.fromkeys(problem for kind in requested for problem in _MISSING_FOR_FUNCTIONS[kind](node))


def _nothing(_: TgNode | DutNode) -> Sequence[Problem]:
    return ()


def _missing_for_xdp() -> Iterator[Problem]:
    if reason := why_not():
        yield Problem(f"XDP live frames do not work here ({reason})", "set the generator's driver to auto")
