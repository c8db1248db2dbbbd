"""Physical ports that a vSwitch or generator polls by its own driver, and their possible receive queues."""

from resources.libraries.python.model.nodes import DutNode, Interface, TgNode
from resources.libraries.python.model.testbed.attachment import Attachment, attachment_of, kernel_driver
from resources.libraries.python.model.testbed.nics import most_rx_queues

_WITH_ONE_QUEUE = (Attachment.KERNEL, Attachment.AF_XDP)


def polled_queues(node: TgNode | DutNode, interface: Interface) -> int | None:
    """Receive queues that a physical port can have; None where sockets of the kernel take its packets, with one.

    Args:
        node: Of the port.
        interface: The port.
    """
    if interface.pci_address is None or attachment_of(interface, node) in _WITH_ONE_QUEUE:
        return None
    return interface.rx_queues or most_rx_queues(interface.model, kernel_driver(interface))
