"""Simulated NFs with a pool of buffers: memory ends at the pool, and packets are refused as Erlang's formula has it."""

from random import Random
from statistics import fmean

import pytest

from resources.libraries.python.drivers.sim.impairment import BufferPool
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.plan import make_plan
from tests.unit.drivers.sim.sim_bed import SMALL, TOPOLOGY, Bed

FIREWALL = NfKind("linux_firewall")
POOL = BufferPool(buffers=500, buffer_bytes=2048, hold_s=0.01)
MIB = 2**20


def erlang_b(servers: int, load: float) -> float:
    """The usual recursion."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0, 1.5, 4.0])
def test_packets_are_refused_as_erlangs_formula_says(share: float) -> None:
    assert POOL.refused_ratio(share * POOL.capacity_pps) == pytest.approx(erlang_b(500, share * 500), rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, 1.5])
def test_buffers_in_use_have_the_mean_of_what_is_not_refused_and_never_more_than_there_are(share: float) -> None:
    load_pps, rng = share * POOL.capacity_pps, Random(1)
    drawn = [POOL.draw_bytes(load_pps, rng) / POOL.buffer_bytes for _ in range(300)]
    taken = share * 500 * (1 - POOL.refused_ratio(load_pps))
    assert fmean(drawn) == pytest.approx(taken, rel=0.01, abs=0.1)
    assert max(drawn) <= 500


def bed(**parameters: object) -> Bed:
    cell = Cell(service_type=ServiceType.CSP, nf_chains=2, nf_nodes=2, nf_kinds=(NfKind("linux_router"), FIREWALL))
    return Bed(make_plan(TOPOLOGY, cell, TOPOLOGY.dut.layout), model="sharp", **parameters)


def test_an_nf_with_a_pool_loses_what_finds_no_buffer_and_its_memory_ends_there() -> None:
    made = bed(buffer_pools={FIREWALL: POOL})
    empty = made.system.sample().memory_bytes
    low, high = 2 * 0.5 * POOL.capacity_pps, 2 * 2 * POOL.capacity_pps  # of two services
    assert made.run(low).loss_ratio == 0
    some = made.system.sample().memory_bytes
    result = made.run(high)
    full = made.system.sample().memory_bytes
    assert high < made.system.capacity_pps(SMALL), "the CPUs can do more"
    assert result.loss_ratio == pytest.approx(POOL.refused_ratio(high / 2), rel=1e-3)
    for name in ("nf-1-2", "nf-2-2"):
        assert empty[name] < some[name] < full[name] <= empty[name] + POOL.buffers * POOL.buffer_bytes
    assert {name: used for name, used in full.items() if name.endswith("-1")} == {
        name: used for name, used in empty.items() if name.endswith("-1")
    }, "routers have none"


def test_packets_that_are_refused_cost_no_cpu_time() -> None:
    without, limited = bed(), bed(buffer_pools={FIREWALL: POOL})
    for made in (without, limited):
        made.run(2 * 2 * POOL.capacity_pps)
    ratio = limited.system.used_s()["nf-1-2"] / without.system.used_s()["nf-1-2"]
    assert ratio == pytest.approx(0.5, rel=0.02)
