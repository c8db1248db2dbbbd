"""The server's configuration file and its arguments. Pure."""

import json
from collections.abc import Mapping
from pathlib import Path

from resources.libraries.python.drivers.generators.trex.cores import CoreAssignment
from resources.libraries.python.drivers.generators.trex.ports import TrexPort, TrexPorts

PROGRAM = "_t-rex-64"
"""What the installed script starts in the end. The script would look after drivers and kill routing daemons of other
runs; NICs are bound before, and nothing is shared with other users."""
PREFIX = "csit"
"""Of its files in hugetlbfs and of its folder below RUNTIME_DIRECTORY."""
_SMALL_FRAME_BYTES = 1900
"""What a slot of 2048 bytes holds beside the headers of the ring."""
_RING = (262_144, 2048, 16_384)
_RING_OF_LARGE = (593_920, 9280, 4096)
"""Bytes of a block, bytes of a slot, slots. With the server's own 256 slots packets are lost from 50 kpps on; here a
ring has 34 or 38 MB, and a port has two."""
_MANY_PORTS = 8
_FEWER = 4
"""Where there are more ports than that, rings have a fourth of the slots."""


def yaml_of(
    table: TrexPorts, placement: CoreAssignment, numa_node: int, *, largest_frame_bytes: int, memory_mb: int | None
) -> str:
    """The configuration file.

    Args:
        table: The ports.
        placement: CPUs of threads.
        numa_node: Of the NICs.
        largest_frame_bytes: That will be sent, L2 with FCS.
        memory_mb: Of huge pages, or of ordinary memory in software mode; None for the server's own choice.
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

    Args:
        directory: Where it is installed.
        configuration: Its configuration file.
        mellanox: Whether ports are NICs by Mellanox, whose driver is a library of its own.
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
