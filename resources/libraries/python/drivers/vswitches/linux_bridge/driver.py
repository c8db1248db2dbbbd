"""The vSwitch as Linux bridges, one per L2 segment; frames are copied by traffic control."""

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.link_devices import at_arrival
from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.drivers.host.links.routing import move_steps
from resources.libraries.python.drivers.host.links.rtnetlink_messages import (
    add_station,
    bridge,
    enslave,
    forward_known_only,
    set_down,
    set_up,
)
from resources.libraries.python.drivers.host.programs.disturbances import Disturbed, Steps, refused
from resources.libraries.python.drivers.vswitches.stations import stations
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import Plan, Segment
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.testbed.roles.part import VSwitch


def make_copies(change: Callable[[Sequence[Request]], None], requests: Sequence[Request]) -> None:
    """Make changes that need traffic control.

    Raises:
        Unsupported: This kernel cannot copy frames.
        CommandFailed: It refused otherwise.
    """
    try:
        change(requests)
    except CommandFailed as error:
        if error.status in {errno.ENOENT, errno.EOPNOTSUPP}:
            raise Unsupported(
                "this kernel cannot copy frames for passive NFs: it lacks sch_ingress, cls_u32 or act_mirred "
                f"({error.stderr})"
            ) from error
        raise


class LinuxBridge(Disturbed, VSwitch):
    """Its data threads are those of its ports: a bridge forwards in its receiver.

    `fabric`: has the ports; started before `start`.
    """

    def __init__(self, plan: Plan, fabric: Fabric, owner: str = VSWITCH) -> None:
        self._plan = plan
        self._fabric = fabric
        self._owner = owner
        ports = {port.interface for port in plan.ports(owner)}
        self._segments = [segment for segment in plan.segments if ports.issuperset(segment.members)]

    def start(self) -> None:
        """Make a bridge per segment and its ports members, and copies for passive NFs.

        Raises:
            CommandFailed: The kernel refused.
            Unsupported: The kernel cannot copy frames.
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
            yield from at_arrival(member, self._fabric.index(member), taps, copies=True)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        if target != self._owner:
            return None
        down, up = (partial(self._set_all, change) for change in (set_down, set_up))
        if event is PartEvent.KILL:
            return Steps("all bridges down", down)
        if event is PartEvent.RESTART:
            return Steps("all bridges down, then up; learned addresses are lost", down, up)
        if event is PartEvent.PAUSE:
            return Steps("all bridges down, then up; packets are dropped", down, up)
        if event is PartEvent.MOVE:
            return move_steps(self._fabric, self._owner)
        raise refused(event, "a Linux bridge")

    def _set_all(self, change: Callable[[str, int], Request]) -> None:
        bridges = enumerate(self._segments, self._fabric.free_index)
        self._fabric.change(self._owner, [change(segment.name, number) for number, segment in bridges])

    def affinity(self) -> Mapping[str, frozenset[int]]:
        return self._fabric.affinity([self._owner])

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._fabric.counters([self._owner])

    def without_link(self) -> tuple[str, ...]:
        return self._fabric.cables_down(self._owner)

    def facts(self) -> Mapping[str, str]:
        """How it waits for packets; the environment's fingerprint has the kernel, and with it the bridge."""
        return {"scheduling": "threaded NAPI: the ports' threads sleep when nothing comes"}

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
        """Call off an event: bridges end with their namespace, which `Fabric.stop` removes.

        One by one they would take 17 ms each, time that the kernel then spends after the namespace is gone.
        """
        self.call_off()


def make(_: DutNode, context: DriverContext) -> LinuxBridge:
    """Make the driver for a node."""
    return LinuxBridge(context.plan, context.fabric, context.vswitch)
