"""Cable that loads a service of several components in a lab, and the addresses of its ends."""

from resources.libraries.python.model.plan import Nic, Port
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.edges import edges_of

BRIDGE = "service-bridge"
LOADER = "service-load"
"""Name of the traffic generator. No instance has such a name: those end with a number."""
INTERFACE = "eth0"
"""Port of each end with an address."""
UPLINK = "uplink"
"""The bridge's end of the cable."""
_MAC = "02:c5:ff:00:00:{:02x}"
"""For a port whose own MAC the file does not have. No instance has such a one."""


def service_cable(topology: Topology) -> tuple[Port, Port]:
    """Both ends of the first cable of a lab: at the traffic generator, and at the (first) DUT.

    Frames on it have no VLAN, also where instances of density tests are kept apart by one.

    Raises:
        ConfigError: The cables of the lab cannot carry a service.
    """
    near, far = edges_of(topology).ways[0][0]
    return _port(LOADER, INTERFACE, near, 1), _port(BRIDGE, UPLINK, far, 2)


def _port(owner: str, interface: str, nic: Nic, number: int) -> Port:
    return Port(owner=owner, interface=interface, mac=nic.mac_address or _MAC.format(number), data_thread=0, nic=nic)
