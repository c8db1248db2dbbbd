"""Configuration file and arguments of TRex's server, with its ports and the CPUs of its threads. Pure.

Each thread has a CPU of its own where there are enough; otherwise all share one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.drivers.generators.trex import Trex
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.placement.sender_threads import OTHER_THREADS, generator_cpus, senders_per_pair

PROGRAM = "_t-rex-64"
"""Program that the installed script starts. The script would look after drivers and kill routing daemons of other
runs; NICs are bound before, and nothing is shared with other users."""
PREFIX = "csit"
"""Of its files in hugetlbfs and of its folder below RUNTIME_DIRECTORY."""
_SMALL_FRAME_BYTES = 1900
"""Bytes in a slot of 2048 bytes beside the headers of the ring."""
_RING = (262_144, 2048, 16_384)
_RING_OF_LARGE = (593_920, 9280, 4096)
"""Bytes of a block, bytes of a slot, slots. With the server's own 256 slots packets are lost from 50 kpps on; here a
ring has 34 or 38 MB, and a port has two."""
_MANY_PORTS = 8
_FEWER = 4
"""Where there are more ports than that, rings have a fourth of the slots."""

MAX_PORTS = 32


@dataclass(frozen=True, slots=True)
class TrexPort:
    """One port."""

    device: str
    """The kernel's name of it, in the generator's namespace."""
    pci_address: str | None
    source_mac: str
    destination_mac: str
    """Of the first flow that leaves here. Packets carry their own; with this one the server sends no ARP request."""


@dataclass(frozen=True, slots=True)
class TrexPorts:
    """All ports of the generator."""

    ports: tuple[TrexPort, ...]
    number: dict[str, int]
    """By the plan's name of an interface; several have the same where VLANs share a cable."""
    dpdk: bool
    """Whether they are taken by DPDK drivers; else by AF_PACKET sockets."""
    queues: int = 1
    """That each of them can have, to send and to receive."""


def table_of(plan: Plan, settings: Trex) -> TrexPorts:
    """The ports of a plan.

    Raises:
        Unsupported: An odd number of ports, more than TRex has, or DPDK for ports without a PCI address.
    """
    rows: dict[str, Port] = {}
    number: dict[str, int] = {}
    for port in plan.ports(GENERATOR):
        key = port.interface if port.nic is None else port.nic.pci_address or port.nic.port
        rows.setdefault(key, port)
        number[port.interface] = list(rows).index(key)
    if len(rows) % 2 or not rows:
        raise Unsupported(f"TRex takes its ports in pairs, the plan has {len(rows)} for the generator")
    if len(rows) > MAX_PORTS:
        raise Unsupported(f"the plan has {len(rows)} ports for the generator, TRex takes {MAX_PORTS}")
    by_dpdk = [port for port in rows.values() if port.nic is not None and port.nic.attachment.is_dpdk]
    others = [port.interface for port in rows.values() if port not in by_dpdk]
    if others and (by_dpdk or settings.ports == "dpdk"):
        raise Unsupported(
            f"TRex drives all of its ports by DPDK or none, and {others[0]} is a port of the kernel; "
            "set trex: {ports: af_packet}"
        )
    ports = tuple(_port(plan, port, number) for port in rows.values())
    queues = min((port.nic.rx_queues if port.nic else None) or 1 for port in rows.values())
    return TrexPorts(ports, number, dpdk=bool(by_dpdk), queues=queues)


def _port(plan: Plan, port: Port, number: dict[str, int]) -> TrexPort:
    mine = number[port.interface]
    leaving = [flow for flow in plan.flows if number[flow.tx_interface] == mine]
    if not leaving:
        raise Unsupported(f"no flow leaves from the generator's port {port.interface}")
    return TrexPort(
        device=port.interface,
        pci_address=port.nic.pci_address if port.nic else None,
        source_mac=leaving[0].source_mac,
        destination_mac=leaving[0].destination_mac,
    )


@dataclass(frozen=True, slots=True)
class CoreAssignment:
    """CPUs of the threads."""

    control: int
    receiving: int
    sending: tuple[tuple[int, ...], ...]
    """Sending threads of each pair of ports; all have the same number."""

    @property
    def shared(self) -> bool:
        """Whether all threads take turns on one CPU (TRex's `low_end`)."""
        senders = [cpu for row in self.sending for cpu in row]
        return len({self.control, self.receiving, *senders}) < OTHER_THREADS + len(senders)

    def __str__(self) -> str:
        if self.shared:
            return f"all threads in turns on CPU {self.control} (low_end)"
        sending = ", ".join(" and ".join(map(str, row)) for row in self.sending)
        return f"sending on CPUs {sending}, receiving on {self.receiving}, control on {self.control}"


