"""What a generator can do, measured where its truth is known; results beyond it are marked."""

from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.qualification import Qualification, QualifiedPoint
from resources.libraries.python.model.measurements.trial import (
    Direction,
    FlowGaps,
    HighestLoads,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.request.cell import Frame, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import LatencyAtLoad, MeasurementRequest, ReceiveRate, VerdictKind
from resources.libraries.python.planning.loop_back import VETH
from resources.libraries.python.recording.qualifications import key_of
from resources.libraries.python.recording.writer import Draft
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.search.qualification import (
    BRIEF,
    Effort,
    GeneratorRange,
    UnqualifiedLoads,
    qualify_point,
)
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.shared.library import TestbedSession
from resources.libraries.python.testbed.deployment import loop_back
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.loop_back import qualification_for_run, qualify, qualify_again
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import NOWHERE, SIM, cell_of, finished, qualification, qualified_point
from tests.unit.search.search_fakes import FRAME, deployed, flow_latency, planted


class Loop:
    """A generator that sends at most `sends_pps` and of which at most `receives_pps` arrive."""

    def __init__(
        self, receives_pps: float = 1e6, sends_pps: float = 4e6, *, says_pps: float | None = None, unlucky: int = 0
    ) -> None:
        self.sends_pps, self.receives_pps, self.unlucky = sends_pps, receives_pps, unlucky
        self.says_pps = says_pps or sends_pps
        self.trials: list[Trial] = []

    def run(self, trial: Trial) -> TrialResult:
        self.trials.append(trial)
        limited = trial.load_pps > self.sends_pps
        sent = round(min(trial.load_pps, self.sends_pps) * trial.duration_s)
        lost = max(0, sent - round(self.receives_pps * trial.duration_s))
        if self.unlucky and len(self.trials) % self.unlucky == 0:
            lost += 1
        probes = round(trial.probe_pps * trial.duration_s)
        gaps = FlowGaps(
            instance=1, direction=Direction.FORWARD, packets=sent, p50_ns=9, p99_ns=99, p999_ns=999
        )  # fmt: skip
        return finished(
            trial,
            (sent, sent - lost),
            offered_duration_s=trial.duration_s * (1.0005 if sent else 1),
            latency=(flow_latency(9000, packets=probes, min_ns=8000),) if probes else (),
            gaps=(gaps,) if trial.measure_gaps else (),
            generator_limited=limited,
        )

    def highest_loads(self, trial: Trial) -> HighestLoads:
        assert trial.duration_s >= 0.3, "one stall of a brief trial would count for too much"
        return HighestLoads(offered_pps=self.says_pps, search_pps=self.says_pps)


def point(loop: Loop, *, measures_itself: bool = True) -> QualifiedPoint:
    return qualify_point(
        loop.run, loop.highest_loads, FRAME, 2, BRIEF,
        loss_ratio=0.005, numbers_packets=measures_itself, sends_probes=measures_itself,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("loop", "loss_free_pps", "highest_pps"),
    [
        *((Loop(pps), pps, pps / 0.995) for pps in (30e3, 0.4e6, 1e6, 3.9e6)),
        (Loop(9e6), 4e6, 4e6),  # bounded by what it sends
        (Loop(9e6, says_pps=2e6), 4e6, 4e6),  # asked for more than it says
        (Loop(1e6, unlucky=3), 1e6, 1e6),  # a loss by chance
        (Loop(1e6, unlucky=1), None, 1e6),  # every trial loses something
    ],
)
def test_both_rates_are_found_within_the_width(loop: Loop, loss_free_pps: float | None, highest_pps: float) -> None:
    found = point(loop)
    width = 0.07 if loop.unlucky else BRIEF.width
    assert found.loss_free_pps == (loss_free_pps and pytest.approx(loss_free_pps, rel=width))
    assert found.highest_pps == pytest.approx(highest_pps, rel=width)
    assert found.highest_pps is not None and found.highest_pps >= (found.loss_free_pps or 0.0)
    assert found.received_pps == pytest.approx(min(loop.receives_pps, loop.sends_pps), rel=0.01)


def test_gaps_floor_and_rate_error_are_those_of_trials_and_what_a_generator_cannot_measure_is_not_asked_for() -> None:
    found = point(Loop())
    assert (found.gap_p50_ns, found.gap_p99_ns, found.gap_p999_ns) == (9, 99, 999)
    assert found.gap_load_pps == 100e3
    assert (found.floor_ns, found.floor_p50_ns) == (8000, 9000)
    assert found.rate_error == pytest.approx(0.0005, rel=0.1)
    assert (found.frame, found.flows) == (FRAME, 2)
    loop = Loop()
    found = point(loop, measures_itself=False)
    assert found.counted_pps is None and found.floor_ns is None
    assert not any(trial.probe_pps or trial.count_losses for trial in loop.trials)
    assert found.gap_p99_ns == 99, "the kernel stamps arrivals of any generator"
    with pytest.raises(CsitError, match=r"nothing of 4\.00 Mpps of 64B frames came back over the loop"):
        point(Loop(0.0))


GOALS = {goal.name: goal for goal in profile("ladder").goals}
LATE = {"gap_p50_ns": 20e3, "gap_p999_ns": 820e3}
LIMITED = planted(model="sharp", generator={"loss_free_pps": 2e6})


def result(name: str, lower_pps: float, upper_pps: float) -> GoalResult:
    known = {"lower_pps": lower_pps, "upper_pps": upper_pps, "throughput_pps": lower_pps, "lowest_tried_pps": lower_pps}
    return GoalResult(goal=GOALS[name], complete=True, **known)


def here(flows: int = 2, size: str = "64B", **point: object) -> GeneratorRange:
    return GeneratorRange(qualification(qualified_point(**point)), frame(size), flows)


@pytest.mark.parametrize(
    ("point", "bounds", "words"),
    [
        ({}, {"NDR": (0.8e6, 0.9e6), "PDR": (0.9e6, 0.95e6)}, None),
        ({}, {"NDR": (1.2e6, 1.3e6)}, "NDR: 1.20 Mpps is beyond 1.00 Mpps, up to which the generator is qualified"),
        ({}, {"NDR": (0.99e6, 1.01e6)}, "1.01 Mpps did not meet the goal, but the generator is qualified up to 1.00"),
        ({}, {"PDR": (1.05e6, 1.09e6)}, None),
        ({}, {"PDR": (1.09e6, 1.11e6)}, "PDR: "),
        ({"loss_free_pps": None}, {"NDR": (1e3, 2e3), "PDR": (1e3, 2e3)}, "NDR: the generator itself lost more than 0"),
        (LATE, {"NDR": (0.6e6, 0.7e6), "PDR": (0.6e6, 0.7e6)}, "comes 800 µs late"),
        (LATE, {"NDR": (0.6e6, 0.7e6)}, "at 700 kpps, 280 frames of a flow follow at once"),
        (LATE, {"NDR": (0.55e6, 0.6e6)}, None),  # 240 frames fit
    ],
)
def test_a_rate_that_the_generator_may_limit_is_marked(
    point: dict[str, object], bounds: dict[str, tuple[float, float]], words: str | None
) -> None:
    found = here(**point).of_goals([result(name, *pair) for name, pair in bounds.items()])
    assert bool(found) is (words is not None)
    for finding in found:
        assert finding.kind is VerdictKind.UNQUALIFIED
        assert words is not None and words in finding.text
    assert len(found) <= 1
    assert not GeneratorRange(None, frame("64B"), 2).of_goals([result("NDR", 8e6, 9e6)])


def test_frames_and_flows_are_bounded_by_the_next_smaller_ones() -> None:
    points = [qualified_point(size="64B", flows=2), qualified_point(size="64B", flows=8, loss_free_pps=0.5e6)]
    points.append(qualified_point(size="1518B", flows=2, loss_free_pps=0.2e6))
    found = qualification(*points)
    bounds = {
        ("64B", 2): points[0], ("64B", 4): points[0], ("64B", 20): points[1], ("570B", 2): points[0],
        ("1518B", 20): points[2], ("9000B", 2): points[2], ("IMIX", 20): points[1],
    }  # fmt: skip
    assert {key: found.bound(frame(key[0]), key[1]) for key in bounds} == bounds
    assert found.bound(frame("64B"), 1) is None


def test_a_latency_below_the_floor_and_a_receive_rate_above_all_that_arrived_are_marked() -> None:
    def rate(mean_pps: float) -> ReceiveRate:
        return ReceiveRate(offered_pps=9e6, receive_rates_pps=(mean_pps,), mean_pps=mean_pps, stdev_pps=None)

    assert not here().of_rate("MRR", rate(1.2e6)) and not here().of_rate("MRR", None)
    (found,) = here().of_rate("MRR", rate(1.5e6))
    assert "MRR: 1.50 Mpps is beyond 1.20 Mpps, the most that arrived" in found.text

    def at(min_ns: int) -> LatencyAtLoad:
        flow = flow_latency(min_ns, direction=Direction.REVERSE)
        return LatencyAtLoad(label="PDR0", load_pps=0, flows=(flow,))

    assert not here().of_latency([at(9_000)], "LATENCY")
    (found,) = here().of_latency([at(9_000), at(2_000)], "LATENCY")
    assert found.text.startswith("PDR0: 2.00 µs of instance 1 reverse is below 8.00 µs")


def trial(offered: int, received: int, duration_s: float = 1.0, protocol: Protocol | None = None) -> TrialResult:
    asked = Trial(load_pps=offered, duration_s=duration_s, frame=frame("64B"), protocol=protocol)
    return finished(asked, *[(offered // 2, received // 2)] * 2)


def test_trials_of_other_studies_beyond_the_range_are_counted() -> None:
    beyond = UnqualifiedLoads(qualification(qualified_point()))
    for offered, received in ((1_200_000, 1), (1_300_000, 1_300_000), (1_300_000, 1_200_000), (1_400_000, 0)):
        beyond.look(trial(offered, received))
    (said,) = beyond.take()
    assert said.startswith("2 trials offered up to 1.40 Mpps, and the generator is qualified up to 1.10 Mpps")
    assert not beyond.take()
    beyond.qualification = beyond.qualification.model_copy(update={"sending": "TRex v3.08"})
    assert "TRex v3.10" in " ".join(beyond.other_version({"generator": "TRex v3.10", "ports": "DPDK"}))
    assert not beyond.other_version({"generator": "TRex v3.08"})
    assert not beyond.other_version({"sending": "XDP live frames"}), "the built-in one"


@pytest.mark.parametrize("protocol", Protocol)
def test_the_rate_of_datagrams_bounds_no_tcp_and_no_icmp(protocol: Protocol) -> None:
    beyond = UnqualifiedLoads(qualification(qualified_point()))
    beyond.look(trial(1_400_000, 1, protocol=protocol))
    beyond.look(trial(1_400_000, 1_400_000, protocol=protocol))
    datagrams = protocol in (Protocol.IP, Protocol.UDP)
    assert bool(beyond.take()) == bool(beyond.take_disproved()) == datagrams


def test_a_rate_without_loss_beyond_the_range_disproves_it() -> None:
    beyond = UnqualifiedLoads(qualification(point := qualified_point()))
    for offered in (1_050_000, 1_300_000, 1_200_000):
        beyond.look(trial(offered, offered))
    beyond.look(trial(1_500_000, 1_499_998))
    beyond.look(trial(2_000_000, 2_000_000, duration_s=0.1))  # shorter than those of the qualification
    assert beyond.take_disproved() == {point: 1_300_000}
    assert not beyond.take_disproved()
    never = qualified_point(loss_free_pps=None)
    beyond.qualification = qualification(never)
    beyond.look(trial(10_000, 10_000))
    assert beyond.take_disproved() == {never: 10_000}, "every trial of the loop-back lost something"


def test_a_qualification_that_a_test_disproves_is_repeated_once(tmp_path: Path) -> None:
    session = TestbedSession()
    session.open(LIMITED, 0.0, qualifications=tmp_path)
    beyond = session.beyond
    assert beyond is not None
    disturbed = [point.model_copy(update={"loss_free_pps": 4e5}) for point in beyond.qualification.points]
    for again in (True, False):
        beyond.qualification = beyond.qualification.model_copy(update={"points": tuple(disturbed)})
        beyond.look(trial(1_000_000, 1_000_000))
        session.qualify_again()
        first, *others = beyond.qualification.points
        assert (first.loss_free_pps == pytest.approx(2e6, rel=0.05)) == again
        assert others == disturbed[1:] != []
    session.close()


def test_a_qualification_is_repeated_in_trials_as_long_and_gets_no_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_testbed(LIMITED)
    found = qualification(better := qualified_point(loss_free_pps=3e6), worse := qualified_point("512B"))
    trials_s: list[float] = []

    def measure(*args: Any, effort: Effort, **named: Any) -> Qualification:
        trials_s.append(effort.trial_s)
        return qualify(*args, effort=effort, **named)

    monkeypatch.setattr(loop_back, "qualify", measure)
    made = qualify_again(LIMITED, world, found, [better, worse], tmp_path)
    assert made.points[0] == better
    assert made.points[1].loss_free_pps == pytest.approx(2e6, rel=0.05)
    assert made.measured_at != found.measured_at and trials_s == [found.trial_s] * 2


def test_a_frame_that_the_generator_does_not_send_leaves_the_others_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def point(_: object, __: object, size: Frame, *_more: object, **_named: object) -> QualifiedPoint:
        if size.name == "64B":
            raise Unsupported("it sends 66 bytes")
        return qualified_point(size.name)

    monkeypatch.setattr(loop_back, "qualify_point", point)
    world = make_testbed(SIM)
    key, sizes = key_of(SIM, world.environment(), VETH), [frame(name) for name in ("64B", "512B")]
    found = qualify(SIM, world, key, frames=sizes, flow_counts=[2], effort=Effort())
    assert [each.frame.name for each in found.points] == ["512B"]
    assert found.notes == ("64B is left out: it sends 66 bytes",)
    with pytest.raises(Unsupported, match=r"^64B is left out: it sends 66 bytes$"):
        qualify(SIM, world, key, frames=sizes[:1], flow_counts=[2], effort=Effort())


def test_each_trial_of_a_cell_is_looked_at() -> None:
    world, seen = make_testbed(SIM), list[TrialResult]()
    world.on_trial = seen.append
    asked = MeasurementRequest(test_type=TestType.MRR, cell=cell_of(), frame=frame("64B"), profile=profile("ladder"))
    under_test = CellUnderTest(SIM, world, asked)
    under_test.deploy(under_test.plan())
    result = under_test.measure(Trial(load_pps=1e6, duration_s=1.0, frame=frame("64B")))
    under_test.remove()
    assert seen == [result]


def measured(tmp_path: Path, **generator: object) -> tuple[Qualification | None, Draft[DensityRecord]]:
    """A density test on a simulated testbed whose generator has limits, qualified as a run does."""
    topology = planted(model="sharp", generator=generator)
    found = qualification_for_run(topology, make_testbed(topology), NOWHERE, lambda _: None, tmp_path)
    test = deployed(topology, qualification=found)
    test.verify_traffic()
    test.search(("NDR", "PDR"))
    test.latency()
    test.remove()
    return found, test.draft


def test_a_generator_that_limits_is_found_by_loop_back_and_named_as_the_limit(tmp_path: Path) -> None:
    found, draft = measured(tmp_path, loss_free_pps=2e6, floor_us=3.0)
    assert found is not None and found.simulated
    point = found.bound(frame("64B"), 2)
    assert isinstance(point, QualifiedPoint)
    assert point.loss_free_pps == pytest.approx(2e6, rel=0.05) and point.floor_ns == 3_000
    assert draft.ndr.lower_pps == pytest.approx(2e6, rel=0.02), (
        "the truth: the generator's receiving end loses the rest"
    )
    assert VerdictKind.UNQUALIFIED in draft.verdict.of("NDR") and VerdictKind.UNQUALIFIED in draft.verdict.of("PDR")
    assert not list(tmp_path.iterdir()), "what is simulated is not kept"


def test_a_simulated_generator_is_looped_back_where_it_has_limits_and_named_where_they_matter(tmp_path: Path) -> None:
    found, draft = measured(tmp_path, loss_free_pps=25e6)
    assert found is not None and VerdictKind.UNQUALIFIED not in draft.verdict.kinds
    assert measured(tmp_path)[0] is None
    _, draft = measured(tmp_path, pause_us=400.0)
    assert "one of 1000 frames of the generator comes 380 µs late" in " ".join(draft.verdict.evidence_of("NDR"))
