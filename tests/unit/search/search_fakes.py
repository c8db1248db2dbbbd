"""Systems under test that are one function, with a clock that only trials move; plans and density tests for them."""

from collections.abc import Callable
from random import Random
from typing import Any

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.models import Model
from resources.libraries.python.model.measurements.trial import Direction, FlowLatency, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Frame, FramePart, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.goal import GoalResult, SearchProfile
from resources.libraries.python.model.result import MeasurementRequest, VerdictKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.search.profiles import LADDER, profile
from resources.libraries.python.search.throughput import SearchOutcome, search_throughput
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import NOWHERE, SIM, cell_of, cpus, finished, plan_of, shipped

LOCAL = shipped("local")
FRAME = Frame(name="64B", parts=(FramePart(frame_bytes=64),))
LINE_PPS = 2 * 14.88e6

Forward = Callable[[float, float], tuple[int, int]]
"""Load in pps and duration in s to packets sent and received."""


class Bench:
    """Measures a forwarding function; keeps the trials it was asked for."""

    def __init__(self, forward: Forward, overhead_s: float = 0.5) -> None:
        self.clock = VirtualClock()
        self.asked: list[Trial] = []
        self._forward = forward
        self._overhead_s = overhead_s

    def measure(self, trial: Trial) -> TrialResult:
        self.asked.append(trial)
        sent, received = self._forward(trial.load_pps, trial.duration_s)
        duration_s = _ends_s(trial, sent, received)
        aborted = duration_s < trial.duration_s
        if aborted:
            lost = int((sent - received) * duration_s / trial.duration_s)
            sent = round(sent * duration_s / trial.duration_s)
            received = sent - lost
        self.clock.advance(duration_s + self._overhead_s)
        return finished(
            trial, (sent - sent // 2, received // 2), (sent // 2, received - received // 2), aborted=aborted,
            started_at=self.clock.timestamp(), offered_duration_s=duration_s,
            total_duration_s=duration_s + self._overhead_s,
        )  # fmt: skip


def generator_bound(outcome: SearchOutcome) -> bool:
    """Whether the generator bounds a goal, or offered nothing."""
    return any(finding.kind is VerdictKind.GENERATOR_BOUND for finding in outcome.findings)


def _ends_s(trial: Trial, sent: int, received: int) -> float:
    """When a trial ends that loses evenly and looks at its counters every 0.1 s."""
    lost = sent - received
    if trial.abort_loss_ratio is None or lost <= trial.abort_loss_ratio * sent:
        return trial.duration_s
    polls = (each / 10 for each in range(1, round(trial.duration_s * 10)))
    limit = trial.abort_loss_ratio * sent
    return next((now for now in polls if int(lost * now / trial.duration_s) > limit), trial.duration_s)


def capped(capacity_pps: float) -> Forward:
    """Forwards up to a capacity."""

    def forward(load_pps: float, duration_s: float) -> tuple[int, int]:
        sent = round(load_pps * duration_s)
        return sent, min(sent, round(capacity_pps * duration_s))

    return forward


def of_model(model: Model, seed: int = 1) -> Forward:
    """A simulated system."""
    rng = Random(seed)
    return lambda load_pps, duration_s: model.forward(load_pps, duration_s, rng)


def trial_result(load_pps: float, lost: int = 0, *, sent: int = 1000, duration_s: float = 1.0) -> TrialResult:
    """A finished trial with some packets lost, no overhead."""
    return finished(Trial(load_pps=load_pps, duration_s=duration_s, frame=FRAME), (sent, sent - lost))


def flow_latency(
    ns: int, *, direction: Direction = Direction.FORWARD, packets: int = 1, min_ns: int | None = None
) -> FlowLatency:
    """Of a flow all of whose probes took as long, but for the fastest."""
    return FlowLatency(
        instance=1, direction=direction, sent=packets, received=packets, min_ns=ns if min_ns is None else min_ns,
        mean_ns=ns, p50_ns=ns, p90_ns=ns, p99_ns=ns, p999_ns=ns, max_ns=ns, histogram=None,
    )  # fmt: skip


def search(
    bench: Bench, max_load_pps: float = LINE_PPS, profile: SearchProfile = LADDER, **known: Any
) -> SearchOutcome:
    return search_throughput(bench.measure, profile, FRAME, max_load_pps, bench.clock.now, **known)


def found(result: GoalResult | None) -> tuple[float, float]:
    """Both bounds of a goal that was reached."""
    assert result is not None and result.lower_pps is not None
    assert result.upper_pps is not None
    return result.lower_pps, result.upper_pps


def planned(service_type: str = "CSC", rows: int = 1, columns: int = 1) -> Plan:
    """A cell on the local testbed, on 64 CPUs."""
    return plan_of(LOCAL, service_type, rows, columns, cores=cpus(64))


def planted(**simulation: object) -> Topology:
    """The simulated testbed with other parameters."""
    return SIM.model_copy(update={"simulation": {**(SIM.simulation or {}), **simulation}})


def deployed(
    topology: Topology = SIM,
    cell: Cell | None = None,
    searched: str = "ladder",
    test_type: TestType = TestType.NDRPDR,
    **known: Any,
) -> DensityTest:
    """A test that is ready to measure.

    `known`: What else it is given, such as the noise floor.
    """
    cell = cell or cell_of()
    asked = MeasurementRequest(test_type=test_type, cell=cell, frame=frame("64B"), profile=profile(searched))
    test = DensityTest(topology, make_testbed(topology), asked, NOWHERE, **known)
    test.deploy()
    return test
