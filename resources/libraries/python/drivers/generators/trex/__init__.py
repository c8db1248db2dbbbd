"""TRex, by its stateless API.

`driver.TrexGenerator` starts two processes in the generator's network namespace: `server`, the program that sends and
counts, and `client`, a Python that speaks to it with the client library out of the same folder, so that their versions
always match. Driver and client exchange the lines of `wire`. What the client runs is `client_process.py`, which imports
nothing of this project: TRex's library puts its own old copies of common packages in the place of others. Its packets
are made of the traffic profile of the built-in generator.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import PACKET, GeneratorDriver, Leftover, NodeCheck, PortOption
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.attachment import attachment_of, kernel_driver, polled_queues
from resources.libraries.python.model.testbed.nodes import DutNode, Interface, TgNode


class Trex(Frozen):
    """How TRex is run."""

    directory: str = "/opt/trex"
    """Where it is installed: the folder that has `t-rex-64`."""
    ports: Literal["auto", "dpdk", "af_packet"] = "auto"
    """How it takes its ports: DPDK drivers by PCI address, or AF_PACKET sockets on ports of the kernel (software mode);
    `auto` is DPDK on NICs that DPDK knows."""
    python: str = "auto"
    """The Python that runs its client library, 3.6 to 3.12, or a later one with the package legacy-cgi; `auto` is this
    project's own, or else the first of the system's that will do."""
    memory_mb: Annotated[int, Field(ge=128)] | None = None
    """Memory that it takes, in huge pages with DPDK; None for its own choice."""


DPDK_MB = 1024
"""Huge pages with DPDK, where the topology does not say."""

HUGE_FILES = "huge_files"
"""Prefixes of files in hugetlbfs that it keeps its memory in."""
LEFTOVERS = (
    Leftover(
        key=HUGE_FILES,
        label="huge page files of",
        remove="resources.libraries.python.drivers.generators.trex.driver:remove_left",
    ),
)
_PACKAGE = "resources.libraries.python.drivers.generators.trex"


_RECEIVING_CORE_PPS = 5e6
"""Packets per second of all ports that the receiving core takes, according to TRex's manual of its stateless mode
("Packets are handled by RX thread, up to 5 Mpps"; latency streams, which go the same way, at most 5 Mpps in all)."""
_STEERS = frozenset({"ice", "ixgbe", "mlx5_core"})
"""Kernel drivers of NICs whose filters steer all packets that are to be counted into one queue, which the receiving
core polls (`DROP_QUE_FILTER` in its source). i40e NICs count them themselves. NICs of 1 Gb/s are too slow to matter."""
_WITHOUT_FILTERS = frozenset({"ena", "enic", "gve", "iavf", "igc", "ixgbevf", "mana", "mlx4_core"})
"""Those of NICs that have no such filters. The receiving core takes their packets where each pair of ports has one
sending core (`ONE_QUE`); several count what they receive themselves (`MULTI_QUE`). So do those of virtual functions."""


def _counted_pps(node: TgNode) -> float | None:
    """Packets per second that the one receiving core counts with DPDK; None where NICs or several cores count.

    The sending cores of a pair of ports are those that it has while all of the node's ports are used.
    """
    ports = _dpdk_ports(node)
    one_queue = any((polled_queues(node, port) or 1) == 1 for port in ports)
    one_sender = one_queue or node.generator.cores <= max(1, len(ports) // 2)

    def by_one_core(port: Interface) -> bool:
        driver = kernel_driver(port)
        if port.nic_vfs or driver in _WITHOUT_FILTERS:
            return one_sender
        return driver in _STEERS

    return _RECEIVING_CORE_PPS if any(map(by_one_core, ports)) else None


def _dpdk_ports(node: TgNode) -> list[Interface]:
    ports = (port for port in node.interfaces.values() if port.pci_address is not None)
    return [port for port in ports if attachment_of(port, node).is_dpdk]


def _questions(node: TgNode | DutNode) -> Mapping[str, Any] | None:
    """Return where TRex is on a node that sends by it, or by it and another generator; None elsewhere.

    Beside it the PCI addresses of ports that it takes by DPDK, except for those whose virtual functions it takes.
    """
    if not isinstance(node, TgNode) or not (node.generator.driver == "trex" or "trex" in (node.model_extra or {})):
        return None
    ports = _dpdk_ports(node) if node.generator.driver == "trex" else []
    return {
        "directory": node.settings(Trex).directory,
        "ports": [port.pci_address for port in ports if port.pci_address is not None and not port.nic_vfs],
    }


CHECKS = (NodeCheck(script=f"{_PACKAGE}.trex_facts", arguments=_questions, check=f"{_PACKAGE}.driver:check"),)
DRIVERS = (
    GeneratorDriver(
        name="trex",
        label="TRex",
        options={"trex": Trex},
        factory=f"{_PACKAGE}.driver:TrexGenerator",
        missing=f"{_PACKAGE}.driver:missing_on",
        kernel=(replace(PACKET, when=lambda node: node.settings(Trex).ports == "af_packet"),),
        words=("t-rex", "t-rex-64"),
        protocols=(Protocol.IP,),
        ports=PortOption(Trex, "af_packet", "AF_PACKET sockets"),
        tags_frames=True,
        loops_back=2,
        huge_pages_mb=lambda node: node.settings(Trex).memory_mb or DPDK_MB,
        counted_pps=_counted_pps,
    ),
)
