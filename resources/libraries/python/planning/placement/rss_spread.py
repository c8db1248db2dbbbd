"""Spread of flows over data threads of the vSwitches: queues of physical ports, and RSS.

RSS hashes addresses, and ports where a protocol has them. Packets of a flow differ in their source address only, so
a port has as many hashes as sources come to it. Few hashes on many queues are uneven by chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.planning.names import vswitch_name
from resources.libraries.python.planning.placement.queues import Queues, RxQueues
from resources.libraries.python.planning.service import ServiceLayout

_HASHES_PER_QUEUE = 8
"""With 8 random hashes per queue the fullest of 4 queues has 1.4 times its share, of 8 queues 1.5 times (medians)."""


@dataclass(frozen=True, slots=True)
class EdgePort:
    """A physical port of a vSwitch."""

    name: str
    """Node and port of the topology: `DUT1.port1`."""
    owner: str
    """The vSwitch."""
    queues: Queues
    cpus: tuple[int, ...]
    """CPUs of the data thread of each queue."""
    threads: int
    """Data threads of the owner."""
    most: int | None
    """Receive queues that the NIC has; None where the kernel drives it."""
    hashes: int
    """Address pairs of the packets that come here."""

    def __str__(self) -> str:
        rows = zip(self.queues, self.cpus, strict=True)
        placed = (f"queue {queue} on data thread {thread} (CPU {cpu})" for queue, (thread, cpu) in enumerate(rows))
        return f"{self.name} of {self.owner}: {', '.join(placed)}"

    def warnings(self) -> Iterator[str]:
        """Reasons why data threads do not get their share."""
        count = len(self.queues)
        if count < self.threads:
            why = "the kernel drives the port" if self.most is None else f"the NIC has no more than {self.most}"
            yield (
                f"{self.name}: {count} receive queue{'s'[: count > 1]} for {self.threads} data threads of "
                f"{self.owner}, because {why}: only {count} of them receive"
            )
        if self.hashes < count:
            yield (
                f"{self.name}: {self.hashes} address pair{'s'[: self.hashes > 1]} for {count} receive queues: RSS "
                f"hashes nothing else of these packets, so {count - self.hashes} or more queues get none"
            )
        elif count > 1 and self.hashes < _HASHES_PER_QUEUE * count:
            yield (
                f"{self.name}: {self.hashes} address pairs for {count} receive queues: too few for RSS to spread them "
                "evenly"
            )


def edge_ports(
    service: ServiceLayout, queues: RxQueues, cores: CoreMap, duts: Sequence[str], sources: int
) -> tuple[EdgePort, ...]:
    """The physical ports of all vSwitches, each NIC once; none where all is on one machine."""
    edges = service.edges
    found: dict[str, EdgePort] = {}
    for instance in service.instances:
        for number in range(1, 2 * edges.duts + 1):
            dut = (number + 1) // 2
            nic, owner = edges.nic(instance, number // 2, number % 2), vswitch_name(dut)
            if nic is None or (name := f"{duts[dut - 1]}.{nic.port}") in found:
                continue
            here, cpus = queues.at_edge(instance, number), cores.cpus(owner)
            found[name] = EdgePort(
                name=name,
                owner=owner,
                queues=here,
                cpus=tuple(cpus[thread] for thread in here),
                threads=len(cpus),
                most=nic.rx_queues,
                hashes=sources * (len(service.instances) if edges.one_cable else 1),
            )
    return tuple(found.values())


def spread_warnings(ports: Sequence[EdgePort]) -> tuple[str, ...]:
    """Return why data threads of vSwitches do not get their share of traffic from cables."""
    return tuple(text for port in ports for text in port.warnings())
