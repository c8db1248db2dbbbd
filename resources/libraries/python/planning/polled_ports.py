"""Physical ports that a vSwitch polls: of a plan, and of a cell before it is planned."""

from collections.abc import Iterable, Sequence

from resources.libraries.python import driver_registry
from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.driver import PolledPorts
from resources.libraries.python.model.plan import Link
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.testbed.attachment import polled_queues
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.names import vswitch_name
from resources.libraries.python.planning.placement.rss_spread import EdgePort, spread_warnings

_THREADS_OF_A_CORE = 2
"""Where the processors are not known."""


def ports_of(links: Iterable[Link], cores: CoreMap, owner: str) -> PolledPorts:
    """The ports of a vSwitch, each once: instances may share one."""
    ports = (port for link in links for port in (link.a, link.b) if port.owner == owner)
    queues = {port.nic.port: len(port.queues) for port in ports if port.nic is not None and port.nic.rx_queues}
    return PolledPorts(tuple(queues.values()), len(cores.cpus(owner)))


def expected(topology: Topology, cell: Cell, layout: CpuLayout | None = None) -> PolledPorts:
    """The ports of the (first) vSwitch of a cell; where cores have unequal numbers of threads, with the most threads.

    `layout`: CPUs of the (first) DUT; by default those that the topology lists.
    """
    ways = topology.ways[: len(cell.instances) if topology.discriminator == "link" else 1]
    if not ways:
        return PolledPorts()
    dut = topology.dut
    known = dut.layout if layout is None and dut.cpus != "discover" else layout
    cores = known.cores(dut.numa_node) if known else ()
    threads = cell.vs_dtc * max(map(len, cores), default=_THREADS_OF_A_CORE)
    ends = (socket.port for way in ways for socket in (way[0].b, way[1].a))
    queues = (polled_queues(dut, dut.interfaces[port]) for port in ends)
    return PolledPorts(tuple(min(most, threads) for most in queues if most), threads)


def port_warnings(topology: Topology, ports: Sequence[EdgePort]) -> tuple[str, ...]:
    """Return why ports of vSwitches do not carry what they could: flows miss threads, or settings are too small."""
    found = list(spread_warnings(ports))
    for number, (name, dut) in enumerate(topology.duts.items(), 1):
        own = [port for port in ports if port.owner == vswitch_name(number) and port.most]
        polled = PolledPorts(tuple(len(port.queues) for port in own), own[0].threads if own else 0)
        problem = driver_registry.vswitches()[dut.vswitch].ports_problem(dut, polled)
        found += [f"nodes.{name}.{problem}"] if problem else []
    return tuple(found)
