"""Capacity of simulated systems: the published table, models, neighbours and SMT."""

import csv
from itertools import combinations_with_replacement, product
from math import prod
from random import Random
from statistics import fmean
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.driver_registry import functions
from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.models import Model, make_model
from resources.libraries.python.drivers.sim.probes import SimSampler
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.drivers.sim.truth import capacity_pps, is_guaranteed, left_by, nfs_pps
from resources.libraries.python.model.driver import SimulatedNf
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.cell import Cell, Frame, FramePart, ServiceType, TestType
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.sweep.analysis.seconds import work
from resources.libraries.python.studies.sweep.model import CpuUse
from tests.builders import SIM, cell_of
from tests.unit.drivers.sim.sim_bed import SMALL, Bed, sharp_bed
from tests.unit.nf_sizes import nf_sizes

cells = st.builds(
    Cell, service_type=st.sampled_from(ServiceType), nf_chains=st.integers(1, 12), nf_nodes=st.integers(1, 12),
    nf_sizes=st.tuples(nf_sizes), vs_dtc=st.sampled_from([1, 2, 4]),
)  # fmt: skip


def test_published_figures_are_met() -> None:
    """As the module's documentation says: 126 cells, 2.4 % on average, 11.6 % at worst."""
    published = PROJECT / "csit_utils/dataset/published/csit1904_density_ndr_64b.csv"
    found = []
    for row in csv.DictReader(line for line in published.read_text().splitlines() if not line.startswith("#")):
        size = {"0.5": NfSize.HALF, "1.0": NfSize.ONE}[row["nf_cores"]]
        asked = cell_of(row["topology"], int(row["instances"]), int(row["nfs_per_instance"]), nf_sizes=(size,))
        found.append(abs(capacity_pps(asked, SMALL) / 1e6 / float(row["ndr_mpps"]) - 1))
    assert len(found) == 126
    assert fmean(found) == pytest.approx(0.024, abs=0.0005)
    assert max(found) == pytest.approx(0.116, abs=0.0005)


@given(cells)
def test_more_cores_never_cost(cell: Cell) -> None:
    rates = [capacity_pps(cell.model_copy(update={"vs_dtc": cores}), SMALL) for cores in (1, 2, 4)]
    assert rates[0] <= rates[1] <= rates[2] <= 4 * rates[0]
    sizes = (NfSize.HALF, *map(NfSize.of, range(1, 7)))
    rates = [capacity_pps(cell.model_copy(update={"nf_sizes": (size,)}), SMALL) for size in sizes]
    assert rates == sorted(rates)
    assert rates[6] <= 6 * rates[1]


@given(cells, st.integers(64, 9000))
def test_larger_frames_never_come_faster(cell: Cell, frame_bytes: int) -> None:
    larger = Frame(name="x", parts=(FramePart(frame_bytes=frame_bytes),))
    assert 0 < capacity_pps(cell, larger) <= capacity_pps(cell, SMALL)


def owners_pps(smt: bool, **parameters: float) -> dict[str, float]:
    """What each owner could do, and what the cell does."""
    plan = make_plan(SIM, cell_of("CSP", 1, 2), {}, smt=smt)
    system = SimulatedSystem(plan, Simulation.model_validate(parameters), VirtualClock(), TestType.MRR)
    return system._truth.rates(SMALL, 1e9) | {"cell": system.capacity_pps(SMALL)}


@pytest.mark.parametrize("speed", [0.4, 0.5, 0.65, 1.0])
def test_an_owner_does_the_work_of_the_threads_on_its_cores(speed: float) -> None:
    on, off = (owners_pps(smt, sibling_speed=speed) for smt in (True, False))
    for owner in on.keys() - {"generator"}:
        assert off[owner] / on[owner] == pytest.approx(1 / (2 * speed)), owner
    assert off["generator"] == on["generator"], "it has a machine of its own"
    assert owners_pps(smt=True, sibling_speed=speed) == owners_pps(smt=True), "the calibrated ones, whatever SMT gains"


CAPACITY = 1e6


def model(name: ModelName, **parameters: object) -> Model:
    return make_model(Simulation(model=name, **parameters), CAPACITY)


def loss_ratios(system: Model, load_pps: float, trials: int = 400) -> list[float]:
    rng = Random(3)
    counts = [system.forward(load_pps, 1.0, rng) for _ in range(trials)]
    return [1 - received / sent for sent, received in counts]


