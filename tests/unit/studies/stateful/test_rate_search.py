"""The search of the establishment rate: what it says where it finds none."""

import re
from collections.abc import Callable

import pytest

from resources.libraries.python.errors import NoTraffic
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.stateful.run import ConnectionLimits, search_rate

QUICK = profile("quick")
ONE_GOAL = QUICK.model_copy(update={"goals": QUICK.goals[:1]})


def search(each_s: float, *, generator_limited: bool = False) -> Callable[[], object]:
    """A search whose trials establish no connection, and take so long."""
    now_s = 0.0

    def run(trial: Trial) -> TrialResult:
        nonlocal now_s
        now_s += each_s
        sent = round(trial.load_pps * trial.duration_s)
        flows = (FlowCount(instance=1, direction=Direction.FORWARD, sent=sent, received=0),)
        return TrialResult(
            trial=trial,
            started_at="2026-01-01T00:00:00.000+00:00",
            offered_duration_s=trial.duration_s,
            total_duration_s=each_s,
            flows=flows,
            generator_limited=generator_limited,
        )

    room = ConnectionLimits(offered_cps=10_000.0, most=1_000_000, full="fills the table")
    return lambda: search_rate(run, ONE_GOAL, frame("64B"), room, lambda: now_s, instances=1, least_cps=100.0)


def test_a_rate_below_the_lowest_is_reported_with_it() -> None:
    text = "no rate without a failed connection was found down to 100 per second"
    with pytest.raises(NoTraffic, match=f"^{re.escape(text)}$"):
        search(each_s=1.0)()


def test_a_search_that_ended_before_the_lowest_rate_names_its_limit() -> None:
    text = r"down to [\d,]+ per second; the search ended early, at its limit of 58 s$"
    with pytest.raises(NoTraffic, match=text):
        search(each_s=30.0)()


def test_a_search_that_decided_nothing_in_time_says_so() -> None:
    with pytest.raises(NoTraffic, match=r"^no rate was decided by \d trials? in \d+ s$"):
        search(each_s=100.0, generator_limited=True)()
