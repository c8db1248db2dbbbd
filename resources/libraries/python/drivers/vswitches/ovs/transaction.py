"""The configuration of Open vSwitch: a command for the daemon, one for all that a plan connects, rules for copies."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Literal

from resources.libraries.python.drivers.vswitches.ovs.ports import DPDK, KERNEL, PortKind, by_port, columns
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.plan import Nic, Plan, Segment
from resources.libraries.python.planning.address_bounds import NO_SENDER
from resources.libraries.python.planning.names import VSWITCH

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

    Args:
        plan: Has the vSwitch's cores.
        asked: The kind of ports as the topology says it.
        owner: Which vSwitch of the plan it is.
        socket_memory_mb: Huge pages on the NUMA node of physical ports.
        asked_sleep_us: Longest sleep of PMD threads, as the topology says it.
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

    Args:
        plan: Has segments, ports and cores.
        kind: How packets are taken from virtual ports of the kernel.
        mtu: Of the ports, in bytes.
        owner: Which vSwitch of the plan it is.
        segments: That are on it; None for all of the plan.
        sockets: Where the other ends of shared memory listen, by port.

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

    Args:
        plan: Has the segments.
        own: Rules that no packet matches.
        version: Cookie of every rule: the same rule with another one replaces it.

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
