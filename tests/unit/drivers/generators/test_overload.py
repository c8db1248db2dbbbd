"""Where a search begins, and where MRR is measured: unlike loads on a system that collapses."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.overload import SearchedByTrials, highest_loads
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from tests.builders import cpus, finished, plan_of


def collapsing(capacity_pps: float, per_pps: float) -> Callable[[float], float]:
    """Forwards all up to a capacity, and of every packet beyond it so much less."""
    return lambda load_pps: max(0.0, min(load_pps, capacity_pps - per_pps * max(0.0, load_pps - capacity_pps)))


def test_mrr_is_measured_at_all_the_generator_can_and_a_search_begins_lower() -> None:
    forwards = collapsing(400_000, 0.12)
    found = highest_loads(3_800_000, forwards(3_800_000), lambda load_pps, _: forwards(load_pps))
    assert found.offered_pps == 3_800_000
    assert found.search_pps == pytest.approx(4 * 400_000, rel=0.2)


def test_a_system_that_keeps_up_is_searched_from_the_same_load() -> None:
    found = highest_loads(1e6, 0.6e6, lambda *_: pytest.fail("half came back: nothing to look for"))
    assert (found.offered_pps, found.search_pps) == (1e6, 1e6)


def test_a_system_that_forwards_nothing_is_asked_once_more_and_at_the_lowest_load() -> None:
    asked: list[float] = []
    found = highest_loads(3_800_000, 0.0, lambda load_pps, _: asked.append(load_pps) or 3.0)
    assert asked == [10_000]
    assert (found.offered_pps, found.search_pps) == (3_800_000, 3_800_000)


def test_a_system_that_collapses_to_nothing_is_searched_from_what_it_can() -> None:
    forwards = collapsing(400_000, 0.5)
    assert forwards(3_800_000) == 0
    found = highest_loads(3_800_000, 0.0, lambda load_pps, _: forwards(load_pps))
    assert found.search_pps == pytest.approx(4 * 400_000, rel=0.2)


@pytest.mark.parametrize("capacity_pps", [8_000, 15_000, 20_000, 70_000, 400_000])
def test_far_above_what_a_system_can_every_second_load_is_left_out(capacity_pps: float) -> None:
    asked: list[float] = []

    def forwarded(load_pps: float, _: float) -> float:
        asked.append(load_pps)
        return min(load_pps, capacity_pps)

    found = highest_loads(5_120_000, capacity_pps, forwarded)
    halved = [5_120_000 / 2**number for number in range(1, 10)]
    best_pps = max(min(load_pps, capacity_pps) for load_pps in halved)
    assert found.search_pps == 4 * best_pps, "as if it had been halved all the way"
    assert set(asked) <= set(halved)
    halvings = next(number for number, load in enumerate(halved, 1) if capacity_pps >= load / 2 or load <= 10_000)
    assert len(asked) <= halvings // 2 + 2


@given(st.floats(1e4, 1e8), st.floats(0, 2e8), st.floats(0.0, 2.0))
def test_a_search_begins_above_what_the_system_can_and_not_above_what_is_offered(
    offered_pps: float, capacity_pps: float, per_pps: float
) -> None:
    forwards = collapsing(capacity_pps, per_pps)
    found = highest_loads(offered_pps, forwards(offered_pps), lambda load_pps, _: forwards(load_pps))
    assert found.offered_pps == offered_pps
    assert 0 < found.search_pps <= offered_pps
    assert found.search_pps >= min(offered_pps, capacity_pps * 0.99) or capacity_pps < 10_000


@pytest.mark.parametrize(("trial_s", "duration_s"), [(0.1, 0.1), (10.0, 0.3)])
def test_trials_of_the_highest_load_are_no_longer_than_the_one_that_is_asked_for(
    trial_s: float, duration_s: float
) -> None:
    asked: list[Trial] = []

    class Generator(SearchedByTrials):
        """All of it comes back."""

        _plan = plan_of("sim", "CSC", cores=cpus(32))

        def run(self, trial: Trial) -> TrialResult:
            asked.append(trial)
            sent = round(trial.load_pps * trial.duration_s)
            return finished(trial, (sent, sent))

    trial = Trial(load_pps=0.0, duration_s=trial_s, frame=frame("64B"))
    assert Generator().highest_loads(trial).offered_pps > 0
    assert [trial.duration_s for trial in asked] == [duration_s]
