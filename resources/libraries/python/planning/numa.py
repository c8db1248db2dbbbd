"""NUMA nodes of physical ports: those in the file, compared with and completed by those of the nodes. Pure."""

from collections.abc import Iterator, Mapping

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.nodes import DutNode, TgNode
from resources.libraries.python.model.topology import Topology, World

NumaNodes = Mapping[str, int | None]
"""By name of the port in the topology; None where the machine does not know (-1 in sysfs)."""


def silent(topology: Topology) -> tuple[str, ...]:
    """Ports of a lab whose NUMA node the file does not say, as `nodes.DUT1.interfaces.port1`."""
    if topology.world is not World.LAB:
        return ()
    return tuple(
        f"nodes.{name}.interfaces.{port}"
        for name, node in topology.nodes.items()
        for port, interface in node.interfaces.items()
        if interface.numa_node is None
    )


def assumptions(topology: Topology) -> tuple[str, ...]:
    """A sentence for each node of a lab that is planned on an assumed NUMA node."""
    if topology.world is not World.LAB:
        return ()
    return tuple(
        f"nodes.{name}: no port says its numa_node, so NUMA {node.numa_node} is assumed; a run reads it from the node"
        for name, node in topology.nodes.items()
        if all(interface.numa_node is None for interface in node.interfaces.values())
    )


def conflicts(name: str, node: TgNode | DutNode, found: NumaNodes) -> Iterator[str]:
    """Return a sentence for each port with different NUMA nodes in the file and on its machine.

    Args:
        name: Of the node.
        node: As the file has it.
        found: As its machine says.
    """
    for port, interface in node.interfaces.items():
        there = found.get(port)
        if interface.numa_node is not None and there is not None and there != interface.numa_node:
            yield (
                f"nodes.{name}.interfaces.{port}.numa_node: the file says {interface.numa_node}, "
                f"the node says {there}; set numa_node: {there}, or use another port"
            )


def located(topology: Topology, found: Mapping[str, NumaNodes]) -> Topology:
    """Complete a topology by the NUMA nodes that its machines say.

    Args:
        topology: As the file has it.
        found: By name of the node.

    Raises:
        ConfigError: File and machines contradict each other, or the ports of a DUT are on several NUMA nodes.
    """
    wrong = [text for name, rows in found.items() for text in conflicts(name, topology.nodes[name], rows)]
    if wrong:
        raise ConfigError("; ".join(wrong))
    nodes = {}
    for name, node in topology.nodes.items():
        rows = found.get(name, {})
        interfaces = {
            port: interface.model_copy(update={"numa_node": rows.get(port)})
            if interface.numa_node is None
            else interface
            for port, interface in node.interfaces.items()
        }
        nodes[name] = node.model_copy(update={"interfaces": interfaces})
        try:
            nodes[name].check_numa()
        except ValueError as error:
            raise ConfigError(f"nodes.{name}.interfaces: {error} (as the node says)") from error
    return topology.model_copy(update={"nodes": nodes})
