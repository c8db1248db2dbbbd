"""The load generator: the user's script in its own namespace and control group, and its network on a cabled machine."""

from contextlib import closing

from pyroute2.netlink.rtnl import RTM_GETLINK

from resources.libraries.python.drivers.host.cgroups.cgroup_tree import end
from resources.libraries.python.drivers.host.cgroups.cgroups import Controllers, GroupLimits
from resources.libraries.python.drivers.host.links import namespaces, rtnetlink_messages
from resources.libraries.python.drivers.host.links.link_devices import settings
from resources.libraries.python.drivers.host.links.namespaces import name_of, run_inside
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.services import scripts
from resources.libraries.python.drivers.services.instances import ServiceInstance
from resources.libraries.python.drivers.services.network import (
    LOADER_ADDRESS,
    LOOPBACK_INDEX,
    NETWORK,
    CabledNamespaces,
    addresses,
)
from resources.libraries.python.drivers.services.scripts import of_all
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.planning.edges import SERVICE_LOAD, SERVICE_PORT
from resources.libraries.python.testbed.roles.service import LoadReport, SizedService

_NAME = name_of(SERVICE_LOAD)
_WITHIN_S = 30.0
"""The two ends of a cable negotiate."""


class LoadNetwork(CabledNamespaces):
    """Has the address that the load comes from in the local world too: the service's network, at the cable's end.

    `cable`: The port to the machine of the instances, owned by the load generator.
    """

    def __init__(self, cable: Port, machine: MachineLock) -> None:
        super().__init__((SERVICE_LOAD,), machine, cable)

    def _make(self, home: Netlink) -> None:
        (inside,) = namespaces.create([(_NAME, settings(SERVICE_LOAD, None))])
        mine = {SERVICE_LOAD: inside}
        with closing(inside):
            self._cables.take(home, mine)
            inside.netlink.do(
                [
                    rtnetlink_messages.set_up("lo", LOOPBACK_INDEX),
                    rtnetlink_messages.add_address(
                        SERVICE_PORT, self._cables.index[SERVICE_PORT], f"{LOADER_ADDRESS}/{NETWORK.prefixlen}"
                    ),
                ]
            )
            self._cables.bring_up(mine)

    def problems(self) -> tuple[str, ...]:
        """Whether the cable passes packets now."""
        index = self._cables.index.get(SERVICE_PORT)
        running = run_inside(_NAME, _running) if index is not None else {}
        return () if index is not None and running.get(index) else ("the cable to the service has no carrier",)

    def wait_for_cable(self) -> None:
        """Wait until packets pass. To be called when the other machine has brought its end up.

        Raises:
            NotReady: They do not.
        """
        wait_until("cable to the service", lambda: "; ".join(self.problems()), _WITHIN_S, pause_s=0.01)


def _running() -> dict[int, bool]:
    """Whether interfaces pass packets, by index."""
    with closing(Netlink()) as netlink:
        rows = netlink.dump(RTM_GETLINK, rtnetlink_messages.GET_LINKS, "read the links of the load")
        return dict(map(rtnetlink_messages.read_running, rows))


class Load(SizedService):
    """Runs in its own namespace. Its control group ends processes that the script leaves running.

    `machine`: the machine's lock, held.
    `pinned`: the only CPUs that the script may run on; None for all.
    `network`: where it comes over a cable from this machine, which has nothing else of the service; None where the
      namespace exists.
    """

    def __init__(
        self,
        asked: Specifications,
        size: Size,
        machine: MachineLock,
        controllers: Controllers,
        pinned: frozenset[int] | None = None,
        *,
        network: LoadNetwork | None = None,
    ) -> None:
        self._network = network
        self._asked = asked
        self._addresses = {name: str(address) for name, address in addresses(asked.deployment, size).items()}
        self._runner = ServiceInstance(SERVICE_LOAD, controllers, machine, GroupLimits(pinned=pinned))

    def start(self) -> None:
        """Make namespace, group and folder, take the port.

        Raises:
            Unsupported: The machine has no such groups.
            CsitError: There is such a group.
        """
        if self._network is not None:
            self._network.start()
        self._runner.make()

    def offer(self, load: float) -> LoadReport:
        """Run the generator script once, when packets pass the cable."""
        if self._network is not None:
            self._network.wait_for_cable()
        workload = self._asked.workload
        variables = {
            "CSIT_LOAD": f"{load:g}",
            "CSIT_DURATION_S": f"{workload.duration_s:g}",
            "CSIT_UNIT": workload.unit,
            "CSIT_ADDRESS": str(LOADER_ADDRESS),
            **self._asked.options,
            **of_all(self._addresses),
        }
        within_s = workload.duration_s + workload.within_s
        try:
            output = self._runner.run("generator script", self._asked.generator, variables, within_s)
        finally:
            end(self._runner.folders, 0)
        return scripts.answer(output, self._asked.generator)

    def problems(self) -> tuple[str, ...]:
        """A cable that passes no packets."""
        return () if self._network is None else self._network.problems()

    def stop(self) -> None:
        """Remove group and folder, give the port back. Safe to call after a failure.

        Raises:
            CsitError: They cannot be removed.
        """
        try:
            end(self._runner.folders, 0)
            self._runner.remove()
        finally:
            if self._network is not None:
                self._network.stop()
