"""The break-point of a service that runs out of memory before its CPUs are full."""

from collections.abc import Sequence

import numpy as np
import pytest

from csit_utils.studies.sweep.figures import sweep_figures
from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.drivers.sim.impairment import BufferPool
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.studies.sweep.analysis.points import Array, observe
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.analysis.sentences import break_point_in_words, headline
from resources.libraries.python.studies.sweep.analysis.tables import all_samples, read_statistics, statistics
from resources.libraries.python.studies.sweep.model.profile import BreakPoint, Profile
from resources.libraries.python.studies.sweep.model.record import Rates, SweepPoint
from resources.libraries.python.studies.sweep.request import SweepRequest
from resources.libraries.python.studies.sweep.run import ServiceSweep
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import NOWHERE, SIM
from tests.unit.csit_utils.builders import B64
from tests.unit.csit_utils.characterization_records import record
from tests.unit.csit_utils.characterization_records import sweep_of as routers
from tests.unit.studies.sweep.synthetic_sweeps import growing_to, plain_router, sweep_of

RATES = np.linspace(0.2, 3.2, 16)
CAPACITY = 1.63
FIREWALL = NfKind("linux_firewall")


def service(
    memory_mib: Array, capacity: float = CAPACITY, cpu_full: float = 0.5, name: str = "v", vcpus: int = 1
) -> tuple[SweepPoint, ...]:
    """Points of a service that carries so much, with CPUs that are used in proportion up to there."""
    cpu = {name: (growing_to(cpu_full, capacity),) * vcpus}
    points = sweep_of(RATES, plain_router(capacity), cpu, 0.002)
    return tuple(
        point.model_copy(update={"memory_mib": {name: used}, "available_mib": 4096.0 - used})
        for point, used in zip(points, memory_mib.tolist(), strict=True)
    )


def up_to(rate: float, most: float = 64.0) -> Array:
    """Memory that grows with the load up to a rate."""
    return np.minimum(most, 16 + (most - 16) * RATES / rate)


def break_point(points: Sequence[SweepPoint]) -> BreakPoint:
    found, _ = find_break_point(observe(points)[0], {"v": len(points[0].cpu["v"])})
    assert found is not None
    return found


def test_memory_that_ends_where_the_service_saturates_names_the_break_point_also_when_read_from_a_file() -> None:
    points = service(up_to(CAPACITY))
    read = read_statistics(csv_text(statistics(points)), "x.csv")
    assert [each.memory_mib for each in read] == [each.memory_mib for each in points]
    assert [each.available_mib for each in read] == [each.available_mib for each in points]
    found = break_point(read)
    assert (found.indicator, found.vnf, found.cpus_used) == ("memory", "v", None)
    assert found.low <= CAPACITY * 1.001 and found.high >= CAPACITY * 0.999
    assert found.rate == pytest.approx(CAPACITY, rel=0.005)
    assert "64 MiB" in found.reason


def test_memory_is_not_the_reason_where_a_cpu_is_full() -> None:
    assert break_point(service(up_to(CAPACITY), cpu_full=1.0)).indicator == "CPU"
    two = service(up_to(CAPACITY), cpu_full=1.0, vcpus=2)
    one_of_two = [point.model_copy(update={"cpu": {"v": (point.cpu["v"][0], 0.1)}}) for point in two]
    assert break_point(one_of_two).indicator == "CPU", "its only busy data thread can do no more"


@pytest.mark.parametrize("cpu_full", [0.5, 1.0])
def test_memory_that_is_full_before_the_service_saturates_is_named_and_no_break_point(cpu_full: float) -> None:
    found, notes = find_break_point(observe(service(up_to(0.7), cpu_full=cpu_full))[0], {"v": 1})
    assert found.indicator == "CPU"
    assert found.rate == pytest.approx(CAPACITY, rel=0.01)
    said = [note for note in notes if "where the service does not saturate" in note]
    assert len(said) == (cpu_full < 1), "a full CPU is reason enough"


def test_memory_that_hardly_changes_is_no_sign() -> None:
    """One page more from the fourth load on."""
    found = break_point(service(np.where(RATES > 0.7, 16.004, 16.0)))
    assert found.indicator == "CPU"


def test_of_a_service_that_loses_nothing_memory_gives_no_break_point() -> None:
    points = service(up_to(CAPACITY), capacity=99.0)
    found, notes = find_break_point(observe(points)[0], {"v": 1})
    assert found is None
    assert any("the memory of v does not grow beyond 64 MiB" in note for note in notes)


def measured(seed: int) -> tuple[float, Profile, str, list[str], tuple[object, ...]]:
    """A simulated sweep of a firewall whose buffers end at half of what its CPU can do, in loads around that."""
    pool = BufferPool(buffers=1500, buffer_bytes=16_384, hold_s=0.005)
    simulation = {"seed": seed, "buffer_pools": {FIREWALL: pool.model_dump()}}
    topology = SIM.model_copy(update={"simulation": simulation})
    world = SimulatedTestbed(topology)
    cell = Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=1, nf_kinds=(FIREWALL,))
    first = pool.capacity_pps / 2 / 8.3
    rates = Rates(start_pps=first, stop_pps=13 * first, step_pps=first)
    asked = SweepRequest(
        name="firewall", cell=cell, frame=B64, flows=1, protocol=Protocol.IP, duration_s=2, rates=rates, width=None
    )
    test = ServiceSweep(topology, world, asked, NOWHERE)
    test.plan()
    try:
        found = test.run()
    finally:
        test.remove()
    profile = test.draft.profile
    swept = record("sweep", "Firewall", sweep=found, profile=profile)
    figures = [figure.identity for figure in sweep_figures("a", swept)]
    return pool.capacity_pps / 2 * 512 / 1e9, profile, headline(swept) or "", figures, all_samples(found.samples)[0]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_simulated_nf_that_runs_out_of_buffers_saturates_by_memory_at_the_known_load(seed: int) -> None:
    """Buffers in use follow Erlang's formula, which is no broken line."""
    truth, profile, words, figures, columns = measured(seed)
    point = profile.break_point
    assert (point.indicator, point.vnf) == ("memory", "nf-1-1")
    assert point.rate == pytest.approx(truth, rel=0.03)
    assert point.low <= 1.01 * truth and 0.99 * truth <= point.high <= 1.15 * point.low
    assert "95 % interval" in words and "by memory: the memory of nf-1-1 does not grow beyond" in words
    assert "by memory" in break_point_in_words(profile)
    assert "a-memory" in figures
    assert "nf-1-1_memory_mib" in columns


def test_a_service_whose_memory_is_unknown_has_no_plot_of_it() -> None:
    sweep = routers("firewall", (FIREWALL,))
    found = record("sweep", "Firewall", sweep=sweep, profile=None)
    assert "a-memory" not in [each.identity for each in sweep_figures("a", found)]
