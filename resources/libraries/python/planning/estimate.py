"""How long tests will take, before the first one has run."""

from resources.libraries.python.model.cell import TestType
from resources.libraries.python.model.goal import SearchProfile

LATENCY_LOADS = 4
"""Latency is measured at 0, 10, 50 and 90 % of PDR."""
_SEARCH_COST = 1.6
"""Search time over the sum of the goals' duration sums. The first load of a goal costs up to a whole sum and every
further one about half of it; 0.9 on a steady simulated system, 2 on a rough one."""


def estimate_s(profile: SearchProfile, test_type: TestType, *, trial_overhead_s: float, deploy_s: float) -> float:
    """Seconds that a test takes on average; a search on an unsteady system takes up to twice as long."""
    if test_type is TestType.MRR:
        return deploy_s + profile.mrr_trials * (profile.mrr_duration_s + trial_overhead_s)
    search = _SEARCH_COST * sum(goal.duration_sum_s for goal in profile.goals)
    latency = LATENCY_LOADS * (profile.latency_duration_s + trial_overhead_s)
    return deploy_s + search + latency
