"""The vSwitch as Linux bridges, one per L2 segment."""

from collections.abc import Iterator, Mapping
from functools import partial

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.mirroring import copy_received, make_copies
from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.drivers.host.links.rtnetlink_messages import (
    add_station,
    bridge,
    enslave,
    forward_known_only,
)
from resources.libraries.python.drivers.vswitches.stations import stations
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import Plan, Segment
from resources.libraries.python.planning.names import VSWITCH


class LinuxBridge:
    """Fulfils `roles.vswitch.VSwitch`. Its data threads are those of its ports: a bridge forwards in its receiver."""

    def __init__(self, plan: Plan, fabric: Fabric, owner: str = VSWITCH) -> None:
        """Prepare.

        Args:
            plan: Has the segments.
            fabric: Has the ports; started before `start`.
            owner: Which of the plan's vSwitches it is.
        """
        self._plan = plan
        self._fabric = fabric
        self._owner = owner
        ports = {port.interface for port in plan.ports(owner)}
        self._segments = [segment for segment in plan.segments if ports.issuperset(segment.members)]

    def start(self) -> None:
        """Make a bridge per segment and its ports members, copies for passive NFs; wait until cables pass packets.

        Raises:
            CommandFailed: The kernel refused.
            Unsupported: The kernel cannot copy frames.
            NotReady: A cable does not pass packets.
        """
        index = self._fabric.index
        bridges = list(enumerate(self._segments, self._fabric.free_index))
        requests = [bridge(segment.name, number) for number, segment in bridges]
        for number, segment in bridges:
            requests += [enslave(member, index(member), segment.name, number) for member in segment.members]
            if len(segment.members) > 2:
                requests += self._known_stations(segment)
        self._fabric.change(self._owner, requests)
        if copies := [request for segment in self._segments for request in self._copies(segment)]:
            make_copies(partial(self._fabric.change, self._owner), copies)
        self._fabric.wait_for_cables(self._owner)

    def _known_stations(self, segment: Segment) -> Iterator[Request]:
        """Nothing is learned and nothing is flooded: a frame goes where the plan says, or nowhere.

        Between two members there is only one way to go. Among several, a frame that is flooded reaches services that it
        is not for, and loads them.
        """
        for member, macs in stations(self._plan, segment).items():
            index = self._fabric.index(member)
            yield forward_known_only(member, index)
            yield from (add_station(member, index, mac) for mac in macs)

    def _copies(self, segment: Segment) -> Iterator[Request]:
        """Both ways: what every member receives is all that the segment forwards."""
        taps = [(port, self._fabric.index(port)) for port in segment.copies]
        for member in segment.members if taps else ():
            yield from copy_received(member, self._fabric.index(member), taps)

    def affinity(self) -> Mapping[str, frozenset[int]]:
        return self._fabric.affinity([self._owner])

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._fabric.counters([self._owner])

    def facts(self) -> Mapping[str, str]:
        """The environment's fingerprint has the kernel, and with it the bridge."""
        return {}

    def problems(self) -> tuple[str, ...]:
        """Ports that have lost their data thread, their carrier or their bridge."""
        found = self._fabric.problems([self._owner])
        return found or tuple(self._lost_members())

    def _lost_members(self) -> Iterator[str]:
        bridges = self._fabric.bridges(self._owner)
        for number, segment in enumerate(self._segments, self._fabric.free_index):
            for member in segment.members:
                if bridges.get(member) != number:
                    yield f"{member} is no member of bridge {segment.name} any more"

    def stop(self) -> None:
        """Nothing to do: bridges end with their namespace, which `Fabric.stop` removes.

        One by one they would take 17 ms each, time that the kernel then spends after the namespace is gone.
        """


def make(_: DutNode, context: DriverContext) -> LinuxBridge:
    """Make the driver for a node."""
    return LinuxBridge(context.plan, context.fabric, context.vswitch)
