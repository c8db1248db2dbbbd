"""CPU time per packet of the receiving thread, split by the samples of its functions."""

from collections import Counter

import pytest

from csit_utils.bench.traffic import receive_cost
from csit_utils.bench.traffic.receive_cost import REST, part_of
from resources.libraries.python.errors import Unsupported


@pytest.mark.parametrize(
    ("function", "part"),
    [
        ("page_pool_alloc_pages", "packet memory"),
        ("kmem_cache_free", "packet memory"),
        ("bpf_prog_6deef7357e7b4530_receive", "XDP program"),
        ("__netif_receive_skb_core.constprop.0", "protocols"),
        ("ip_rcv_core", "protocols"),
        ("veth_xdp_rcv.constprop.0", "veth and NAPI"),
        ("napi_threaded_poll_loop", "veth and NAPI"),
        ("finish_task_switch.isra.0", REST),
    ],
)
def test_functions_belong_to_parts_of_the_kernel(function: str, part: str) -> None:
    assert part_of(function) == part


def test_parts_add_up_to_the_time_of_a_packet() -> None:
    costs = receive_cost._Costs()
    costs.add(400.0, Counter(veth_poll=30, ip_rcv=10))
    costs.add(300.0, Counter(veth_poll=40))
    costs.add(380.0, Counter(kmem_cache_free=20))
    assert costs.packet_ns == 380.0
    assert costs.parts() == {"veth and NAPI": 266.0, "packet memory": 76.0, "protocols": 38.0}
    assert costs.functions(1) == [("veth_poll", 266.0)]


def test_a_machine_without_perf_is_reported_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive_cost, "why_unsampled", lambda: "perf is not installed")
    with pytest.raises(Unsupported, match=r"^perf is not installed$"):
        receive_cost.measure()
