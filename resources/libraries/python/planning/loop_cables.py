"""Cables from the traffic generator's machine to itself, over which the generator is qualified on its NICs. Pure."""

from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.testbed.attachment import NICS, kernel_driver
from resources.libraries.python.model.testbed.cabling import Cable
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.edges import nic_of
from resources.libraries.python.planning.physical_ports import how_driven

VETH = "veth"
"""Kind of the ports of a loop-back without NICs."""

LoopCable = tuple[Nic, Nic]
"""Both ends are at the traffic generator."""


def loop_cables(topology: Topology) -> tuple[LoopCable, ...]:
    """Return the cables from one port of the TG to another of the NIC that tests are measured on; none elsewhere."""
    kinds = _measured(topology).values()
    if len(set(kinds)) != 1 or None in kinds:
        return ()
    return tuple(
        (nic_of(topology, cable.a), nic_of(topology, cable.b))
        for cable in topology.loops
        if {_kind(topology, end.port) for end in (cable.a, cable.b)} == set(kinds)
    )


def port_kind(topology: Topology) -> str:
    """Return the kind of the ports of a loop-back: model, driver, speed of NICs and what drives them, or veth."""
    return next(iter(_measured(topology).values())) or VETH if loop_cables(topology) else VETH


def no_cable(topology: Topology) -> str | None:
    """Return why a lab's generator cannot be looped back over its NICs; None where it can."""
    if loop_cables(topology):
        return None
    name, measured = topology.tg_name, _measured(topology)
    ports = ", ".join(measured)
    if not topology.loops:
        return f"no cable joins two of {name}'s ports ({ports}), and a loop through a DUT would measure it too"
    if None in measured.values():
        return f"nodes.{name}.interfaces: neither model nor driver says of which NIC {ports} are"
    cables = "; ".join(f"{cable.a.port} - {cable.b.port} ({_kinds(topology, cable)})" for cable in topology.loops)
    kinds = " and ".join(sorted({kind for kind in measured.values() if kind is not None}))
    return f"{name}'s ports {ports} are {kinds}, and it has a cable to itself of another NIC: {cables}"


def _measured(topology: Topology) -> dict[str, str | None]:
    """Kinds of the TG's ports that carry services, by port in the order of the file."""
    ends = {end.port for way in topology.ways for cable in way for end in (cable.a, cable.b) if not end.at_dut}
    return {port: _kind(topology, port) for port in topology.tg.interfaces if port in ends}


def _kinds(topology: Topology, cable: Cable) -> str:
    return " - ".join(dict.fromkeys(_kind(topology, end.port) or "unknown" for end in (cable.a, cable.b)))


def _kind(topology: Topology, port: str) -> str | None:
    """Model, driver, speed of a port of the TG, and what drives it; None where neither model nor driver is known."""
    interface = topology.tg.interfaces[port]
    driver = kernel_driver(interface)
    if interface.model is None and driver is None:
        return None
    known = NICS.get(interface.model or "")
    rate_bps = interface.rate_bps or (known.rate_bps if known else None)
    speed = f"{rate_bps / 1e9:g} Gb/s" if rate_bps is not None else None
    words = " ".join(word for word in (interface.model, driver, speed) if word)
    return f"{words} by {how_driven(interface, topology.tg)}"
