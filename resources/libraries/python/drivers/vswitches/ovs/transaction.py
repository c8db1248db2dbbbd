"""The configuration of Open vSwitch: for the daemon, for all that a plan connects, for each kind of port; and rules."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Literal

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.plan import Nic, Plan, Port, Segment
from resources.libraries.python.planning.address_bounds import NO_SENDER
from resources.libraries.python.planning.names import VSWITCH

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

    `asked`: A name of `KINDS`, or `auto` for the one with the highest rate without loss on veth ports.
    `offered`: Interface types that the running daemon has (`iface_types`).
    `datapaths`: Datapath types that it has (`datapath_types`); `system` is the kernel's.

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

    `port`: Its row has the name of the interface.
    `cpus`: Where each of its receive queues is to be polled.
    `socket`: Where the other end of shared memory listens.
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


BRIDGE = "csit"
_LOCAL_VLAN = 4094
"""Of the bridge's own port, which would otherwise get every flooded frame of every segment."""
_MAX_SEGMENTS = _LOCAL_VLAN - 1
_AGEING_S = 3600
"""The longest that OVS takes; an entry that ages out in a trial would turn forwarding into flooding."""
_IDLE_MS = 600_000
"""Datapath flows outlive the pauses between trials: a trial measures forwarding, not the learning before it."""
SLEEP_US = 100
"""How long a PMD thread may sleep when nothing comes. Without sleeping it would take all of a shared core."""


def cpu_mask(cpus: tuple[int, ...]) -> str:
    """CPUs as the hexadecimal mask that OVS takes: `0x6` for 1 and 2."""
    return hex(sum(1 << cpu for cpu in set(cpus)))


def sleep_us(plan: Plan, owner: str = VSWITCH, asked_us: int | Literal["auto"] = "auto") -> int:
    """How long a PMD thread may sleep when nothing comes: never where it polls physical ports on a CPU of its own."""
    if asked_us != "auto":
        return asked_us
    return 0 if physical_ports(plan, owner) and not plan.cores.oversubscribed else SLEEP_US


def physical_ports(plan: Plan, owner: str) -> tuple[Nic, ...]:
    """Physical ports of a vSwitch that DPDK drives."""
    nics = (port.nic for port in plan.ports(owner))
    return tuple(nic for nic in nics if nic is not None and nic.attachment.is_dpdk)


def of_daemon(
    plan: Plan,
    asked: str,
    owner: str = VSWITCH,
    *,
    socket_memory_mb: int = 1024,
    asked_sleep_us: int | Literal["auto"] = "auto",
) -> list[str]:
    """Settings that must be there before the forwarding daemon starts.

    `asked`: The kind of ports as the topology says it.
    `socket_memory_mb`: Huge pages on the NUMA node of physical ports.
    `asked_sleep_us`: Longest sleep of PMD threads, as the topology says it.
    """
    sleep, nics = sleep_us(plan, owner, asked_sleep_us), physical_ports(plan, owner)
    settings = [
        f"pmd-cpu-mask={cpu_mask(plan.cores.cpus(owner))}",
        # The first name is that of OVS 3.1, where it was new; each version passes over the other.
        f"pmd-maxsleep={sleep}",
        f"pmd-sleep-max={sleep}",
        f"max-idle={_IDLE_MS}",
        "n-handler-threads=1",
        "n-revalidator-threads=1",
    ]
    if nics or asked == DPDK.name:
        settings += ["dpdk-init=true", f"dpdk-lcore-mask={cpu_mask(plan.cores.cpus(owner, ThreadRole.MAIN))}"]
    if nics:
        numa_nodes = {nic.numa_node for nic in nics if nic.numa_node is not None} or {0}
        memory = ",".join(str(socket_memory_mb if node in numa_nodes else 0) for node in range(max(numa_nodes) + 1))
        allowed = " ".join(f"-a {address}" for address in dict.fromkeys(nic.pci_address for nic in nics))
        # In memory: no files in hugetlbfs that a daemon which is killed would leave.
        extra = f"{allowed} --in-memory --no-telemetry --file-prefix=csit-ovs"
        # What is asked for is also the most: the plan has counted that much.
        limits = [f'dpdk-socket-{word}="{memory}"' for word in ("mem", "limit")]
        settings += [*limits, f"dpdk-extra={extra}"]
    elif asked == DPDK.name:
        # Ports of the kernel gain nothing from huge pages, and a laptop has none.
        settings += ["dpdk-extra=--no-pci --no-huge --legacy-mem -m 1024 --no-telemetry --file-prefix=csit-ovs"]
    return ["set", "Open_vSwitch", ".", *(f"other_config:{setting}" for setting in settings)]


