"""What limited NFs may receive is limited where it is sent, and nothing else is."""

import re

import pytest

from resources.libraries.python.drivers.functions.nftables import program
from resources.libraries.python.drivers.host.links.rate_limits import limit, network_limits
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of
from tests.unit.drivers.sim.sim_bed import TOPOLOGY


def plan(*rates_pps: float | None) -> Plan:
    cell = cell_of(
        "CSC",
        len(rates_pps),
        1,
        instance_kinds=(NfKind("linux_router"),) * len(rates_pps),
        limits=tuple(Limits(network_pps=rate) for rate in rates_pps),
    )
    return make_plan(TOPOLOGY, cell, TOPOLOGY.dut.layout)


def buckets(asked: Plan) -> dict[str, dict[str, tuple[int, int]]]:
    """Rate and size of each bucket by owner and port."""
    rule = (
        r'chain (\S+) \{ type filter hook egress device "\1" .* limit rate over (\d+)/second burst (\d+) packets drop'
    )
    found = network_limits(asked.links, asked.functions)
    return {
        owner: {name: (int(rate), int(burst)) for name, rate, burst in re.findall(rule, text)}
        for owner, text in found.items()
    }


def test_both_ports_that_send_to_a_limited_nf_have_a_bucket_of_ten_milliseconds() -> None:
    asked = plan(None, 50_000.4)
    found = buckets(asked)
    peers = {(link.a if link.b.owner == "nf-2-1" else link.b) for link in asked.links if "nf-2-1" in
             (link.a.owner, link.b.owner)}  # fmt: skip
    assert len(peers) == 2
    assert found == {"vswitch": {port.interface: (50_000, 500) for port in peers}}


def test_a_slow_port_passes_a_handful_at_once() -> None:
    assert set(buckets(plan(0.3, 20.0))["vswitch"].values()) == {(1, 16), (20, 16)}


def test_without_limits_nothing_is_asked_of_the_kernel() -> None:
    assert network_limits(plan(None, None).links, plan(None, None).functions) == {}


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Unsupported("nft missing for NFs of kind linux_nat"), "nft missing for limits of the network; install it"),
        (CommandFailed(("nft",), 1, "Not supported"), "this kernel cannot limit what a port sends"),
    ],
)
def test_missing_prerequisites_of_a_limit_are_reported(
    failure: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> None:
        raise failure

    monkeypatch.setattr(program, "load", refuse)
    with pytest.raises(Unsupported, match=f"^{said}"):
        limit("table netdev x {}")
