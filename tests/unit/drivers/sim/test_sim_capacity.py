"""The simulated capacity against the published table, and its shape."""

import csv
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.drivers.sim.truth import capacity_pps
from resources.libraries.python.model.request.cell import Cell, Frame, FramePart, ServiceType, TestType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.planning.plan import make_plan
from tests.builders import SIM, cell_of
from tests.unit.nf_sizes import nf_sizes

PUBLISHED = PROJECT / "csit_utils/dataset/published/csit1904_density_ndr_64b.csv"
SIZES = {"0.5": NfSize.HALF, "1.0": NfSize.ONE}
FRAME = Frame(name="64B", parts=(FramePart(frame_bytes=64),))

cells = st.builds(
    Cell,
    service_type=st.sampled_from(ServiceType),
    nf_chains=st.integers(1, 12),
    nf_nodes=st.integers(1, 12),
    nf_sizes=st.tuples(nf_sizes),
    vs_dtc=st.sampled_from([1, 2, 4]),
)


def errors() -> list[float]:
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    found = []
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        cell = cell_of(
            row["topology"], int(row["instances"]), int(row["nfs_per_instance"]), nf_sizes=(SIZES[row["nf_cores"]],)
        )
        found.append(capacity_pps(cell, FRAME) / 1e6 / float(row["ndr_mpps"]) - 1)
    return found


def test_published_figures_are_met() -> None:
    """As the module's documentation says: 126 cells, 2.4 % on average, 11.6 % at worst."""
    found = [abs(error) for error in errors()]
    assert len(found) == 126
    assert sum(found) / len(found) == pytest.approx(0.024, abs=0.0005)
    assert max(found) == pytest.approx(0.116, abs=0.0005)


def chain(service_type: ServiceType, rows: int, columns: int, **sizes: object) -> float:
    return capacity_pps(Cell(service_type=service_type, nf_chains=rows, nf_nodes=columns, **sizes), FRAME)


def test_a_container_chain_falls_with_its_crossings() -> None:
    for columns in (2, 4, 6, 8, 10):
        ratio = chain(ServiceType.CSC, 1, columns) / chain(ServiceType.CSC, 1, 1)
        assert ratio == pytest.approx(2 / (columns + 1), rel=0.16)


def test_a_pipeline_is_flat_and_a_vm_chain_lowest() -> None:
    for columns in (2, 4, 8):
        assert chain(ServiceType.CSP, 2, columns) == chain(ServiceType.CSP, 2, 1)
        assert chain(ServiceType.VSC, 2, columns) < chain(ServiceType.CSC, 2, columns)


@pytest.mark.parametrize("service_type", ServiceType)
def test_more_instances_cost_a_little(service_type: ServiceType) -> None:
    rates = [chain(service_type, rows, 2) for rows in (2, 4, 6, 8, 10)]
    assert all(more < less for less, more in pairwise(rates))
    assert rates[-1] > 0.6 * rates[0]


@given(cells)
def test_more_cores_never_cost(cell: Cell) -> None:
    rates = [capacity_pps(cell.model_copy(update={"vs_dtc": cores}), FRAME) for cores in (1, 2, 4)]
    assert rates[0] <= rates[1] <= rates[2] <= 4 * rates[0]
    rates = [
        capacity_pps(cell.model_copy(update={"nf_sizes": (size,)}), FRAME)
        for size in (NfSize.HALF, *map(NfSize.of, range(1, 7)))
    ]
    assert rates == sorted(rates)
    assert rates[6] <= 6 * rates[1]


def test_vswitch_cores_scale_a_bit_less_than_linearly() -> None:
    one, two, four = (chain(ServiceType.CSC, 2, 2, vs_dtc=cores) for cores in (1, 2, 4))
    assert 1.7 < two / one < 2
    assert 1.7 < four / two < 2


@given(cells, st.integers(64, 9000))
def test_larger_frames_never_come_faster(cell: Cell, frame_bytes: int) -> None:
    larger = Frame(name="x", parts=(FramePart(frame_bytes=frame_bytes),))
    assert 0 < capacity_pps(cell, larger) <= capacity_pps(cell, FRAME)


def test_the_slowest_nf_of_a_service_counts() -> None:
    mixed = chain(ServiceType.CSP, 1, 2, nf_sizes=(NfSize.TWO, NfSize.HALF))
    assert mixed == chain(ServiceType.CSP, 1, 2, nf_sizes=(NfSize.HALF,))


def owners_pps(smt: bool, **parameters: float) -> dict[str, float]:
    """What each owner could do, and what the cell does."""
    plan = make_plan(SIM, Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=2), {}, smt=smt)
    system = SimulatedSystem(plan, Simulation.model_validate(parameters), VirtualClock(), TestType.MRR)
    rates = system._truth.rates(FRAME, 1e9)
    return rates | {"cell": system.capacity_pps(FRAME)}


def of_core(threads: int, sibling_speed: float) -> float:
    """Work of a core by its busy threads, by the speed of each."""
    return sum(1.0 if threads == 1 else sibling_speed for _ in range(threads))


@pytest.mark.parametrize("speed", [0.4, 0.5, 0.65, 1.0])
def test_an_owner_does_the_work_of_the_threads_on_its_cores(speed: float) -> None:
    on, off = (owners_pps(smt, sibling_speed=speed) for smt in (True, False))
    for owner in on.keys() - {"generator"}:
        assert off[owner] / on[owner] == pytest.approx(of_core(1, speed) / of_core(2, speed)), owner
    assert off["generator"] == on["generator"], "it has a machine of its own"


def test_capacities_with_smt_are_the_calibrated_ones_whatever_it_gains() -> None:
    assert owners_pps(smt=True, sibling_speed=0.9) == owners_pps(smt=True)
    assert "sibling_speed" not in Simulation().model_dump_json()
