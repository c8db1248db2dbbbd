"""Delay of each part from the times at which the same packets passed the hops of their path. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median

from resources.libraries.python.model.measurements.features import JOINT, LINK, HopDelay
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Hop, Path
from resources.libraries.python.planning.names import GENERATOR, is_vswitch

Packet = tuple[int, int]
"""A probe of a flow: its number, and the time at which it was sent, in nanoseconds; 0 where the sender writes none."""
Stamps = Mapping[Packet, int]
"""When packets passed a hop, in nanoseconds since the epoch; empty for a hop that cannot be seen."""
_SEEN_SHARE = 0.5


def visible(stamps: Sequence[Stamps]) -> list[int]:
    """Return the indexes of the hops that see packets.

    A hop is visible if it saw at least half of the packets that passed it for certain, as a later hop saw them.

    `stamps`: Of each hop of a path in order.
    """
    found: list[int] = []
    later: set[Packet] = set()
    for index in range(len(stamps) - 1, -1, -1):
        seen = stamps[index].keys()
        if seen and len(later & seen) >= _SEEN_SHARE * len(later):
            found.append(index)
        later |= seen
    return found[::-1]


def hop_delays(seen: Iterable[tuple[Path, Sequence[Stamps]]]) -> tuple[HopDelay, ...]:
    """Return the delay of each part and direction; nothing of paths that are visible at fewer than two hops.

    `seen`: Paths of flows, with the stamps of each of their hops.
    """
    found: dict[tuple[str, Direction], list[int]] = {}
    for path, stamps in seen:
        for owner, delays_ns in _parts_ns(path.hops, stamps).items():
            found.setdefault((owner, path.direction), []).extend(delays_ns)
    return tuple(
        HopDelay(
            owner=owner,
            direction=direction,
            mean_s=fmean(delays_ns) / 1e9,
            median_s=median(delays_ns) / 1e9,
            packets=len(delays_ns),
        )
        for (owner, direction), delays_ns in found.items()
    )


def _parts_ns(hops: Sequence[Hop], stamps: Sequence[Stamps]) -> dict[str, list[int]]:
    """Return the delay of each packet by part.

    Packets that a visible hop did not see, or after which the clock was set back, are left out. So all parts have the
    same packets, and add up.
    """
    places = visible(stamps)
    if len(places) < 2:
        return {}
    steps = [
        (_joint(hops[before + 1 : after + 1]), stamps[before], stamps[after]) for before, after in pairwise(places)
    ]
    found: dict[str, list[int]] = {}
    for packet in sorted(set.intersection(*(set(stamps[place]) for place in places))):
        of_packet: dict[str, int] = {}
        took_ns = [after[packet] - before[packet] for _, before, after in steps]
        if min(took_ns) < 0:
            continue
        for (owner, _, _), delay_ns in zip(steps, took_ns, strict=True):
            of_packet[owner] = of_packet.get(owner, 0) + delay_ns
        for owner, delay_ns in of_packet.items():
            found.setdefault(owner, []).append(delay_ns)
    return found


def _joint(hops: Sequence[Hop]) -> str:
    """Owners of the hops in which a time ended, the vSwitch first and the generator's port last."""
    owners = {LINK if hop.owner == GENERATOR else hop.owner for hop in hops}
    return JOINT.join(sorted(owners, key=lambda owner: (owner == LINK, not is_vswitch(owner), owner)))
