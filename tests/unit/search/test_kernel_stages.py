"""Stages of the kernel from sampled stacks."""

import pytest

from resources.libraries.python.model.measurements.stacks import NodeStacks, Stacks
from resources.libraries.python.search.findings.usage import stage_costs

NAPI = "nf-1-1;ret_from_fork;napi_threaded_poll;__napi_poll;veth_poll"


def sampled(stacks: dict[str, int], received: int = 1000) -> Stacks:
    total = sum(stacks.values())
    node = NodeStacks(
        node="DUT1", event="sim", hz=100, cpus=(2,), sampled_s=5, samples=total, idle=0, elsewhere=0, stacks=stacks
    )
    return Stacks(label="PDR", load_pps=1e5, received=received, trial_s=5, nodes=(node,))


def test_a_sample_belongs_to_the_innermost_stage() -> None:
    found = stage_costs(
        sampled(
            {
                f"{NAPI}": 4,
                f"{NAPI};ip_rcv;nf_hook_slow;nft_do_chain_ipv4;nft_do_chain;nft_payload_eval": 9,
                f"{NAPI};ip_rcv;nf_hook_slow;nft_do_chain;nf_conntrack_in": 1,
                "softirq;net_rx_action;process_backlog;br_handle_frame;br_forward": 2,
                "nf-1-1;main;rte_eth_rx_burst": 50,
            }
        )
    )
    costs = {(row.part, row.node): row.cost for row in found}
    # 100 samples a second: one stands for 10 ms, 10 µs for each of 1000 packets.
    assert costs == pytest.approx(
        {
            ("nf-1-1", "NAPI poll"): 40_000.0,
            ("nf-1-1", "connection tracking"): 10_000.0,
            ("nf-1-1", "netfilter hook"): 90_000.0,
            ("softirq", "bridge"): 20_000.0,
        }
    )
    assert {row.unit for row in found} == {"ns"}
    (hook,) = (row for row in found if row.node == "netfilter hook")
    assert hook.error == pytest.approx(1.96 * 90_000 / 3), "of 9 samples"
    assert stage_costs(sampled({NAPI: 4}, received=0)) == ()
