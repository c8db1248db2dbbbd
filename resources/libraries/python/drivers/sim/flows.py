"""Packets of the flows of a simulated system by hop, and the copies that passive NFs receive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from resources.libraries.python.drivers.sim.latency import CROSSING_NS, NF_NS, PORT_NS, FlowShape
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import Flow, Hop, Path, Plan
from resources.libraries.python.planning.names import GENERATOR, is_vswitch


@dataclass(slots=True)
class FlowState:
    """A flow and what has gone through it since the beginning."""

    flow: Flow
    path: Path
    loss_weight: float
    shape: FlowShape
    offered: int = 0
    lost: dict[int, int] = field(default_factory=dict)
    """Losses of the system under test, by the index of the first hop that did not count it."""
    vanished: dict[int, int] = field(default_factory=dict)
    """The same of packets that an NF lost inside: no port counts them as dropped."""

    @property
    def forwarded(self) -> int:
        """Packets that the system under test would have delivered, were no hop broken."""
        return self.offered - sum(self.lost.values()) - sum(self.vanished.values())

    def add(self, offered: int, lost: int, hop: int) -> None:
        """Count packets; those that are lost are not counted at `hop` and beyond."""
        self.offered += offered
        self.lose(lost, hop)

    def lose(self, lost: int, hop: int) -> None:
        """Count packets that were offered before as lost ahead of `hop`."""
        self.lost[hop] = self.lost.get(hop, 0) + lost

    def vanish(self, lost: int, hop: int) -> None:
        """The same, without that any port counts them."""
        self.vanished[hop] = self.vanished.get(hop, 0) + lost

    def reaching(self, hop: int) -> int:
        """Packets that a hop counts, were no hop broken."""
        return self.offered - sum(
            lost for losses in (self.lost, self.vanished) for first, lost in losses.items() if first <= hop
        )


def crosses(path: Path, owners: frozenset[str]) -> bool:
    """Whether a path leads through one of some owners."""
    return any(hop.owner in owners for hop in path.hops)


def first_of(path: Path, members: Sequence[str]) -> int:
    """Index of the hop at which a packet comes into an L2 segment."""
    return next(index for index, hop in enumerate(path.hops) if hop.interface in members)


def shape(path: Path, scale: float, delays_s: Mapping[str, float]) -> FlowShape:
    """Inputs of a path's latency besides load.

    Args:
        path: The hops.
        scale: The flow's own deviation.
        delays_s: Faults: what each packet takes longer inside of NFs.
    """
    return FlowShape(tuple(_step_ns(*hops, delays_s) for hops in pairwise(path.hops)), scale)


def _step_ns(before: Hop, hop: Hop, delays_s: Mapping[str, float]) -> float:
    """Fixed time between two hops."""
    if hop.counter == "rx":
        return PORT_NS * (GENERATOR in (before.owner, hop.owner))
    return CROSSING_NS if is_vswitch(hop.owner) else NF_NS + 1e9 * delays_s.get(hop.owner, 0.0)


def split(total: int, weights: Sequence[float], most: Sequence[int] | None = None) -> list[int]:
    """Split a count by weights, none above its maximum; the parts sum to the total."""
    sum_left, left = sum(weights), total
    parts: list[int] = []
    for index, weight in enumerate(weights):
        part = round(left * weight / sum_left) if sum_left > 0 else left
        part = min(part, left if most is None else min(left, most[index]))
        parts.append(part)
        left -= part
        sum_left -= weight
    for index in range(len(parts)):
        if left == 0 or most is None:
            break
        more = min(left, most[index] - parts[index])
        parts[index] += more
        left -= more
    return parts


class Copies:
    """Packets that passive NFs got since the beginning.

    Args:
        plan: Has them, and their links to the vSwitch.
    """

    def __init__(self, plan: Plan) -> None:
        self._got = {tap.name: 0 for tap in plan.taps}
        self._lost = dict(self._got)
        self._at = {tap.interface: tap.name for tap in plan.taps}
        ends = {link.b.interface: link.a.interface for link in plan.links if link.b.owner in self._got}
        self._towards = {ends[tap.interface]: tap.name for tap in plan.taps}

    def add(self, name: str, copies: int, most: int) -> None:
        """Count copies, of which a passive NF takes no more than `most`."""
        got = min(copies, most)
        self._got[name] += got
        self._lost[name] += copies - got

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """By interface: those of passive NFs, and the vSwitch's towards them, which drop what finds no room."""
        return {
            **{port: InterfaceCounters(self._got[name], 0, 0, 0) for port, name in self._at.items()},
            **{
                port: InterfaceCounters(0, self._got[name], 0, self._lost[name]) for port, name in self._towards.items()
            },
        }
