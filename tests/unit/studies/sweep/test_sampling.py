"""Loads on a deployed service: one trial for each second, or one long trial of a generator that keeps a log."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from resources.libraries.python.errors import CsitError, NoTraffic
from resources.libraries.python.model.measurements.trial import (
    Direction,
    FlowCount,
    HighestLoads,
    Interval,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
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
from tests.builders import SIM

B64 = frame("64B")
SPEC = SweepSpec(rates=Rates(start_pps=1000, stop_pps=1000, step_pps=1), duration_s=3, flows=2, frame=B64)


@pytest.fixture
def cell() -> Iterator[CellUnderTest]:
    """A simulated router, deployed."""
    asked = MeasurementRequest(
        test_type=TestType.MRR,
        cell=Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=1, nf_kinds=(NfKind("linux_router"),)),
        frame=B64,
        profile=QUICK,
    )
    made = CellUnderTest(SIM, SimulatedTestbed(SIM), asked)
    plan = made.plan(sources=2)
    made.deploy(plan)
    yield made
    assert made.remove() is None


@dataclass
class Logging:
    """A generator that sends two thirds of what it is asked for and keeps a log."""

    asked: list[Trial] = field(default_factory=list)
    keeps: bool = True
    arriving: float = 0.5

    def run(self, trial: Trial) -> TrialResult:
        self.asked.append(trial)
        sent = trial.load_pps / 2 * 2 / 3
        rows = [Interval(duration_s=1, sent=sent, received=self.arriving * sent, delay_ns=1e6)] * int(trial.duration_s)
        total = round(sent * trial.duration_s)
        counts = [
            FlowCount(instance=1, direction=way, sent=total, received=round(self.arriving * total)) for way in Direction
        ]
        return TrialResult(
            trial=trial,
            started_at="2026-01-01T00:00:00+00:00",
            offered_duration_s=trial.duration_s,
            total_duration_s=trial.duration_s,
            flows=tuple(counts),
            intervals=tuple(rows) if self.keeps else (),
            interface_sent=2 * total,
        )

    def highest_loads(self, trial: Trial) -> HighestLoads:
        del trial
        return HighestLoads(offered_pps=400_000.0, search_pps=100_000.0)

    def __getattr__(self, name: str) -> Any:  # the rest of the role
        return lambda: {} if name == "facts" else ()


def use(cell: CellUnderTest, generator: Logging) -> Logging:
    cell.deployment.parts = replace(cell.deployment.parts, generator=generator)
    return generator


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
    generator = use(cell, Logging())
    found = Sampling(cell, B64, Protocol.UDP, by_log=True).measure(SPEC, LoadStep(1500.0, 0, 3))
    (trial,) = generator.asked
    assert (trial.load_pps, trial.duration_s, trial.protocol, trial.on_off_s) == (6000.0, 3.0, Protocol.UDP, None)
    assert [sample.input_pps for sample in found.samples] == [2000.0] * 3
    assert [sample.loss_ratio for sample in found.samples] == [0.5] * 3
    assert found.sender_pps == pytest.approx(2000.0)


def test_its_bursts_are_one_trial_too(cell: CellUnderTest) -> None:
    generator = use(cell, Logging())
    spec = SPEC.model_copy(update={"rates": None, "bursts": Bursts(rate_pps=1500, on_s=2, off_s=1)})
    found = Sampling(cell, B64, Protocol.UDP, by_log=True).measure(spec, LoadStep(1500.0, 0, 3))
    assert generator.asked[0].on_off_s == (2.0, 1.0)
    assert [sample.rate_pps for sample in found.samples] == [1500.0, 1500.0, 0.0]


def test_a_silent_generator_is_reported(cell: CellUnderTest) -> None:
    use(cell, Logging(keeps=False))
    with pytest.raises(CsitError, match=r"the generator reported no second of 3 s at 1\.50 kpps"):
        Sampling(cell, B64, Protocol.UDP, by_log=True).measure(SPEC, LoadStep(1500.0, 0, 3))


def test_a_service_that_forwards_nothing_has_no_capacity(cell: CellUnderTest) -> None:
    use(cell, Logging(arriving=0.0))
    with pytest.raises(NoTraffic, match=r"no load from 1\.00 kpps was received: choose rates, or check the service"):
        Sampling(cell, B64, Protocol.IP, by_log=False).capacity_pps(flows=1)


def test_the_capacity_is_of_each_flow_one_way(cell: CellUnderTest) -> None:
    use(cell, Logging(arriving=1.0))
    assert Sampling(cell, B64, Protocol.IP, by_log=False).capacity_pps(flows=2) == pytest.approx(
        100_000 * 2 / 3 / 4, rel=1e-3
    )
