"""Drivers of the physical ports of a testbed, as text. Pure."""

from resources.libraries.python.model.nodes import DutNode, Interface, TgNode
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.testbed.attachment import Attachment, attachment_of, port_option, uio_driver
from resources.libraries.python.model.topology import Topology, World

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
    return tuple(f"ports of {name}: {ports_of(node)}" for name, node in topology.nodes.items())


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