def of_plan(  # noqa: PLR0917 - one transaction has all of it
    plan: Plan,
    kind: PortKind,
    mtu: int,
    owner: str = VSWITCH,
    segments: Sequence[Segment] | None = None,
    sockets: Mapping[str, Path] | None = None,
) -> list[str]:
    """One transaction: a bridge, and every segment of the plan as a VLAN of its own with its two ports.

    Ports towards passive NFs are on the VLAN on which nothing is: what they get, `rules_of_copies` says.

    `kind`: How packets are taken from virtual ports of the kernel.
    `mtu`: Of the ports, in bytes.
    `segments`: That are on it; None for all of the plan.
    `sockets`: Where the other ends of shared memory listen, by port.

    Raises:
        Unsupported: More segments than VLANs.
    """
    segments = plan.segments if segments is None else segments
    if len(segments) > _MAX_SEGMENTS:
        raise Unsupported(f"{len(segments)} L2 segments, but one bridge of Open vSwitch has {_MAX_SEGMENTS} VLANs")
    cpus, kinds = plan.cores.cpus(owner), by_port(plan, owner, kind)
    ports = {port.interface: port for port in plan.ports(owner)}
    words = ["add-br", BRIDGE, "--", "set", "Port", BRIDGE, f"tag={_LOCAL_VLAN}"]
    datapath = "system" if kind is KERNEL else "netdev"
    words += ["--", "set", "Bridge", BRIDGE, f"datapath_type={datapath}", "fail_mode=standalone"]
    words += ["stp_enable=false", "rstp_enable=false", "mcast_snooping_enable=false"]
    words += ["other_config:disable-in-band=true", f"other_config:mac-aging-time={_AGEING_S}"]
    words += [f"other_config:mac-table-size={max(2048, 4 * len(segments))}"]
    for vlan, segment in enumerate(segments, 1):
        tags = dict.fromkeys(segment.members, vlan) | dict.fromkeys(segment.copies, _LOCAL_VLAN)
        for member, tag in tags.items():
            words += ["--", "add-port", BRIDGE, member, f"tag={tag}"]
            port, socket = ports[member], (sockets or {}).get(member)
            if row := columns(kinds[member], port, [cpus[thread] for thread in port.queues], mtu, socket):
                words += ["--", "set", "Interface", member, *row]
    return words


def rules(plan: Plan, own: int, version: int) -> list[str]:
    """All OpenFlow rules of the bridge: those that no packet matches, those of copies, and learning for all the rest.

    `own`: Rules that no packet matches.
    `version`: Cookie of every rule: the same rule with another one replaces it.

    Raises:
        Unsupported: As `rules_of_copies`.
    """
    senders = (IPv4Address(NO_SENDER + number) for number in range(own))
    unused = [f"priority=200,ip,nw_src={sender},actions=drop" for sender in senders]
    return [f"cookie={version},{rule}" for rule in (*unused, *rules_of_copies(plan), "priority=0,actions=NORMAL")]


def rules_of_copies(plan: Plan) -> list[str]:
    """OpenFlow rules for segments with passive NFs: out of the other member, and of all ports that get copies.

    One rule for each direction, by the port of entry alone: whatever addresses an NF has written, the frame goes on
    and its copies are made in one step. Other segments keep forwarding by what they have learned.

    Raises:
        Unsupported: A segment has more than two members, so that there is no other one.
    """
    rules = []
    for segment in plan.segments:
        if segment.copies and len(segment.members) != 2:
            raise Unsupported(f"{segment.name} has {len(segment.members)} members: copies are made between two only")
        for member in segment.members if segment.copies else ():
            others = [name for name in segment.members if name != member]
            actions = ",".join(f"output:{port}" for port in (*others, *segment.copies))
            rules.append(f"priority=100,in_port={member},actions={actions}")
        rules += [f"priority=100,in_port={port},actions=drop" for port in segment.copies]
    return rules
