"""Estimated time of tests, before the first one has run.

Calibrated on 108 tests of each profile and test type: CSC and CSP on the six simulated systems (sharp, noisy, stall,
knee, two_band, sag), the cells of {1,2,6,10} x {1,2,6} that fit. The mean over the estimate was 1.03 (NDRPDR) and 0.99
(LATENCY) with `ladder`, 0.97 and 1.06 with `quick`, 1.10 and 1.03 with `reference`. 19 of 20 single tests took 0.8 to
1.5 times their estimate, less on a steady system, more on a rough one; with `reference` up to 2 times. Three tests of
`quick` with MLRsearch and real packets on a 2-core virtual machine: NDRPDR 40 s (estimated 29), LATENCY 24 s (24), MRR
3 s (3). `rfc2544` and `soak` were calibrated on 60 searches each, ten capacities of each simulated system: 310 s (240
to 622 s by system) and 653 s (323 to 1173 s).
"""

from resources.libraries.python.model.cell import TestType
from resources.libraries.python.model.goal import Algorithm, SearchProfile
from resources.libraries.python.studies.density.planning.extras import Extras

LATENCY_LOADS = 4
"""Latency is measured at 0, 10, 50 and 90 % of PDR."""
ONE_GOAL = (Algorithm.SOAK, Algorithm.PLR)
"""They have a goal of their own, whatever a test asks for."""
_FIRST_GOAL = {
    Algorithm.LADDER: 1.5,
    Algorithm.MLRSEARCH: 1.8,
    Algorithm.RFC2544: 2.1,
    Algorithm.SOAK: 2.2,
    Algorithm.PLR: 1.0,
}
"""Search time of one goal alone over its duration sum, overheads included."""
_FURTHER_GOAL = {
    Algorithm.LADDER: 0.5,
    Algorithm.MLRSEARCH: 0.6,
    Algorithm.RFC2544: 3.1,
    Algorithm.SOAK: 0.0,
    Algorithm.PLR: 0.0,
}
"""Cost of one more goal: most of its trials served the other goal already, but in a binary search."""
_VERIFY_S = 0.2
"""The trial before a measurement: do packets arrive?"""
LEAST, MOST = 0.7, 2.0
"""A single test over its estimate, for 19 of 20 tests."""


def estimate_s(
    profile: SearchProfile,
    test_type: TestType,
    *,
    trial_overhead_s: float,
    deploy_s: float,
    extras: Extras = Extras(),  # noqa: B008 - frozen
) -> float:
    """Seconds that a test takes on average; see above for how far a single one is from it."""
    before = deploy_s + _VERIFY_S + trial_overhead_s + extras.seconds(test_type, trial_overhead_s)
    if test_type is TestType.MRR:
        return before + profile.mrr_trials * (profile.mrr_duration_s + trial_overhead_s)
    latency = LATENCY_LOADS * (profile.latency_duration_s + trial_overhead_s)
    return before + _search_s(profile, test_type) + latency


def _search_s(profile: SearchProfile, test_type: TestType) -> float:
    """A latency test searches for PDR alone, or for a soak's goal. The goal with most evidence is the first one."""
    like = profile.algorithm
    every = test_type is not TestType.LATENCY or like in ONE_GOAL
    goals = [goal for goal in profile.goals if every or goal.name == "PDR"]
    sums = sorted((goal.duration_sum_s for goal in goals), reverse=True)
    found = _FIRST_GOAL[like] * sum(sums[:1]) + _FURTHER_GOAL[like] * sum(sums[1:])
    return min(found, profile.duration_max_s)
