"""Physical ports of a testbed: their NUMA nodes, in the file and of the machines, and their drivers as text. Pure."""

from collections.abc import Iterator, Mapping

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.testbed.attachment import Attachment, attachment_of, port_option, uio_driver
from resources.libraries.python.model.testbed.nodes import DutNode, Interface, TgNode
from resources.libraries.python.model.testbed.topology import Topology, World

NumaNodes = Mapping[str, int | None]
"""By name of the port in the topology; None where the machine does not know (-1 in sysfs)."""


def silent(topology: Topology) -> tuple[str, ...]:
    """Ports of a lab whose NUMA node the file does not say, as `nodes.DUT1.interfaces.port1`."""
    if topology.world is not World.LAB:
        return ()
    return tuple(
        f"nodes.{name}.interfaces.{port}"
        for name, node in topology.machines.items()
        for port, interface in node.interfaces.items()
        if interface.numa_node is None
    )


def assumptions(topology: Topology) -> tuple[str, ...]:
    """A sentence for each node of a lab that is planned on an assumed NUMA node."""
    if topology.world is not World.LAB:
        return ()
    return tuple(
        f"nodes.{name}: no port says its numa_node, so NUMA {node.numa_node} is assumed; a run reads it from the node"
        for name, node in topology.machines.items()
        if all(interface.numa_node is None for interface in node.interfaces.values())
    )


def conflicts(name: str, node: TgNode | DutNode, found: NumaNodes) -> Iterator[PreflightProblem]:
    """Return the ports with different NUMA nodes in the file and on its machine."""
    for port, interface in node.interfaces.items():
        there = found.get(port)
        if interface.numa_node is not None and there is not None and there != interface.numa_node:
            place = f"nodes.{name}.interfaces.{port}.numa_node"
            yield PreflightProblem(
                f"{place}: the file says {interface.numa_node}, the node says {there}",
                f"set numa_node: {there}, or use another port",
            )


def located(topology: Topology, found: Mapping[str, NumaNodes]) -> Topology:
    """Complete a topology by the NUMA nodes that its machines say.

    Raises:
        ConfigError: File and machines contradict each other, or the ports of a DUT are on several NUMA nodes.
    """
    wrong = [str(each) for name, rows in found.items() for each in conflicts(name, topology.nodes[name], rows)]
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


_WORDS = {
    Attachment.DPDK: "DPDK",
    Attachment.BIFURCATED: "DPDK beside the kernel's driver",
    Attachment.NATIVE: "the vSwitch's own driver",
    Attachment.RDMA: "the vSwitch's rdma driver beside the kernel's",
    Attachment.AF_XDP: "AF_XDP sockets",
    Attachment.KERNEL: "the kernel",
}


def attached(topology: Topology) -> tuple[str, ...]:
    """A sentence for each node of a lab: its ports, and how each is driven; none for other worlds."""
    if topology.world is not World.LAB:
        return ()
    return tuple(
        f"ports of {name}: {ports_of(node)}"
        if name in topology.machines
        else f"ports of {name}: {', '.join(node.interfaces)} by its API"
        for name, node in topology.nodes.items()
    )


def ports_of(node: TgNode | DutNode) -> str:
    """The ports of a node: `port1 (0000:3b:00.0) by DPDK (vfio-pci), port2 (…) by …`."""
    rows = [(port, each, how_driven(each, node)) for port, each in node.interfaces.items()]
    return ", ".join(f"{port} ({each.pci_address or each.device}) by {how}" for port, each, how in rows)


def how(nic: Nic) -> str:
    """Driver of a port of a plan: `DPDK (vfio-pci)`."""
    return _sentence(nic.attachment, nic.uio_driver, None)


def how_driven(interface: Interface, node: TgNode | DutNode) -> str:
    """Driver of a port of a node: `DPDK (vfio-pci)`, `the kernel (AF_PACKET sockets)`."""
    return _sentence(attachment_of(interface, node), uio_driver(interface, node), _sockets(node))


def _sentence(attachment: Attachment, uio: str | None, kernel: str | None) -> str:
    if attachment.unbinds:
        return f"{_WORDS[attachment]} ({uio or 'vfio-pci'})"
    return f"{_WORDS[attachment]} ({kernel})" if attachment is Attachment.KERNEL and kernel else _WORDS[attachment]


def _sockets(node: TgNode | DutNode) -> str | None:
    """How a user of kernel ports receives packets, unless it is the kernel itself."""
    found = port_option(node)
    if found is None or found[1].asked(node) in found[1].kernel_itself:
        return None
    return found[1].sockets_label
