"""The search for what a generator can do, on a generator whose truth is known."""

import pytest

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.qualification import QualifiedPoint
from resources.libraries.python.model.measurements.trial import (
    Direction,
    FlowGaps,
    FlowLatency,
    HighestLoads,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.search.qualification import BRIEF, Effort, qualify_point
from tests.builders import finished

FRAME = Frame(name="64B", parts=(FramePart(frame_bytes=64),))


class Loop:
    """A generator that sends at most `sends_pps` and of which at most `receives_pps` arrive."""

    def __init__(self, sends_pps: float = 4e6, receives_pps: float = 1e6, *, unlucky: int = 0) -> None:
        self.sends_pps, self.receives_pps, self.unlucky = sends_pps, receives_pps, unlucky
        self.says_pps = sends_pps
        self.trials: list[Trial] = []

    def run(self, trial: Trial) -> TrialResult:
        self.trials.append(trial)
        limited = trial.load_pps > self.sends_pps
        sent = round(min(trial.load_pps, self.sends_pps) * trial.duration_s)
        lost = max(0, sent - round(self.receives_pps * trial.duration_s))
        if self.unlucky and len(self.trials) % self.unlucky == 0:
            lost += 1
        flow = {"instance": 1, "direction": Direction.FORWARD}
        probes = round(trial.probe_pps * trial.duration_s)
        latency = FlowLatency(
            **flow, sent=probes, received=probes, min_ns=8000, mean_ns=9e3, p50_ns=9000, p90_ns=9000, p99_ns=9000,
            p999_ns=9000, max_ns=9000, histogram=None,
        )  # fmt: skip
        return finished(
            trial,
            (sent, sent - lost),
            offered_duration_s=trial.duration_s * (1.0005 if sent else 1),
            latency=(latency,) if probes else (),
            gaps=(FlowGaps(**flow, packets=sent, p50_ns=9, p99_ns=99, p999_ns=999),) if trial.measure_gaps else (),
            generator_limited=limited,
        )

    def highest_loads(self, trial: Trial) -> HighestLoads:
        assert trial.duration_s >= 0.3, "one stall of a brief trial would count for too much"
        return HighestLoads(offered_pps=self.says_pps, search_pps=self.says_pps)


def point(loop: Loop, effort: Effort = BRIEF, *, measures_itself: bool = True) -> QualifiedPoint:
    return qualify_point(
        loop.run, loop.highest_loads, FRAME, 2, effort,
        loss_ratio=0.005, numbers_packets=measures_itself, sends_probes=measures_itself,
    )  # fmt: skip


@pytest.mark.parametrize("receives_pps", [30e3, 0.4e6, 1e6, 3.9e6])
def test_both_rates_are_found_within_the_width(receives_pps: float) -> None:
    found = point(Loop(4e6, receives_pps))
    assert found.loss_free_pps == pytest.approx(receives_pps, rel=BRIEF.width)
    assert found.highest_pps is not None and found.loss_free_pps is not None
    assert found.highest_pps >= found.loss_free_pps
    assert found.highest_pps == pytest.approx(receives_pps / 0.995, rel=BRIEF.width)
    assert found.received_pps == pytest.approx(receives_pps, rel=0.01)


def test_a_generator_that_loses_nothing_is_bounded_by_what_it_sends() -> None:
    loop = Loop(4e6, 9e6)
    found = point(loop)
    assert found.loss_free_pps == found.highest_pps == pytest.approx(4e6, rel=0.001)
    assert sum(not trial.probe_pps for trial in loop.trials) <= 9, "one trial is enough, and two loads above it"


def test_a_generator_that_can_send_more_than_it_says_is_asked_for_more() -> None:
    loop = Loop(4e6, 9e6)
    loop.says_pps = 2e6
    found = point(loop)
    assert found.loss_free_pps == found.highest_pps == pytest.approx(4e6, rel=BRIEF.width)


def test_a_loss_by_chance_does_not_lower_the_rate() -> None:
    assert point(Loop(4e6, 1e6, unlucky=3)).loss_free_pps == pytest.approx(1e6, rel=0.07)


def test_where_every_trial_loses_something_there_is_no_loss_free_rate() -> None:
    loop = Loop(4e6, 1e6, unlucky=1)
    found = point(loop)
    assert found.loss_free_pps is None and found.highest_pps == pytest.approx(1e6, rel=0.07)


def test_gaps_floor_and_rate_error_are_those_of_the_trials() -> None:
    found = point(Loop())
    assert (found.gap_p50_ns, found.gap_p99_ns, found.gap_p999_ns) == (9, 99, 999)
    assert found.gap_load_pps == 100e3
    assert (found.floor_ns, found.floor_p50_ns) == (8000, 9000)
    assert found.rate_error == pytest.approx(0.0005, rel=0.1)
    assert (found.frame, found.flows) == (FRAME, 2)


def test_what_a_generator_cannot_measure_is_not_asked_for() -> None:
    loop = Loop()
    found = point(loop, measures_itself=False)
    assert found.counted_pps is None and found.floor_ns is None
    assert not any(trial.probe_pps or trial.count_losses for trial in loop.trials)
    assert found.gap_p99_ns == 99, "the kernel stamps arrivals of any generator"


def test_a_search_ends_after_its_trials() -> None:
    loop = Loop(4e6, 0.013e6, unlucky=1)
    point(loop)
    assert len(loop.trials) <= 2 * BRIEF.most_trials + 7


def test_a_loop_that_returns_nothing_is_an_error() -> None:
    with pytest.raises(CsitError, match=r"nothing of 4\.00 Mpps of 64B frames came back over the loop"):
        point(Loop(4e6, 0.0))
