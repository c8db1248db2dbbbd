"""How Open vSwitch takes packets from a port: a fact sheet for each way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.plan import Plan, Port

_AF_XDP_PORT_BYTES = 76_000_000
"""Memory that OVS 3.1 takes and touches for each AF_XDP port with one queue: 3,028 MB for 40 ports, measured."""
_AF_XDP_LARGEST_FRAME_BYTES = 3498
"""Largest packet of native XDP on veth: one page without the headroom and tailroom of a frame."""
_DPDK_RING_FRAMES = 4096
"""Frames that a port's ring holds: at 100 kpps 40 ms, the turns of other threads on an oversubscribed core."""


@dataclass(frozen=True, slots=True)
class PortKind:
    """One way."""

    name: str
    """As topologies write it."""
    description: str
    """For the record of a result."""
    polled: bool
    """Polled by PMD threads, which have planned cores; otherwise the daemon's main thread forwards."""
    port_bytes: int = 0
    """Memory that a port takes."""
    largest_frame_bytes: int | None = None
    """L2 with FCS; None where there is no bound of its own."""


SYSTEM = PortKind("system", "AF_PACKET sockets, forwarding by the main thread", polled=False)
KERNEL = PortKind("kernel", "forwarding by the kernel in the threads that receive", polled=False)
AF_XDP = PortKind(
    "af_xdp",
    "AF_XDP sockets (native, copied), forwarding by PMD threads",
    polled=True,
    port_bytes=_AF_XDP_PORT_BYTES,
    largest_frame_bytes=_AF_XDP_LARGEST_FRAME_BYTES,
)
DPDK = PortKind("dpdk", "DPDK net_af_packet, forwarding by PMD threads", polled=True)
PHYSICAL = PortKind("physical", "DPDK on physical ports", polled=True)
VHOST = PortKind("vhost", "DPDK vhost-user (client)", polled=True)
KINDS = {kind.name: kind for kind in (SYSTEM, KERNEL, AF_XDP, DPDK)}
"""Ways for virtual ports of the kernel, which a topology may choose from."""


def by_port(plan: Plan, owner: str, virtual: PortKind) -> dict[str, PortKind]:
    """How packets are taken from each port of a vSwitch.

    `virtual`: for ports of the kernel.
    """
    found = {}
    for link in plan.links:
        for port in (link.a, link.b):
            if port.owner == owner:
                physical = port.nic is not None and port.nic.attachment.is_dpdk
                shared = link.medium is Medium.VHOST_USER
                found[port.interface] = PHYSICAL if physical else VHOST if shared else virtual
    return found


def choose(asked: str, offered: Iterable[str], datapaths: Iterable[str] = ("netdev",)) -> PortKind:
    """Choose how to take packets.

    Args:
        asked: A name of `KINDS`, or `auto` for the one with the highest rate without loss on veth ports.
        offered: Interface types that the running daemon has (`iface_types`).
        datapaths: Datapath types that it has (`datapath_types`); `system` is the kernel's.

    Raises:
        Unsupported: The daemon was built without it, or the kernel has no datapath.
    """
    if asked == KERNEL.name:
        if "system" not in set(datapaths):
            raise Unsupported("this kernel has no datapath of Open vSwitch (modprobe openvswitch)")
        return KERNEL
    needed = {"af_xdp": "afxdp", "dpdk": "dpdk", "system": "system"}
    types = set(offered)
    if asked == "auto":
        return AF_XDP if needed["af_xdp"] in types else SYSTEM
    if needed[asked] not in types:
        raise Unsupported(f"this ovs-vswitchd has no ports of type {asked}; it has {', '.join(sorted(types))}")
    return KINDS[asked]


def check_size(kind: PortKind, ports: int, largest_frame_bytes: int, available_bytes: int) -> None:
    """See whether ports of a kind can be had.

    `largest_frame_bytes`: L2 with FCS.
    `available_bytes`: memory of the machine that is free to be used.

    Raises:
        Unsupported: They cannot; the text says what would do.
    """
    other = "say `ovs: {ports: system}` in the topology"
    if kind.largest_frame_bytes is not None and largest_frame_bytes > kind.largest_frame_bytes:
        raise Unsupported(
            f"{kind.name} ports of Open vSwitch carry frames up to {kind.largest_frame_bytes} B, "
            f"asked for are {largest_frame_bytes} B; {other}"
        )
    needed = ports * kind.port_bytes
    if needed > available_bytes:
        raise Unsupported(
            f"{ports} {kind.name} ports of Open vSwitch need {needed / 1e9:.1f} GB of memory, "
            f"{available_bytes / 1e9:.1f} GB are available; {other}"
        )


def columns(kind: PortKind, port: Port, cpus: Sequence[int], mtu: int, socket: Path | None = None) -> tuple[str, ...]:
    """Columns of an interface's row in OVS's database, as `ovs-vsctl set Interface` takes them.

    Args:
        kind: How packets are taken.
        port: Its row has the name of the interface.
        cpus: Where each of its receive queues is to be polled.
        mtu: In bytes.
        socket: Where the other end of shared memory listens.
    """
    interface = port.interface
    affinity = "other_config:pmd-rxq-affinity=" + ",".join(f"{queue}:{cpu}" for queue, cpu in enumerate(cpus))
    if kind is AF_XDP:
        # Not best-effort: a port that silently falls back would not be what the record says.
        return ("type=afxdp", "options:xdp-mode=native", f"options:n_rxq={len(cpus)}", affinity)
    if kind is DPDK:
        frame = 2048 if mtu <= 1500 else 16384
        devargs = (
            f"net_af_packet_{interface},iface={interface},qpairs=1,qdisc_bypass=1,"
            f"blocksz=65536,framesz={frame},framecnt={_DPDK_RING_FRAMES * 2048 // frame}"
        )
        return ("type=dpdk", f"options:dpdk-devargs={devargs}", f"mtu_request={mtu}", affinity)
    if kind is PHYSICAL:
        address = port.nic.pci_address if port.nic is not None else None
        queues = f"options:n_rxq={len(cpus)}"
        return ("type=dpdk", f"options:dpdk-devargs={address}", queues, f"mtu_request={mtu}", affinity)
    if kind is VHOST:
        return ("type=dpdkvhostuserclient", f"options:vhost-server-path={socket}", f"mtu_request={mtu}", affinity)
    return ()
