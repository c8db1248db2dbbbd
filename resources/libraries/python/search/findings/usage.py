"""Time of CPUs: from two readings of a sampler to shares, and from sampled call stacks to stages of the Linux kernel.

A sample belongs to the innermost function of its stack that begins a stage: what `nft_do_chain` calls is the work of
a netfilter hook, whether NAPI or a system call has called it.
"""

from collections import Counter
from collections.abc import Collection
from math import sqrt

from resources.libraries.python.model.findings import CpuLoad, ThreadLoad, Usage
from resources.libraries.python.model.measurements.counters import Sample
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.measurements.stacks import SEPARATOR, Stacks
from resources.libraries.python.model.plan import Plan, Port


def usage(plan: Plan, before: Sample, after: Sample, sending_s: float) -> Usage:
    """Time of data threads and their CPUs while sending.

    Readings enclose a little more than the sending: the time of preparing and of settling, in which data threads have
    nothing to do. So their work is divided by the time of sending alone, and what exceeds it is cut off.

    `sending_s`: Seconds of sending of all trials in between; above 0.
    """
    sending_ns = sending_s * 1e9

    def share(ns: int) -> float:
        return min(1.0, max(0.0, ns / sending_ns))

    ports = plan.ports()
    machines = {thread.owner: thread.machine for thread in plan.cores.threads}
    planned = {owner: plan.cores.cpus(owner) for owner in {port.owner for port in ports}}
    threads: list[ThreadLoad] = []
    receivers: dict[str, Port] = {}
    for port in ports:
        receivers.setdefault(port.receiver, port)  # VLAN devices on a trunk share a thread, which counts once
    for name, port in receivers.items():
        if name in before.threads and name in after.threads:
            one, other = before.threads[name], after.threads[name]
            running = share(other.running_ns - one.running_ns)
            threads.append(
                ThreadLoad(
                    owner=port.owner,
                    interface=name,
                    cpu=planned[port.owner][port.data_thread],
                    running=running,
                    waiting=min(1.0 - running, share(other.waiting_ns - one.waiting_ns)),
                    machine=machines.get(port.owner),
                )
            )
    cpus = tuple(
        CpuLoad(
            cpu=cpu,
            user=share(after.cpus[cpu].user_ns - before.cpus[cpu].user_ns),
            system=share(after.cpus[cpu].system_ns - before.cpus[cpu].system_ns),
            softirq=share(after.cpus[cpu].softirq_ns - before.cpus[cpu].softirq_ns),
            stolen=share(after.cpus[cpu].stolen_ns - before.cpus[cpu].stolen_ns),
        )
        for cpu in sorted(before.cpus.keys() & after.cpus.keys())
    )
    return Usage(
        threads=tuple(threads),
        cpus=cpus,
        backlog_dropped=after.backlog_dropped - before.backlog_dropped,
        squeezed=after.squeezed - before.squeezed,
    )


def busy_cpus(cpus: Collection[int], before: Sample, after: Sample, seconds: float) -> float | None:
    """Return how many of some CPUs were busy, mean number; None where it is not known."""
    known = set(cpus) & before.cpus.keys() & after.cpus.keys()
    if not known or seconds <= 0:
        return None
    busy_ns = 0
    for cpu in known:
        one, other = before.cpus[cpu], after.cpus[cpu]
        busy_ns += other.user_ns + other.system_ns + other.softirq_ns
        busy_ns -= one.user_ns + one.system_ns + one.softirq_ns
    return busy_ns * 1e-9 / seconds


_STAGES = {
    "NAPI poll": ("napi_threaded_poll", "napi_poll", "__napi_poll", "net_rx_action", "process_backlog"),
    "XDP": ("bpf_prog_run_xdp", "do_xdp_generic", "xdp_do_redirect"),
    "netfilter hook": ("nft_do_chain",),
    "connection tracking": ("nf_conntrack_in",),
    "address translation": ("nf_nat_inet_fn", "nf_nat_packet"),
    "bridge": ("br_handle_frame", "br_forward", "br_flood"),
    "flow table": ("ovs_vport_receive", "ovs_dp_process_packet"),
    "IP receive": ("ip_rcv", "ipv6_rcv", "ip_list_rcv", "ipv6_list_rcv"),
    "route lookup": ("fib_table_lookup", "fib6_table_lookup", "ip_route_input_slow"),
    "IP forward": ("ip_forward", "ip6_forward"),
    "transmit": ("__dev_queue_xmit", "dev_hard_start_xmit", "sch_direct_xmit"),
    "xfrm": ("xfrm_input", "xfrm_output"),
    "socket receive": ("packet_rcv", "tpacket_rcv", "udp_queue_rcv_skb"),
}
_STAGE_OF = {function: stage for stage, functions in _STAGES.items() for function in functions}
_NORMAL = 1.96
"""Half of a 95 % interval over the standard error."""


def stage_costs(found: Stacks) -> tuple[NodeCost, ...]:
    """Return the stages by part, with CPU time per packet that came back; none where nothing came back.

    The interval is that of a Poisson process: a stage of few samples is known badly.
    """
    if not found.received:
        return ()
    counts: Counter[tuple[str, str]] = Counter()
    times_s: dict[tuple[str, str], float] = {}
    for node in found.nodes:
        for stack, count in node.stacks.items():
            part, *functions = stack.split(SEPARATOR)
            stage = next((_STAGE_OF[name] for name in reversed(functions) if name in _STAGE_OF), None)
            if stage is not None:
                counts[part, stage] += count
                times_s[part, stage] = times_s.get((part, stage), 0.0) + count / node.hz
    return tuple(
        NodeCost(
            part=part,
            node=stage,
            packets=found.received,
            cost=(each := 1e9 * times_s[part, stage] / found.received),
            unit="ns",
            error=_NORMAL * each / sqrt(count),
        )
        for (part, stage), count in sorted(counts.items())
        if count
    )
