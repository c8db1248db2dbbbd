"""Which driver fulfils a role on a machine: a table for each role, with a line for each driver."""

from collections.abc import Callable, Iterator, Sequence

from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator
from resources.libraries.python.drivers.generators.builtin.wire import Sending
from resources.libraries.python.drivers.generators.ditg.driver import DitgGenerator
from resources.libraries.python.drivers.generators.ditg.requirements import missing as ditg_missing
from resources.libraries.python.drivers.generators.iperf3.driver import Iperf3Generator
from resources.libraries.python.drivers.generators.iperf3.driver import missing as iperf3_missing
from resources.libraries.python.drivers.generators.trex.driver import TrexGenerator
from resources.libraries.python.drivers.generators.trex.requirements import missing as trex_missing
from resources.libraries.python.drivers.generators.xdp.support import why_not
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.vswitches.linux_bridge import LinuxBridge
from resources.libraries.python.drivers.vswitches.ovs import programs
from resources.libraries.python.drivers.vswitches.ovs.driver import OpenVSwitch
from resources.libraries.python.drivers.vswitches.vpp.driver import VppSwitch
from resources.libraries.python.drivers.vswitches.vpp.requirements import missing as vpp_switch_missing
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.nodes import DutNode, TgNode
from resources.libraries.python.model.plan import Medium, Plan, Port
from resources.libraries.python.planning.media import OVS_WITH_DPDK, vswitch_of
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.testbed.deployment.owned_generator import OwnedGenerator
from resources.libraries.python.testbed.roles.generator import TrafficGenerator
from resources.libraries.python.testbed.roles.vswitch import VSwitch
from resources.libraries.python.testbed.worlds import function_makers
from resources.libraries.python.testbed.worlds.driver_context import Site


def _built_in(sending: Sending) -> Callable[[TgNode, Site], TrafficGenerator]:
    return lambda _, site: OwnedGenerator(
        BuiltInGenerator(site.plan, sending=sending), site.lock, lambda: site.fabric.wait_for_cables(GENERATOR)
    )


_SWITCHES: dict[str, Callable[[DutNode, Site], VSwitch]] = {
    "linux_bridge": lambda _, site: LinuxBridge(site.plan, site.fabric, site.vswitch),
    "ovs": lambda node, site: OpenVSwitch(
        site.plan,
        site.fabric,
        site.lock,
        settings=node.ovs,
        largest_frame_bytes=site.largest_frame_bytes,
        owner=site.vswitch,
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


_GENERATORS: dict[str, Callable[[TgNode, Site], TrafficGenerator]] = {
    "auto": _built_in("auto"),
    "xdp": _built_in("xdp"),
    "ring": _built_in("ring"),
    "ditg": lambda _, site: DitgGenerator(site.plan, site.fabric, site.lock),
    "iperf3": lambda _, site: Iperf3Generator(site.plan, site.fabric, site.lock),
    "trex": lambda node, site: TrexGenerator(
        site.plan, site.fabric, site.lock, node.trex, largest_frame_bytes=site.largest_frame_bytes
    ),
}
_MISSING_FOR_SWITCH: dict[str, Callable[[DutNode], Sequence[Problem]]] = {
    "ovs": lambda node: tuple(programs.missing("dpdk" if vswitch_of(node) == OVS_WITH_DPDK else node.ovs.ports)),
    "vpp": lambda node: tuple(vpp_switch_missing(node)),
}


_MISSING_FOR_GENERATOR: dict[str, Callable[[TgNode], Sequence[Problem]]] = {
    "trex": lambda node: tuple(trex_missing(node.trex)),
    "xdp": lambda _: tuple(_missing_for_xdp()),
    "ditg": lambda _: tuple(ditg_missing()),
    "iperf3": lambda _: tuple(iperf3_missing()),
}
"""What a machine lacks for a driver. VMs apart: a machine without them runs all else."""


def switch(node: DutNode, site: Site) -> VSwitch:
    """The driver of a DUT's vSwitch.

    Raises:
        Unsupported: There is none.
    """
    if node.vswitch not in _SWITCHES:
        raise Unsupported(f"machines have no driver for the vSwitch {node.vswitch}")
    return _SWITCHES[node.vswitch](node, site)


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
    """Physical ports that a node's generator or vSwitch drives without the kernel's driver, as the plan says."""
    ports = [port for link in plan.links if link.medium is Medium.CABLE for port in (link.a, link.b)]
    mine = [port for port in ports if (port.owner == GENERATOR) == isinstance(node, TgNode)]
    return tuple(port for port in mine if port.nic is not None and port.nic.attachment.unbinds)


def missing(node: TgNode | DutNode) -> Iterator[Problem]:
    """What the present machine lacks for a node's drivers."""
    if isinstance(node, TgNode):
        yield from _MISSING_FOR_GENERATOR.get(node.generator.driver, _nothing)(node)
        return
    yield from _MISSING_FOR_SWITCH.get(node.vswitch, _nothing)(node)
    yield from function_makers.missing(node)


def _nothing(_: TgNode | DutNode) -> Sequence[Problem]:
    return ()


def _missing_for_xdp() -> Iterator[Problem]:
    if reason := why_not():
        yield Problem(f"XDP live frames do not work here ({reason})", "set the generator's driver to auto")