@pytest.mark.parametrize("name", ModelName)
@pytest.mark.parametrize("loss_ratio", [0.0, 0.005])
def test_the_truth_parts_good_loads_from_bad(name: ModelName, loss_ratio: float) -> None:
    system = model(name)
    below, above = (
        fmean(ratio > loss_ratio for ratio in loss_ratios(system, share * system.truth_pps(loss_ratio)))
        for share in (0.995, 1.005)
    )
    assert below < 0.5 < above


def test_the_knee_keeps_ndr_far_below_pdr() -> None:
    system = model(ModelName.KNEE)
    assert system.truth_pps(0.0) == pytest.approx(0.8 * CAPACITY)
    assert system.truth_pps(0.005) == pytest.approx(0.9 * CAPACITY)
    assert system.truth_pps(0.02) > CAPACITY
    assert max(loss_ratios(system, CAPACITY)) == pytest.approx(0.01)


def test_two_bands_are_two_and_overload_makes_a_sagging_system_slower() -> None:
    ratios = loss_ratios(model(ModelName.TWO_BAND), CAPACITY)
    assert {round(ratio, 6) for ratio in ratios} == {0.0, 0.1}
    assert fmean(ratio > 0 for ratio in ratios) == pytest.approx(0.25, abs=0.06)
    sags = [model(ModelName.SAG).forward(load * CAPACITY, 1.0, Random(1))[1] for load in (1, 2, 100)]
    assert sags == [1_000_000, 900_000, 200_000]


TABLE_3 = {"I": 0.8764, "II": 0.4969, "III": 0.6407, "IV": 0.6478, "V": 0.6114}
OF_TYPES = ("linux_gateway", "pktstat", "suricata", "nginx_balancer", "nginx_proxy")
TYPES = dict(zip(TABLE_3, map(NfKind, OF_TYPES), strict=True))
PAIRS = {("I", "III"): 0.8541, ("II", "III"): 0.6153, ("III", "II"): 0.6449}
WITHIN = 0.012  # of the paper's figures: 1.2 points
LINE_PPS = 1e6
KINDS = st.sampled_from([NfKind(name) for name, each in functions().items() if each.simulated != SimulatedNf()])


def nf(kind: NfKind, limit_pps: float | None = None) -> NfPlan:
    return cast(NfPlan, SimpleNamespace(kind=kind, limits=Limits(network_pps=limit_pps)))


def left(target: str, *others: str) -> float:
    return left_by([nf(TYPES[other]) for other in others], nf(TYPES[target]), Simulation(), LINE_PPS)


def test_rows_and_pairs_are_those_of_the_paper() -> None:
    for target, mean in TABLE_3.items():
        assert fmean(left(target, other) for other in TYPES) == pytest.approx(mean, abs=WITHIN)
    for (target, other), mean in PAIRS.items():
        assert left(target, other) == pytest.approx(mean, abs=WITHIN)
    columns = {other: fmean(left(target, other) for target in TYPES) for other in TYPES}
    assert sorted(columns, key=columns.__getitem__)[:2] == ["V", "IV"], "the most aggressive ones"
    assert all(left(target, other) < 1 for target in TYPES for other in TYPES), "interference is ubiquitous"


@pytest.mark.parametrize(("size", "apart"), [(2, 0.06), (3, 0.10)])
def test_several_neighbours_are_not_the_product_of_each(size: int, apart: float) -> None:
    """A model of products is then a prediction that can be wrong."""
    rows = [(target, others) for target in TYPES for others in combinations_with_replacement(TYPES, size)]
    assert fmean(abs(left(one, *others) - prod(left(one, other) for other in others)) for one, others in rows) > apart


@given(KINDS, st.lists(KINDS, min_size=1, max_size=6), st.floats(0, 0.9))
def test_one_more_neighbour_takes_something_and_a_guarantee_gives_a_part_of_it_back(
    target: NfKind, others: list[NfKind], part: float
) -> None:
    """Never more than the sensitivity is taken, and the part is the same in any combination."""
    before, after = (
        left_by([nf(kind) for kind in row], nf(target), Simulation(), LINE_PPS) for row in (others[1:], others)
    )
    assert 1 - target.driver.simulated.sensitivity < after < before <= 1
    share_pps, simulation = LINE_PPS / (1 + len(others)), Simulation(network_part=part)
    held = left_by([nf(kind, share_pps) for kind in others], nf(target, share_pps), simulation, LINE_PPS)
    assert (held - after) / (1 - after) == pytest.approx(part)


