"""Counters by the plan's ports, from what VPP and the kernel show. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from resources.libraries.python.drivers.vpp import show_output
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, VppInterface
from resources.libraries.python.model.counters import InterfaceCounters


def counted(
    interfaces: Sequence[VppInterface],
    of_vpp: Mapping[str, show_output.InterfaceRow],
    full_rings: Mapping[str, int],
    of_kernel: Mapping[str, InterfaceCounters],
) -> Iterator[tuple[str, InterfaceCounters]]:
    """Counters of each port.

    Of a port of the kernel, what VPP has not taken from the socket's ring was dropped by a full queue, and what was
    sent is the kernel's number: VPP counts a packet as sent that the kernel then refuses. Of shared memory, a packet
    that meets a full ring counts as sent as well; where VPP says how many those were, they are taken off.

    Args:
        interfaces: Of one VPP.
        of_vpp: From `show interface`.
        full_rings: From `show hardware-interfaces`.
        of_kernel: Of ports that are the kernel's.
    """
    for each in interfaces:
        for port, vlan in each.ports:
            seen = of_vpp.get(each.name_of(vlan))
            if seen is None:
                continue
            received, sent = seen.count("rx packets"), seen.count("tx packets")
            missed = seen.count("rx-miss") + seen.count("rx-no-buf")
            dropped = seen.count("tx-error")
            if each.kind is InterfaceKind.HOST and vlan is None and port in of_kernel:
                kernel = of_kernel[port]
                missed = kernel.rx_dropped + max(0, kernel.rx_packets - received)
                sent, dropped = kernel.tx_packets, kernel.tx_dropped
            elif each.kind is InterfaceKind.MEMIF:
                dropped = full_rings.get(each.name, 0)
                sent -= dropped
            yield port, InterfaceCounters(received, sent, missed, dropped)
