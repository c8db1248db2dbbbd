"""The vSwitch as Linux bridges, one per L2 segment."""

from collections.abc import Iterator, Mapping

from resources.libraries.python.drivers.host.fabric import Fabric
from resources.libraries.python.drivers.host.messages import bridge, enslave
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import VSWITCH


class LinuxBridge:
    """Fulfils `roles.vswitch.VSwitch`. Its data threads are those of its ports: a bridge forwards in its receiver."""

    def __init__(self, plan: Plan, fabric: Fabric) -> None:
        """Prepare.

        Args:
            plan: Has the segments.
            fabric: Has the ports; started before `start`.
        """
        self._plan = plan
        self._fabric = fabric

    def start(self) -> None:
        """Make a bridge per segment and its ports members.

        Raises:
            CommandFailed: The kernel refused.
        """
        index = self._fabric.index
        bridges = list(enumerate(self._plan.segments, self._fabric.free_index))
        requests = [bridge(segment.name, number) for number, segment in bridges]
        for number, segment in bridges:
            requests += [enslave(member, index(member), segment.name, number) for member in segment.members]
        self._fabric.change(VSWITCH, requests)

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each port's data thread may really run."""
        return self._fabric.affinity([VSWITCH])

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by port."""
        return self._fabric.counters([VSWITCH])

    def facts(self) -> Mapping[str, str]:
        """The environment's fingerprint has the kernel, and with it the bridge."""
        return {}

    def problems(self) -> tuple[str, ...]:
        """Ports that have lost their data thread, their carrier or their bridge."""
        found = self._fabric.problems([VSWITCH])
        return found or tuple(self._lost_members())

    def _lost_members(self) -> Iterator[str]:
        bridges = self._fabric.bridges(VSWITCH)
        for number, segment in enumerate(self._plan.segments, self._fabric.free_index):
            for member in segment.members:
                if bridges.get(member) != number:
                    yield f"{member} is no member of bridge {segment.name} any more"

    def stop(self) -> None:
        """Nothing to do: bridges end with their namespace, which `Fabric.stop` removes.

        One by one they would take 17 ms each, time that the kernel then spends after the namespace is gone.
        """
