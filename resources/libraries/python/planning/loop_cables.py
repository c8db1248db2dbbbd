"""Cables from the traffic generator's machine to itself, over which the generator is qualified on its NICs. Pure."""

from collections.abc import Iterator
from itertools import combinations

from resources.libraries.python.model.base import Inconsistency
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.testbed.attachment import nic_kind
from resources.libraries.python.model.testbed.nodes import Interface, TgNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.edges import nic_of
from resources.libraries.python.planning.physical_ports import how_driven

VETH = "veth"
"""Kind of the ports of a loop-back without NICs."""

LoopCable = tuple[Nic, Nic]
"""Both ends are at the traffic generator."""


def loop_cables(topology: Topology) -> tuple[LoopCable, ...]:
    """Return the cables from one port of the TG to another of the NIC that tests are measured on; none elsewhere."""
    return tuple((nic_of(topology, cable.a), nic_of(topology, cable.b)) for cable in topology.loops)


def port_kind(topology: Topology) -> str:
    """Return the kind of the ports of a loop-back: model, driver, speed of NICs and what drives them, or veth."""
    return next(iter(_measured(topology).values())) or VETH if topology.loops else VETH


def no_cable(topology: Topology) -> str | None:
    """Return why a lab's generator cannot be looped back over its NICs; None where it can."""
    if topology.loops:
        return None
    name, measured = topology.tg_name, _measured(topology)
    ports = ", ".join(measured)
    if not topology.unused_loop_ports:
        return f"no cable joins two of {name}'s ports ({ports}), and a loop through a DUT would measure it too"
    if unknown := [port for port, kind in measured.items() if kind is None]:
        why = "so it is not known whether a cable to itself is of the same NIC"
        return f"nodes.{name}.interfaces: model and driver of {', '.join(unknown)} are unknown, {why}"
    kinds = {kind: [port for port in measured if measured[port] == kind] for kind in measured.values()}
    if len(kinds) > 1:
        rows = "; ".join(f"{', '.join(ports)} ({kind})" for kind, ports in kinds.items())
        return f"{name}'s ports are of {len(kinds)} kinds, and a qualification is of one: {rows}"
    cables = "; ".join(_unused(topology))
    return f"{name}'s ports {ports} are {next(iter(kinds))}, and no cable to itself joins two of that kind: {cables}"


def _measured(topology: Topology) -> dict[str, str | None]:
    """Kinds of the TG's ports that carry services, by port in the order of the file."""
    ends = {end.port for way in topology.ways for cable in way for end in (cable.a, cable.b) if not end.at_dut}
    return {port: _kind(each, topology.tg) for port, each in topology.tg.interfaces.items() if port in ends}


def _unused(topology: Topology) -> Iterator[str]:
    """Cables over which the generator is not qualified: `port5 - port6 (ice 25 Gb/s by the kernel)`."""
    for (a, one), (b, other) in combinations(topology.unused_loop_ports.items(), 2):
        if one.link == other.link:
            kinds = dict.fromkeys(_kind(each, topology.tg) or "unknown" for each in (one, other))
            yield f"{a} - {b} ({' - '.join(kinds)})"


def _kind(interface: Interface, tg: TgNode) -> str | None:
    """Model, driver, speed of a port of the TG, and what drives it; None where neither model nor driver is known."""
    try:
        kind = nic_kind(interface, tg)
    except Inconsistency as error:
        return str(error)
    if kind is None:
        return None
    speed = f"{kind.rate_bps / 1e9:g} Gb/s" if kind.rate_bps is not None else None
    words = " ".join(word for word in (kind.model, kind.driver, speed) if word)
    return f"{words} by {how_driven(interface, tg)}"
