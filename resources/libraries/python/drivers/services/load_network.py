"""Network of the load generator on a machine that is cabled to the service: a namespace with its port."""

from contextlib import closing

from pyroute2.netlink.rtnl import RTM_GETLINK

from resources.libraries.python.drivers.host.links import namespaces, rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.links.namespaces import Namespace, name_of, run_inside
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.links.veth import settings
from resources.libraries.python.drivers.host.nics.cables import Cables
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.services.network import LOADER_ADDRESS, LOOPBACK_INDEX, MTU, NETWORK, remove
from resources.libraries.python.model.plan import Port
from resources.libraries.python.studies.sizing.planning.service_cable import INTERFACE, LOADER

_NAME = name_of(LOADER)
_WITHIN_S = 30.0
"""The two ends of a cable negotiate."""


class LoadNetwork:
    """Has the address that the load comes from in the local world too: the service's network, at the cable's end."""

    def __init__(self, cable: Port, machine: MachineLock) -> None:
        """Prepare; nothing is made before `start`.

        Args:
            cable: The port to the machine of the instances, owned by the load generator.
            machine: The machine's lock, held.
        """
        self._machine = machine
        self._cables = Cables([cable], machine, MTU)
        self._claimed = False

    def start(self) -> None:
        """Make the namespace, move the port there and give it its address.

        Raises:
            ConfigError: The port is not there, or must not be taken.
            CsitError: The namespace is there already, or the kernel refused something.
            Unsupported: Namespaces cannot be made here.
        """
        self._machine.claim_namespaces([_NAME])
        self._claimed = True
        self._cables.claim()
        aside(self._make)
        self._machine.confirm_namespaces([_NAME])

    def _make(self) -> None:
        with closing(Netlink()) as home:  # before this thread enters the namespace
            for inside in namespaces.create([(_NAME, settings(LOADER, None))]):
                with closing(inside):
                    self._plug_in(home, inside)

    def _plug_in(self, home: Netlink, inside: Namespace) -> None:
        mine = {LOADER: inside}
        self._cables.take(home, mine)
        inside.netlink.do(
            [
                rtnetlink_messages.set_up("lo", LOOPBACK_INDEX),
                rtnetlink_messages.add_address(
                    INTERFACE, self._cables.index[INTERFACE], f"{LOADER_ADDRESS}/{NETWORK.prefixlen}"
                ),
            ]
        )
        self._cables.bring_up(mine)

    def problems(self) -> tuple[str, ...]:
        """Whether the cable passes packets now."""
        index = self._cables.index.get(INTERFACE)
        running = run_inside(_NAME, _running) if index is not None else {}
        return () if index is not None and running.get(index) else ("the cable to the service has no carrier",)

    def wait_for_cable(self) -> None:
        """Wait until packets pass. To be called when the other machine has brought its end up.

        Raises:
            NotReady: They do not.
        """
        wait_until("cable to the service", lambda: "; ".join(self.problems()), _WITHIN_S, pause_s=0.01)

    def stop(self) -> None:
        """Give the port back, remove the namespace. Safe to call after a failure; what uses it must have ended.

        Raises:
            CsitError: Something could not be removed, or given back: then all stays, on record.
        """
        if not self._claimed:
            return
        self._cables.give_back()
        remove([LOADER])
        self._machine.release_namespaces([_NAME])
        self._claimed = False


def _running() -> dict[int, bool]:
    """Whether interfaces pass packets, by index."""
    with closing(Netlink()) as netlink:
        rows = netlink.dump(RTM_GETLINK, rtnetlink_messages.GET_LINKS, "read the links of the load")
        return dict(map(rtnetlink_messages.read_running, rows))
