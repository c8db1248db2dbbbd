"""The configuration of Open vSwitch: a command for the daemon, one for all that a plan connects, rules for copies."""

from resources.libraries.python.drivers.switch.ovs.ports import DPDK, PortKind, columns
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import VSWITCH

BRIDGE = "csit"
_LOCAL_VLAN = 4094
"""Of the bridge's own port, which would otherwise get every flooded frame of every segment."""
_MOST_SEGMENTS = _LOCAL_VLAN - 1
_AGEING_S = 3600
"""The longest that OVS takes; an entry that ages out in a trial would turn forwarding into flooding."""
_IDLE_MS = 600_000
"""Datapath flows outlive the pauses between trials: a trial measures forwarding, not the learning before it."""
SLEEP_US = 100
"""How long a PMD thread may sleep when nothing comes. Without sleeping it would take all of a shared core."""


def cpu_mask(cpus: tuple[int, ...]) -> str:
    """CPUs as the hexadecimal mask that OVS takes: `0x6` for 1 and 2."""
    return hex(sum(1 << cpu for cpu in set(cpus)))


def of_daemon(plan: Plan, asked: str) -> list[str]:
    """Settings that must be there before the forwarding daemon starts.

    Args:
        plan: Has the vSwitch's cores.
        asked: The kind of ports as the topology says it.
    """
    settings = [
        f"pmd-cpu-mask={cpu_mask(plan.cores.cpus(VSWITCH))}",
        # The first name is that of OVS 3.1, where it was new; each version passes over the other.
        f"pmd-maxsleep={SLEEP_US}",
        f"pmd-sleep-max={SLEEP_US}",
        f"max-idle={_IDLE_MS}",
        "n-handler-threads=1",
        "n-revalidator-threads=1",
    ]
    if asked == DPDK.name:
        settings += [
            "dpdk-init=true",
            f"dpdk-lcore-mask={cpu_mask(plan.cores.cpus(VSWITCH, ThreadRole.MAIN))}",
            # Ports of the kernel gain nothing from huge pages, and a laptop has none.
            "dpdk-extra=--no-pci --no-huge --legacy-mem -m 1024 --no-telemetry --file-prefix=csit-ovs",
        ]
    return ["set", "Open_vSwitch", ".", *(f"other_config:{setting}" for setting in settings)]


def of_plan(plan: Plan, kind: PortKind, mtu: int) -> list[str]:
    """One transaction: a bridge, and every segment of the plan as a VLAN of its own with its two ports.

    Ports towards passive NFs are on the VLAN on which nothing is: what they get, `rules_of_copies` says.

    Args:
        plan: Has segments, ports and cores.
        kind: How packets are taken from ports.
        mtu: Of the ports, in bytes.

    Raises:
        Unsupported: More segments than VLANs.
    """
    if len(plan.segments) > _MOST_SEGMENTS:
        raise Unsupported(
            f"{len(plan.segments)} L2 segments, but one bridge of Open vSwitch has {_MOST_SEGMENTS} VLANs"
        )
    cpus = plan.cores.cpus(VSWITCH)
    by_interface = {port.interface: cpus[port.data_thread] for port in plan.ports(VSWITCH)}
    words = ["add-br", BRIDGE, "--", "set", "Port", BRIDGE, f"tag={_LOCAL_VLAN}"]
    words += ["--", "set", "Bridge", BRIDGE, "datapath_type=netdev", "fail_mode=standalone"]
    words += ["stp_enable=false", "rstp_enable=false", "mcast_snooping_enable=false"]
    words += ["other_config:disable-in-band=true", f"other_config:mac-aging-time={_AGEING_S}"]
    words += [f"other_config:mac-table-size={max(2048, 4 * len(plan.segments))}"]
    for vlan, segment in enumerate(plan.segments, 1):
        tags = dict.fromkeys(segment.members, vlan) | dict.fromkeys(segment.copies, _LOCAL_VLAN)
        for member, tag in tags.items():
            words += ["--", "add-port", BRIDGE, member, f"tag={tag}"]
            if row := columns(kind, member, by_interface[member], mtu):
                words += ["--", "set", "Interface", member, *row]
    return words


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
