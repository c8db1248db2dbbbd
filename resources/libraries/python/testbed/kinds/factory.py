"""The world of a topology; each is imported where it is chosen, because drivers take half a second to import."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.cpu.memory import discover_memory
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.testbed import topology as model
from resources.libraries.python.model.testbed.memory import MemoryLayout
from resources.libraries.python.planning.physical_ports import located as complete
from resources.libraries.python.planning.physical_ports import silent
from resources.libraries.python.planning.placement.cores import Layouts
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.testbed.agent.calls import NodeInspection
from resources.libraries.python.testbed.deployment.parts import Testbed

if TYPE_CHECKING:
    from resources.libraries.python.testbed.kinds.nodes import NodesTestbed


def make_testbed(topology: model.Topology) -> Testbed:
    """Make the world of a topology; it is not open yet.

    Raises:
        Unsupported: There are no drivers for it.
    """
    match topology.world:
        case model.World.SIM:
            from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed  # noqa: PLC0415

            return SimulatedTestbed(topology)
        case model.World.LOCAL:
            from resources.libraries.python.testbed.agent.service import AgentService  # noqa: PLC0415
            from resources.libraries.python.testbed.kinds.nodes import LocalNode, NodesTestbed  # noqa: PLC0415

            return NodesTestbed(topology, [LocalNode(topology, AgentService(fingerprint))])
        case model.World.LAB:
            return _lab(topology)


def _lab(topology: model.Topology) -> "NodesTestbed":
    from resources.libraries.python.testbed.connection.runtime import Runtimes  # noqa: PLC0415
    from resources.libraries.python.testbed.connection.ssh import SshConnection  # noqa: PLC0415
    from resources.libraries.python.testbed.kinds.nodes import NodesTestbed  # noqa: PLC0415
    from resources.libraries.python.testbed.remote.node import LabNode  # noqa: PLC0415

    runtimes = Runtimes()
    nodes = [LabNode(topology, name, SshConnection, runtimes) for name in topology.machines]
    make = driver_registry.generators()[topology.tg.generator.driver].api
    return NodesTestbed(topology, nodes, None if make is None else driver_registry.load(make)(topology.tg))


def located(topology: model.Topology) -> model.Topology:
    """Return a lab with the NUMA nodes of its ports; those that the file does not have are read on its nodes.

    Raises:
        ConfigError: The file and the nodes contradict each other.
        ConnectionFailed: Nodes cannot be reached.
    """
    if not silent(topology):
        return topology
    return complete(topology, {name: found.numa_nodes for name, found in _found(topology).items()})


def layout_of(topology: model.Topology) -> Layouts:
    """Logical CPUs of the DUT, or of a lab's nodes by name: from the file, or discovered where they are.

    Raises:
        ConnectionFailed: They are to be discovered on nodes that cannot be reached.
    """
    if topology.world is model.World.LAB:
        return {
            name: _found(topology)[name].layout if node.cpus == "discover" else node.layout
            for name, node in topology.machines.items()
        }
    return discover() if topology.dut.cpus == "discover" else topology.dut.layout


def refuse_wrong_simulation(topology: model.Topology) -> None:
    """Refuse parameters of a simulation that do not fit, which a topology alone does not know.

    Raises:
        ConfigError: A key is unknown, or a value does not fit.
    """
    if topology.world is model.World.SIM:
        from resources.libraries.python.drivers.sim.simulation import simulation_of  # noqa: PLC0415

        simulation_of(topology)


def refuse_without_basics(topology: model.Topology) -> None:
    """Refuse a run on this machine without Linux or the rights; what else the machine lacks is found by opening it.

    Raises:
        Unsupported: It has no Linux, or the user lacks rights.
    """
    if topology.world is model.World.LOCAL:
        from resources.libraries.python.drivers.host.ownership.preflight import missing_basics  # noqa: PLC0415

        if problem := missing_basics():
            raise Unsupported(str(problem))


def memory_of(topology: model.Topology) -> MemoryLayout | None:
    """The DUT's memory: from the file, or discovered where it is; None where the file says nothing.

    Raises:
        ConnectionFailed: It is to be discovered on a node that cannot be reached.
    """
    if topology.dut.memory != "discover":
        return topology.dut.memory
    if topology.world is model.World.LAB:
        return _found(topology)[next(iter(topology.duts))].memory
    return discover_memory()


def _found(topology: model.Topology) -> Mapping[str, NodeInspection]:
    """A lab's nodes as they are. They are asked once: the rows of every suite need it."""
    key = topology.model_dump_json()
    if key not in _INSPECTED:
        world = _lab(topology)
        try:
            _INSPECTED[key] = world.look()
        finally:
            world.close()
    return _INSPECTED[key]


_INSPECTED: dict[str, Mapping[str, NodeInspection]] = {}
