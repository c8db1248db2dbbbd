"""Cost of packets by stage of the Linux kernel, from sampled call stacks. Pure.

A sample belongs to the innermost function of its stack that begins a stage: what `nft_do_chain` calls is the work of
a netfilter hook, whether NAPI or a system call has called it.
"""

from collections import Counter
from math import sqrt

from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.measurements.stacks import SEPARATOR, Stacks

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
