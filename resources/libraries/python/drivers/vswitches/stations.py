"""Which MAC addresses are behind which port of a segment, from the plan: no switch has to learn them, or to flood."""

from collections.abc import Mapping

from resources.libraries.python.model.plan import Plan, Port, Segment
from resources.libraries.python.planning.names import GENERATOR


def stations(plan: Plan, segment: Segment) -> dict[str, tuple[str, ...]]:
    """MAC addresses of NFs and of the generator by the member of a segment that they are behind."""
    return {member: tuple(dict.fromkeys(_behind(plan, member))) for member in segment.members}


def _behind(plan: Plan, member: str) -> list[str]:
    """Go over the link; where another vSwitch is at its other end, on to the other members of its segment."""
    peers = _peers(plan)
    segments = {name: segment for segment in plan.segments for name in segment.members}
    found: list[str] = []
    row, seen = [member], {member}
    while row:
        for peer in peers.get(row.pop(), ()):
            further = segments.get(peer.interface)
            if further is None:
                sources = [flow.source_mac for flow in plan.flows if flow.tx_interface == peer.interface]
                found += sources if peer.owner == GENERATOR else [peer.mac]
                continue
            new = [name for name in further.members if name not in seen and name != peer.interface]
            seen |= {peer.interface, *new}
            row += new
    return found


def _peers(plan: Plan) -> Mapping[str, tuple[Port, ...]]:
    """The ports at the other end of each port's link."""
    found: dict[str, tuple[Port, ...]] = {}
    for link in plan.links:
        for here, there in ((link.a, link.b), (link.b, link.a)):
            found[here.interface] = (*found.get(here.interface, ()), there)
    return found
