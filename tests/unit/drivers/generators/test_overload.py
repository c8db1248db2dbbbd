"""Where a search begins, and where MRR is measured: unlike loads on a system that collapses."""

from collections.abc import Callable
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators import overload
from resources.libraries.python.drivers.generators.overload import SearchedByTrials, highest_loads
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.planning.linerate import MaxRate
from tests.builders import cpus, finished, plan_of


def collapsing(capacity_pps: float, per_pps: float) -> Callable[[float], float]:
    """Forwards all up to a capacity, and of every packet beyond it so much less."""
    return lambda load_pps: max(0.0, min(load_pps, capacity_pps - per_pps * max(0.0, load_pps - capacity_pps)))


@pytest.mark.parametrize("per_pps", [0.12, 0.5])
def test_mrr_is_measured_at_all_the_generator_can_and_a_search_begins_at_what_the_system_can(per_pps: float) -> None:
    """With 0.5 it collapses to nothing."""
    forwards = collapsing(400_000, per_pps)
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


class Generator(SearchedByTrials):
    """One with a limit in front of a system with a limit that collapses beyond twice its capacity."""

    _plan = plan_of("sim", "CSC", cores=cpus(32))

    def __init__(self, capacity_pps: float, offers_pps: float) -> None:
        self._capacity_pps, self._offers_pps = capacity_pps, offers_pps
        self.asked: list[Trial] = []

    def run(self, trial: Trial) -> TrialResult:
        self.asked.append(trial)
        offered_pps = min(trial.load_pps, self._offers_pps)
        collapses = offered_pps > 2 * self._capacity_pps
        forwarded_pps = self._capacity_pps / 20 if collapses else min(self._capacity_pps, offered_pps)
        counts = round(offered_pps * trial.duration_s), round(forwarded_pps * trial.duration_s)
        return finished(trial, counts, generator_limited=offered_pps < trial.load_pps)


@pytest.mark.parametrize(("trial_s", "duration_s"), [(0.1, 0.1), (10.0, 0.3)])
def test_trials_of_the_highest_load_are_no_longer_than_the_one_that_is_asked_for(
    trial_s: float, duration_s: float
) -> None:
    generator = Generator(1e9, 1e9)
    assert generator.highest_loads(Trial(load_pps=0.0, duration_s=trial_s, frame=frame("64B"))).offered_pps > 0
    assert [trial.duration_s for trial in generator.asked] == [duration_s]


@pytest.mark.parametrize(
    ("capacity_pps", "offers_pps", "line_pps", "least_pps", "most_pps"),
    [
        (1e9, 600_000, None, 0.85 * 600_000, 600_000),  # a cable: what the generator can, a little less
        (1e9, 1e9, 14.88e6, 14.88e6, 14.88e6),  # a cable of known rate that can be filled
        (100_000, 600_000, None, 200_000, 400_000),  # a system that collapses: not more than four times what it can
    ],
)
def test_the_highest_load_that_makes_sense(
    capacity_pps: float, offers_pps: float, line_pps: float | None, least_pps: float, most_pps: float
) -> None:
    generator = Generator(capacity_pps, offers_pps)
    line = None if line_pps is None else MaxRate(line_pps / 2, line_pps / 2, line_pps, "the cable")
    with patch.object(overload, "max_rate", return_value=line):
        found = generator.highest_loads(Trial(load_pps=1e6, duration_s=1.0, frame=frame("64B")))
    assert least_pps <= found.search_pps <= most_pps
    assert found.offered_pps == pytest.approx(line_pps or 0.9 * offers_pps, rel=0.11), "MRR is measured there"
    assert len(generator.asked) < 12
