"""The longest burst without a loss, against queues that are followed packet by packet."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import BackToBack
from resources.libraries.python.search.back_to_back import PURPOSE, bursts_in_words, measure_back_to_back
from resources.libraries.python.studies.density.planning.extras import Extras
from tests.builders import SIM, finished, plan_of
from tests.unit.drivers.sim.sim_bed import Bed

SMALL = frame("64B")
LOAD_PPS, FLOWS = 2e6, 2


def system(loses: Callable[[int], bool]) -> Callable[[Trial], TrialResult]:
    """One that loses a frame of bursts of some lengths."""

    def run(trial: Trial) -> TrialResult:
        length = round(trial.load_pps / FLOWS * trial.duration_s)
        lost = int(loses(length))
        return finished(trial, *[(length, length - lost)] * 2)

    return run


def found_by(run: Callable[[Trial], TrialResult], repetitions: int = 3, **changes: float) -> BackToBack:
    asked = {"load_pps": LOAD_PPS, "throughput_pps": LOAD_PPS / 4} | changes
    return measure_back_to_back(run, SMALL, flows=FLOWS, repetitions=repetitions, **asked)


@given(st.integers(0, 2_500_000))
def test_the_longest_burst_is_found_within_the_resolution(longest: int) -> None:
    found = found_by(system(lambda length: length > longest), repetitions=2)
    most = round(2.0 * LOAD_PPS / FLOWS)
    wanted = min(longest, most)
    assert all(0.985 * wanted - 1 <= frames <= wanted for frames in found.frames)
    assert found.endless == (longest >= most) and found.trials <= 150


def test_a_burst_that_loses_once_is_sent_again() -> None:
    lost: set[int] = set()

    def once(length: int) -> bool:
        first = length not in lost
        lost.add(length)
        return length > 300 or first

    assert found_by(system(once), repetitions=1).frames[0] >= 296


def test_a_burst_that_the_generator_cut_short_is_none_of_that_length() -> None:
    whole, short = system(lambda length: length > 300), set[float]()

    def run(trial: Trial) -> TrialResult:
        result = whole(trial)
        if trial.duration_s in short:
            return result
        short.add(trial.duration_s)
        flows = tuple(flow.model_copy(update={"sent": 1, "received": 1}) for flow in result.flows)
        return result.model_copy(update={"flows": flows, "generator_limited": True})

    found = found_by(run, repetitions=1)
    assert 296 <= found.frames[0] <= 300
    assert found.offered_pps == pytest.approx(LOAD_PPS, rel=0.01), "as shown by those that were sent in full"


@pytest.mark.parametrize("longest", [40, 500, 20_000])
def test_a_search_takes_about_as_many_bursts_as_a_preview_expects(longest: int) -> None:
    found = found_by(system(lambda length: length > longest), repetitions=50)
    expected = Extras(bursts=1).seconds(TestType.NDRPDR, 1.0)
    assert 0.5 * expected < found.trials / 50 < 1.5 * expected


def test_times_follow_from_the_rate_of_the_bursts() -> None:
    found = found_by(system(lambda length: length > 500))
    assert found.offered_pps == pytest.approx(LOAD_PPS, rel=0.01)
    assert found.implied_buffer_s == pytest.approx(found.mean_frames * FLOWS / LOAD_PPS, rel=0.01)
    assert found.corrected_buffer_s == pytest.approx(0.75 * found.implied_buffer_s, rel=0.01)
    assert bursts_in_words(found).startswith(f"back-to-back: {found.mean_frames:.0f} ± ")


def test_no_buffer_is_found_where_ndr_is_the_rate_of_the_bursts_or_the_generator_sends_nothing() -> None:
    with pytest.raises(Unsupported, match="no buffer fills"):
        found_by(system(lambda _: False), throughput_pps=LOAD_PPS)
    silent = {"flows": (), "offered_duration_s": 0.0}
    with pytest.raises(Unsupported, match=r"the generator sent no burst at 2\.00 Mpps"):
        found_by(lambda trial: system(lambda _: False)(trial).model_copy(update=silent))


@pytest.mark.parametrize("queue", [64, 256, 1000])
def test_the_buffer_of_a_simulated_system_is_found(queue: int) -> None:
    plan = plan_of(SIM, "CSC", cores=SIM.dut.layout)
    bed = Bed(plan, TestType.NDRPDR, packet_losses={"queue": queue})
    capacity_pps, load_pps = bed.system.capacity_pps(SMALL), bed.system.maximum_pps(SMALL)
    assert capacity_pps < 0.9 * load_pps

    def run(trial: Trial) -> TrialResult:
        assert trial.purpose == PURPOSE
        return bed.generator.run(trial)

    found = measure_back_to_back(run, SMALL, flows=2, load_pps=load_pps, throughput_pps=capacity_pps, repetitions=3)
    # A queue of n packets takes n / (1 - utilization) of a burst, as it is served meanwhile.
    assert found.mean_frames == pytest.approx(queue / (1 - capacity_pps / load_pps), rel=0.03)
    assert found.corrected_buffer_s == pytest.approx(2 * queue / load_pps, rel=0.05)
