"""Loads on a deployed service: one trial for each second, or one long trial of a generator that keeps a log."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from resources.libraries.python.errors import CsitError, NoTraffic
from resources.libraries.python.model.measurements.trial import HighestLoads, Interval, Trial, TrialResult
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.sweep.load_steps import LoadStep
from resources.libraries.python.studies.sweep.model.record import Bursts, Rates, SweepSpec
from resources.libraries.python.studies.sweep.sampling import Sampling
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM, Altered, cell_of, finished

B64 = frame("64B")
SPEC = SweepSpec(rates=Rates(start_pps=1000, stop_pps=1000, step_pps=1), duration_s=3, flows=2, frame=B64)


@pytest.fixture
def cell() -> Iterator[CellUnderTest]:
    """A simulated router, deployed."""
    router = cell_of("CSP", nf_kinds=(NfKind("linux_router"),))
    asked = MeasurementRequest(test_type=TestType.MRR, cell=router, frame=B64, profile=QUICK)
    made = CellUnderTest(SIM, SimulatedTestbed(SIM), asked)
    made.deploy(made.plan(sources=2))
    yield made
    assert made.remove() is None


def logging(cell: CellUnderTest, *, keeps: bool = True, arriving: float = 0.5) -> list[Trial]:
    """Have a generator that sends two thirds of what it is asked for and keeps a log; what it is asked for."""
    asked: list[Trial] = []

    def run(trial: Trial) -> TrialResult:
        asked.append(trial)
        sent = trial.load_pps / 2 * 2 / 3
        rows = [Interval(duration_s=1, sent=sent, received=arriving * sent, delay_ns=1e6)] * int(trial.duration_s)
        total = round(sent * trial.duration_s)
        counts = [(total, round(arriving * total))] * 2
        return finished(trial, *counts, intervals=tuple(rows) if keeps else (), interface_sent=2 * total)

    loads = HighestLoads(offered_pps=400_000.0, search_pps=100_000.0)
    generator = Altered(cell.deployment.parts.generator, run=run, highest_loads=lambda _: loads)
    cell.deployment.parts = replace(cell.deployment.parts, generator=generator)
    return asked


def test_a_load_is_a_trial_for_each_second_both_ways_and_of_all_flows(cell: CellUnderTest) -> None:
    found = Sampling(cell, B64, Protocol.IP, by_log=False).measure(SPEC, LoadStep(1000.0, 4, 3))
    assert [sample.second for sample in found.samples] == [4, 5, 6]
    assert all(sample.input_pps == sample.output_pps == 2000.0 for sample in found.samples)
    assert all(sample.rate_pps == 1000.0 and sample.delay_s for sample in found.samples)
    assert all(0 < sum(sample.cpu["nf-1-1"]) < 0.1 for sample in found.samples)


def test_between_bursts_only_probes_are_sent(cell: CellUnderTest) -> None:
    (sample,) = Sampling(cell, B64, Protocol.IP, by_log=False).measure(SPEC, LoadStep(0.0, 2, 1)).samples
    assert (sample.input_pps, sample.loss_ratio) == (0.0, None)
    assert sample.delay_s is not None


def test_a_generator_with_a_log_sends_a_load_in_one_trial_of_the_protocol(cell: CellUnderTest) -> None:
    asked = logging(cell)
    found = Sampling(cell, B64, Protocol.UDP, by_log=True).measure(SPEC, LoadStep(1500.0, 0, 3))
    (trial,) = asked
    assert (trial.load_pps, trial.duration_s, trial.protocol, trial.on_off_s) == (6000.0, 3.0, Protocol.UDP, None)
    assert [(sample.input_pps, sample.loss_ratio) for sample in found.samples] == [(2000.0, 0.5)] * 3
    assert found.sender_pps == pytest.approx(2000.0)


def test_its_bursts_are_one_trial_too(cell: CellUnderTest) -> None:
    asked = logging(cell)
    spec = SPEC.model_copy(update={"rates": None, "bursts": Bursts(rate_pps=1500, on_s=2, off_s=1)})
    found = Sampling(cell, B64, Protocol.UDP, by_log=True).measure(spec, LoadStep(1500.0, 0, 3))
    assert asked[0].on_off_s == (2.0, 1.0)
    assert [sample.rate_pps for sample in found.samples] == [1500.0, 1500.0, 0.0]


def test_a_silent_generator_is_reported(cell: CellUnderTest) -> None:
    logging(cell, keeps=False)
    with pytest.raises(CsitError, match=r"the generator reported no second of 3 s at 1\.50 kpps"):
        Sampling(cell, B64, Protocol.UDP, by_log=True).measure(SPEC, LoadStep(1500.0, 0, 3))


def test_the_capacity_is_of_each_flow_one_way_and_a_service_that_forwards_nothing_has_none(cell: CellUnderTest) -> None:
    sampling = Sampling(cell, B64, Protocol.IP, by_log=False)
    logging(cell, arriving=1.0)
    assert sampling.capacity_pps(flows=2) == pytest.approx(100_000 * 2 / 3 / 4, rel=1e-3)
    logging(cell, arriving=0.0)
    with pytest.raises(NoTraffic, match=r"no load from 1\.00 kpps was received: choose rates, or check the service"):
        sampling.capacity_pps(flows=1)
