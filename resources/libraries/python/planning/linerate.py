"""The highest rate that cables and NICs of a plan can carry: the upper bound of a search.

On the wire a frame takes its own bytes (L2, FCS included) and 20 more: preamble and start delimiter 8, gap between
frames 12. A VLAN tag takes another 4. Mixes count by their mean.

All flows of a trial have the same rate. So the slowest place on any way decides: its packets per second over the flows
that go there in one direction.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Link, Nic, Plan, Port
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.testbed.attachment import NICS, nominal_rate_bps
from resources.libraries.python.model.testbed.nodes import Interface
from resources.libraries.python.quantities import rate

L1_OVERHEAD_BYTES = 20
VLAN_BYTES = 4


@dataclass(frozen=True, slots=True)
class MaxRate:
    """The highest load, and the place that decides it."""

    flow_pps: float
    """Rate of one instance in one direction."""
    direction_pps: float
    """Rate of all instances in one direction."""
    aggregate_pps: float
    """Rate of all instances in both directions: what a trial's load is."""
    reason: str
    """The place with its numbers."""


def line_rate_pps(rate_bps: float, frame: Frame, extra_bytes: int = 0) -> float:
    """Frames per second that fill a line, one direction.

    `rate_bps`: L1 bits per second.
    `extra_bytes`: What each frame has on this line beside its size, such as a VLAN tag.
    """
    return rate_bps / (8 * (frame.mean_bytes + extra_bytes + L1_OVERHEAD_BYTES))


def port_rate_pps(nic: Nic | Interface, frame: Frame, extra_bytes: int = 0) -> tuple[float, str] | None:
    """Frames per second of a port, one direction, and why; None where its speed is not known.

    The speed is that of the topology, otherwise that of the model, whose packet rate may be below line rate.
    """
    known = NICS.get(nic.model or "")
    rate_bps = nominal_rate_bps(nic.rate_bps, nic.model)
    if rate_bps is None:
        return None
    line_pps = line_rate_pps(rate_bps, frame, extra_bytes)
    if known and known.most_pps is not None and known.most_pps < line_pps:
        return float(known.most_pps), f"{nic.model} is limited to {rate(known.most_pps)}"
    return line_pps, f"{rate_bps / 1e9:g} Gb/s are {rate(line_pps)} of {frame.name}"


def max_rate(plan: Plan, frame: Frame) -> MaxRate | None:
    """The highest load of a plan; None if no port on its paths has a known speed, as on one machine.

    Cables are full duplex, and forward and reverse traffic of an instance takes the same ones.
    """
    slowest = min(_places(plan, frame), default=None)
    if slowest is None:
        return None
    flow_pps, reason = slowest
    instances = len({flow.instance for flow in plan.flows})
    return MaxRate(
        flow_pps=flow_pps,
        direction_pps=flow_pps * instances,
        aggregate_pps=flow_pps * instances * len(Direction),
        reason=reason,
    )


def _places(plan: Plan, frame: Frame) -> Iterator[tuple[float, str]]:
    """Every known port at the end of a cable: packets per second that it leaves to each flow, and why."""
    cables = [link for link in plan.links if link.medium is Medium.CABLE]
    instances = {flow.instance for flow in plan.flows}
    users = Counter(key for link in cables for key in _keys(plan, link) for _ in _instances(link, instances))
    for link in cables:
        for port, key in zip((link.a, link.b), _keys(plan, link), strict=True):
            nic = port.nic
            extra = VLAN_BYTES if port.vlan is not None else 0
            if nic is not None and (found := port_rate_pps(nic, frame, extra)):
                rate_pps, why = found
                shared = f", shared by {users[key]} instances" if users[key] > 1 else ""
                yield rate_pps / users[key], f"{'.'.join(key)}: {why}{shared}"


def _instances(link: Link, instances: set[int]) -> set[int]:
    return {link.instance} if link.instance else instances


def _keys(plan: Plan, link: Link) -> list[tuple[str, str]]:
    """Node and port of both ends: ports of several VLANs are one port."""

    def key(port: Port) -> tuple[str, str]:
        return plan.machines[port.owner], port.nic.port if port.nic else port.interface

    return [key(link.a), key(link.b)]
