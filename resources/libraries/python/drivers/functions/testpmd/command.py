"""The command line of one testpmd: pure, from the plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.plan import NfPlan, Port

PROGRAM = "dpdk-testpmd"
_PLAIN_FRAME_BYTES = 1518
_BLOCK_BYTES = 65536
_RING_BYTES = 4 * 2**20
"""Of each ring of a port: 2,048 frames of up to 1518 B, at 100 kpps the turns of others on an oversubscribed core."""
_MBUFS = 16384
_MEMORY_MB = 128
"""Holds the mbufs of plain frames (36 MB) and what DPDK needs itself."""
_JUMBO_MEMORY_MB = 320
_VHOST_RING = 1024
"""Descriptors of a queue of shared memory, the most that virtio has."""
_HEADROOM_BYTES = 128
_ETHERNET_BYTES = 18


@dataclass(frozen=True, slots=True)
class Memif:
    """Where to meet the vSwitch for shared-memory links, instead of kernel interfaces."""

    socket: str
    """Path of the Unix socket; the vSwitch listens."""
    left_id: int
    right_id: int


def command(
    function: NfPlan,
    cores: CoreMap,
    *,
    ports: Sequence[Port] = (),
    largest_frame_bytes: int = _PLAIN_FRAME_BYTES,
    memif: Memif | None = None,
    vhost: Mapping[str, Path] | None = None,
) -> list[str]:
    """The argument vector of an NF.

    It forwards from port 0 (left) to port 1 (right) and back, writes its own MAC as source and the next hop's as
    destination, and leaves the rest of a frame as it is.

    Args:
        function: Interfaces and next hops.
        cores: Where its threads are.
        ports: Its ports, left first, with their receive queues; none where each has one.
        largest_frame_bytes: The largest L2 frame that will be sent, FCS included.
        memif: Shared-memory links; None for the kernel's interfaces by AF_PACKET.
        vhost: Sockets by interface, of those that share memory with the vSwitch, which connects to them. Then memory is
            of huge pages.
    """
    data = cores.cpus(function.name)
    main = cores.cpus(function.name, ThreadRole.MAIN)[0]
    plain = largest_frame_bytes <= _PLAIN_FRAME_BYTES
    queues = min((len(port.queues) for port in ports), default=1)
    devices = _by_memif(function, memif) if memif else _by_side(function, 2048 if plain else 16384, vhost or {}, queues)
    words = [PROGRAM, "-v", f"--lcores={_lcores(main, _by_stream(data, ports))}", "--main-lcore=0"]
    # Of shared memory the vSwitch maps all, so it is few and large pages, and no files that would be left. Ports of the
    # kernel need no huge pages, which a laptop has not. PCI devices are not ours.
    words += ["--in-memory", "--single-file-segments"] if vhost else ["--no-huge", "--no-shconf"]
    words += ["-m", str(memory_mb(largest_frame_bytes)), "--no-pci", "--no-telemetry", f"--file-prefix={function.name}"]
    words += [f"--vdev={device}" for device in devices]
    words += ["--", f"--nb-cores={min(2 * queues, len(data))}", f"--rxq={queues}", f"--txq={queues}"]
    words += ["--forward-mode=mac"]
    words += [f"--eth-peer=0,{function.left.route.mac}", f"--eth-peer=1,{function.right.route.mac}"]
    words += [f"--total-num-mbufs={_MBUFS}", "--no-mlockall"]
    if not plain:
        # AF_PACKET copies a frame into one mbuf and does not look whether it fits.
        words += [f"--mbuf-size={largest_frame_bytes + _HEADROOM_BYTES + 64}"]
        words += [f"--max-pkt-len={largest_frame_bytes}"]
    return words


def memory_mb(largest_frame_bytes: int) -> int:
    """Memory for the packet buffers of an NF."""
    return _MEMORY_MB if largest_frame_bytes <= _PLAIN_FRAME_BYTES else _JUMBO_MEMORY_MB


def _by_stream(data: Sequence[int], ports: Sequence[Port]) -> Sequence[int]:
    """CPUs of data threads in the order in which testpmd gives its streams to lcores.

    A stream is a queue of a port, and those of all first queues come first: so that lcore 1 is the thread that is
    planned for the first one, and so on. Threads without a queue are last.
    """
    streams = [
        port.queues[queue] for queue in range(max((len(port.queues) for port in ports), default=0)) for port in ports
    ]
    return [data[thread] for thread in dict.fromkeys((*streams, *range(len(data))))]


def _lcores(main: int, data: Sequence[int]) -> str:
    """DPDK's lcore 0 is the main thread, 1 and up the data threads in order: `0@4,1@6,2@7`."""
    return ",".join(f"{lcore}@{cpu}" for lcore, cpu in enumerate((main, *data)))


def _by_side(function: NfPlan, frame_bytes: int, vhost: Mapping[str, Path], queues: int) -> list[str]:
    ring = f"qpairs=1,qdisc_bypass=1,blocksz={_BLOCK_BYTES},framesz={frame_bytes},framecnt={_RING_BYTES // frame_bytes}"
    sides = (function.left, function.right)
    return [
        f"virtio_user{port},path={vhost[side.name]},server=1,queues={queues},queue_size={_VHOST_RING},mac={side.mac}"
        if side.name in vhost
        else f"net_af_packet{port},iface={side.name},{ring}"
        for port, side in enumerate(sides)
    ]


def _by_memif(function: NfPlan, memif: Memif) -> list[str]:
    sides = ((memif.left_id, function.left), (memif.right_id, function.right))
    # A socket of the file system, not an abstract one: abstract names end at the network namespace.
    return [
        f"net_memif{port},role=client,id={identifier},socket={memif.socket},socket-abstract=no,mac={side.mac}"
        for port, (identifier, side) in enumerate(sides)
    ]