def place(plan: Plan, pairs: int, *, dpdk: bool, queues: int = 1) -> CoreAssignment:
    """Place the threads on the generator's planned CPUs: as many for each pair of ports as CPUs and queues allow.

    `plan`: Has them; its main thread's CPU is for control, and that of a second one for receiving.
    `pairs`: Pairs of ports.
    `dpdk`: Whether ports are polled: then threads cannot take turns.
    `queues`: That each port can have.

    Raises:
        Unsupported: Too few for polled ports, or none at all.
    """
    cpus, needed = generator_cpus(plan), OTHER_THREADS + pairs
    if len(cpus) >= needed:
        count = senders_per_pair(len(cpus), pairs, queues)
        firsts = range(OTHER_THREADS, OTHER_THREADS + count * pairs, count)
        return CoreAssignment(cpus[0], cpus[1], tuple(cpus[first : first + count] for first in firsts))
    if dpdk or not cpus:
        raise Unsupported(
            f"TRex needs {needed} CPUs for {pairs} pair{'s'[pairs == 1 :]} of ports (control, receiving, one for each "
            f"pair), the plan has {len(cpus)} for the generator; raise nodes.TG.generator.cores"
        )
    cpu = plan.cores.cpus(GENERATOR)[0] if plan.cores.cpus(GENERATOR) else cpus[0]
    return CoreAssignment(cpu, cpu, ((cpu,),) * pairs)


def yaml_of(
    table: TrexPorts,
    placement: CoreAssignment,
    numa_node: int,
    *,
    largest_frame_bytes: int,
    memory_mb: int | None,
) -> str:
    """The configuration file.

    `largest_frame_bytes`: That will be sent, L2 with FCS.
    `memory_mb`: Of huge pages, or of ordinary memory in software mode; None for the server's own choice.
    """
    interfaces = [
        port.pci_address if table.dpdk else _software(number, port, len(table.ports), largest_frame_bytes)
        for number, port in enumerate(table.ports)
    ]
    entry: dict[str, object] = {
        "version": 2,
        "interfaces": interfaces,
        "port_limit": len(table.ports),
        "prefix": PREFIX,
        "c": len(placement.sending[0]),
        "port_info": [{"dest_mac": port.destination_mac, "src_mac": port.source_mac} for port in table.ports],
        **({"limit_memory": str(memory_mb)} if memory_mb is not None else {}),
        **_threads(placement, numa_node),
    }
    # Values as JSON, which is YAML on one line: what an old parser surely reads.
    lines = [f"{key}: {json.dumps(value)}" for key, value in entry.items()]
    return "- " + "\n  ".join(lines) + "\n"


def _software(number: int, port: TrexPort, ports: int, largest_frame_bytes: int) -> str:
    block, slot, slots = _RING if largest_frame_bytes <= _SMALL_FRAME_BYTES else _RING_OF_LARGE
    count = slots // _FEWER if ports > _MANY_PORTS else slots
    ring = f"blocksz={block},framesz={slot},framecnt={count}"
    return f"--vdev=net_af_packet{number},iface={port.device},{ring},qdisc_bypass=1"


def _threads(placement: CoreAssignment, numa_node: int) -> Mapping[str, object]:
    if placement.shared:
        return {"low_end": True, "low_end_core": placement.control}
    pairs = [{"socket": max(0, numa_node), "threads": list(cpus)} for cpus in placement.sending]
    return {
        "platform": {
            "master_thread_id": placement.control,
            "latency_thread_id": placement.receiving,
            "dual_if": pairs,
        }
    }


def arguments(directory: Path, configuration: Path, *, mellanox: bool) -> list[str]:
    """The server's command line.

    `mellanox`: Whether ports are NICs by Mellanox, whose driver is a library of its own.
    """
    return [
        str(directory / PROGRAM),
        "-i",
        "--stl",
        "--cfg",
        str(configuration),
        "--no-scapy-server",
        "--no-key",
        # Silent: otherwise its log is a screen that is drawn anew twice a second.
        "--iom",
        "0",
        "--hdrh",
        *(["--mlx5-so"] if mellanox else []),
    ]
