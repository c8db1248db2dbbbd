"""Simulated NFs of the kernel: known capacities, CPU use that tells of the load, NFs that instances share."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.sim.probes import SimSampler
from resources.libraries.python.drivers.sim.simulation import parse_simulation
from resources.libraries.python.drivers.sim.truth import capacity_pps, nfs_pps
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.sweep.analysis.seconds import work
from resources.libraries.python.studies.sweep.model.record import CpuUse
from tests.unit.drivers.sim.sim_bed import SMALL, TOPOLOGY, Bed

ROUTER, FIREWALL, NAT = NfKind("linux_router"), NfKind("linux_firewall"), NfKind("linux_nat")


def cell(*kinds: NfKind, size: str = "1c", chains: int = 1, shared: tuple[int, ...] = ()) -> Cell:
    return Cell(
        service_type=ServiceType.CSP,
        nf_chains=chains,
        nf_nodes=len(kinds),
        nf_kinds=kinds,
        nf_sizes=(NfSize(size),),
        shared_nodes=shared,
    )


def bed(asked: Cell, **parameters: object) -> Bed:
    plan = make_plan(TOPOLOGY, asked, TOPOLOGY.dut.layout)
    return Bed(plan, TestType.NDRPDR, model="sharp", **parameters)


def used(of: Bed, load_pps: float) -> CpuUse:
    sampler = SimSampler(of.system)
    before = sampler.read()
    of.run(load_pps)
    return work(of.plan, before, sampler.read(), 1.0).cpu


def test_the_more_is_done_to_a_packet_the_fewer_are_forwarded() -> None:
    router, nat, firewall = (capacity_pps(cell(kind), SMALL) for kind in (ROUTER, NAT, FIREWALL))
    assert firewall < nat < router < capacity_pps(cell(NfKind("sim")), SMALL)
    assert capacity_pps(cell(ROUTER, FIREWALL), SMALL) == firewall
    chain = cell(ROUTER, FIREWALL, NAT)
    assert min((1, 2, 3), key=lambda node: nfs_pps(chain, node)) == 2


@pytest.mark.parametrize(("size", "threads"), [("0.5c", 1), ("1c", 2), ("2c", 4)])
def test_every_data_thread_runs_in_proportion_to_the_load_and_never_more_than_all_the_time(
    size: str, threads: int
) -> None:
    asked = cell(FIREWALL, size=size)
    capacity = capacity_pps(asked, SMALL)
    running = bed(asked)
    for share in (0.1, 0.5, 0.9, 1.0, 1.5, 3.0):
        shares = used(running, share * capacity)["nf-1-1"]
        assert len(shares) == threads
        assert shares == pytest.approx([min(1.0, share)] * threads, abs=1e-6)


def test_in_a_chain_each_nf_is_as_busy_as_its_own_capacity_says() -> None:
    load = 0.8 * capacity_pps(cell(ROUTER, FIREWALL), SMALL)
    shares = used(bed(cell(ROUTER, FIREWALL)), load)
    assert shares["nf-1-2"] == pytest.approx([0.8, 0.8])
    assert shares["nf-1-1"] == pytest.approx([load / capacity_pps(cell(ROUTER), SMALL)] * 2)


def test_beyond_its_capacity_packets_are_lost_and_before_they_wait_longer_and_longer() -> None:
    running = bed(cell(FIREWALL))
    capacity = running.system.capacity_pps(SMALL)
    done = [running.run(share * capacity, probe_pps=100.0) for share in (0.2, 0.5, 0.8, 0.95, 1.25)]
    assert [round(trial.loss_ratio or 0.0, 3) for trial in done] == [0, 0, 0, 0, 0.2]
    means = [trial.latency[0].mean_ns or 0.0 for trial in done]
    assert means == sorted(means)
    assert means[3] > 2 * means[0]


def test_a_shared_nf_carries_all_instances_alone() -> None:
    apart, together = cell(ROUTER, ROUTER, ROUTER, chains=2), cell(ROUTER, ROUTER, ROUTER, chains=2, shared=(1, 3))
    assert nfs_pps(together, 1) == nfs_pps(apart, 1) / 2 == nfs_pps(together, 2) / 2
    assert capacity_pps(together, SMALL) == capacity_pps(cell(ROUTER), SMALL)
    running = bed(together)
    assert running.system.limit_owners(SMALL) == frozenset({"nf-0-1"})
    shares = used(running, 0.6 * capacity_pps(together, SMALL))
    assert {name: round(row[0], 6) for name, row in shares.items()} == {
        "nf-0-1": 0.6, "nf-1-2": 0.3, "nf-2-2": 0.3, "nf-0-3": 0.6,
    }  # fmt: skip


def test_counters_of_a_shared_nf_distinguish_its_instances() -> None:
    running = bed(cell(ROUTER, FIREWALL, ROUTER, chains=2, shared=(1, 3)))
    done = running.run(1000.0)
    counts = running.counters()
    sent = {(flow.instance, flow.direction): flow.sent for flow in done.flows}
    for instance in (1, 2):
        for node in (1, 2, 3):
            assert counts[f"csn{instance}x{node}i1"].rx_packets == sent[instance, Direction.FORWARD]
            assert counts[f"csn{instance}x{node}i2"].rx_packets == sent[instance, Direction.REVERSE]


def test_an_nf_that_does_not_scale_is_as_fast_with_more_cores_and_leaves_them_idle() -> None:
    limit = {"linux_nat": 1.0}
    rates = [bed(cell(NAT, size=size), scales_to=limit).system.capacity_pps(SMALL) for size in ("0.5c", "1c", "2c")]
    assert rates[0] < rates[1] == rates[2]
    large = bed(cell(NAT, size="2c"), scales_to=limit)
    assert used(large, 2 * rates[2])["nf-1-1"] == (1.0, 1.0, 0.0, 0.0)
    router = bed(cell(ROUTER, size="2c"), scales_to=limit)
    assert router.system.capacity_pps(SMALL) == capacity_pps(cell(ROUTER, size="2c"), SMALL)
    with pytest.raises(ConfigError, match=r"simulation\.scales_to\.linux_nat: .* is not above 0"):
        parse_simulation({"scales_to": {"linux_nat": 0}})


def test_the_shipped_topology_simulates_them_and_has_its_own_kind_by_default() -> None:
    topology = load_topology(Path(__file__).parents[4] / "topologies" / "sim.yaml")
    assert {NfKind("sim"), ROUTER, FIREWALL, NAT} <= {*topology.dut.offered}
    default = Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=1)
    assert bed(default).system.capacity_pps(SMALL) == capacity_pps(default, SMALL)