@pytest.mark.parametrize(
    ("limits", "guaranteed"),
    [
        ((5e5, 5e5), True),
        ((3e5, 3e5, 4e5), True),
        ((5e5, 5e5, 5e5), False),  # shares of two, given to three
        ((5e5, None), False),
        ((None, None), False),
    ],
)
def test_limits_are_a_guarantee_where_all_have_one_and_the_line_carries_them(
    limits: tuple[float | None, ...], guaranteed: bool
) -> None:
    assert is_guaranteed([nf(NfKind("pktstat"), each) for each in limits], LINE_PPS) is guaranteed


ROUTER, FIREWALL, NAT = NfKind("linux_router"), NfKind("linux_firewall"), NfKind("linux_nat")


def cell(*kinds: NfKind, size: str = "1c", chains: int = 1, shared: tuple[int, ...] = ()) -> Cell:
    return cell_of("CSP", chains, len(kinds), nf_kinds=kinds, nf_sizes=(NfSize(size),), shared_nodes=shared)


def used(of: Bed, load_pps: float) -> CpuUse:
    sampler = SimSampler(of.system)
    before = sampler.read()
    of.run(load_pps)
    return work(of.plan, before, sampler.read(), 1.0).cpu


def test_the_more_is_done_to_a_packet_the_fewer_are_forwarded() -> None:
    router, nat, firewall = (capacity_pps(cell(kind), SMALL) for kind in (ROUTER, NAT, FIREWALL))
    assert firewall < nat < router < capacity_pps(cell(NfKind("sim")), SMALL)
    assert capacity_pps(cell(ROUTER, FIREWALL), SMALL) == firewall
    assert min((1, 2, 3), key=lambda node: nfs_pps(cell(ROUTER, FIREWALL, NAT), node)) == 2
    half = cell_of("CSP", 1, 2, nf_sizes=(NfSize.HALF,))
    mixed = half.model_copy(update={"nf_sizes": (NfSize.TWO, NfSize.HALF)})
    assert capacity_pps(mixed, SMALL) == capacity_pps(half, SMALL), "the slowest NF of a service counts"


@pytest.mark.parametrize(("size", "threads"), [("0.5c", 1), ("1c", 2), ("2c", 4)])
def test_every_data_thread_runs_in_proportion_to_the_load_and_at_most_all_the_time(size: str, threads: int) -> None:
    running = sharp_bed(cell(FIREWALL, size=size))
    for share in (0.1, 0.5, 0.9, 1.0, 1.5, 3.0):
        shares = used(running, share * running.system.capacity_pps(SMALL))["nf-1-1"]
        assert shares == pytest.approx([min(1.0, share)] * threads, abs=1e-6)


def test_a_shared_nf_carries_all_instances_alone() -> None:
    apart, together = cell(ROUTER, ROUTER, ROUTER, chains=2), cell(ROUTER, ROUTER, ROUTER, chains=2, shared=(1, 3))
    assert nfs_pps(together, 1) == nfs_pps(apart, 1) / 2 == nfs_pps(together, 2) / 2
    assert capacity_pps(together, SMALL) == capacity_pps(cell(ROUTER), SMALL)
    running = sharp_bed(together)
    assert running.system.limit_owners(SMALL) == frozenset({"nf-0-1"})
    shares = used(running, 0.6 * capacity_pps(together, SMALL))
    rounded = {name: round(row[0], 6) for name, row in shares.items()}
    assert rounded == {"nf-0-1": 0.6, "nf-1-2": 0.3, "nf-2-2": 0.3, "nf-0-3": 0.6}
    running = sharp_bed(together)
    sent = {(flow.instance, flow.direction): flow.sent for flow in running.run(1000.0).flows}
    for instance, node in product((1, 2), (1, 2, 3)):  # counters distinguish the instances
        ports = [running.counters()[f"csn{instance}x{node}i{number}"].rx_packets for number in (1, 2)]
        assert ports == [sent[instance, direction] for direction in Direction]
