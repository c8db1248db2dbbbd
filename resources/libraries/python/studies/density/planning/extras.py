"""Further measurements of NDRPDR tests that variables ask for, and the expected duration of tests.

Estimates are calibrated on 108 tests of each profile and test type: CSC and CSP on the six simulated systems (sharp,
noisy, stall, knee, two_band, sag), the cells of {1,2,6,10} x {1,2,6} that fit. The mean over the estimate was 1.03
(NDRPDR) and 0.99 (LATENCY) with `ladder`, 0.97 and 1.06 with `quick`, 1.10 and 1.03 with `reference`. 19 of 20 single
tests took 0.8 to 1.5 times their estimate, less on a steady system, more on a rough one; with `reference` up to 2
times. Three tests of `quick` with MLRsearch and real packets on a 2-core virtual machine: NDRPDR 40 s (estimated 29),
LATENCY 24 s (24), MRR 3 s (3). There, where data threads share CPUs, NDRPDR tests of `quick` took 45 s on average (47).
`rfc2544` was calibrated on 60 searches, ten capacities of each simulated system: 310 s (240 to 622 s by system).
"""

from dataclasses import dataclass

from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.goal import Algorithm, SearchProfile
from resources.libraries.python.model.request.variables import AT_RATE, BACK_TO_BACK, ENERGY, LOSSES, STACKS, Lookup
from resources.libraries.python.model.testbed.topology import Topology, World

_LOSS_TRIALS = 3
"""At NDR, at PDR and in overload."""
_ENERGY_TRIALS = 5
"""Before the deployment, without traffic, and at 10, 50 and 90 % of PDR."""
READ_STACKS_S = 1.5
"""Starting perf, and reading its samples, on a virtual machine with two cores."""
_BURST_TRIALS = 14
"""Of one search for the longest burst, which begins at the result of the one before: one trial passes, a doubled burst
fails twice, and 1 % is seven halvings away, half of them failing twice."""


@dataclass(frozen=True, slots=True)
class Extras:
    """Measurements of NDRPDR tests besides search and latency, as variables ask for them; 0 for none."""

    loss_trial_s: float = 0.0
    """Length of a trial that counts losses, seconds."""
    bursts: int = 0
    """Repetitions of the search for the longest burst."""
    energy_trial_s: float = 0.0
    """Length of a trial in which power is measured, seconds."""
    stacks_trial_s: float = 0.0
    """Length of the trial in which call stacks are sampled, seconds."""
    rate_pps: float = 0.0
    """Rate of each instance at which a latency test measures, in the place of a search."""

    def seconds(self, test_type: TestType, trial_overhead_s: float) -> float:
        """Time that they add to a test."""
        if test_type is not TestType.NDRPDR:
            return 0.0
        losses = _LOSS_TRIALS * (self.loss_trial_s + trial_overhead_s) if self.loss_trial_s else 0.0
        energy = _ENERGY_TRIALS * (self.energy_trial_s + trial_overhead_s) if self.energy_trial_s else 0.0
        stacks = self.stacks_trial_s + trial_overhead_s + READ_STACKS_S if self.stacks_trial_s else 0.0
        return losses + energy + stacks + self.bursts * _BURST_TRIALS * trial_overhead_s


def chosen_extras(lookup: Lookup) -> Extras:
    """Further measurements.

    Raises:
        ConfigError: One of them is out of its bounds.
    """
    return Extras(
        loss_trial_s=LOSSES.of(lookup) or 0.0,
        bursts=BACK_TO_BACK.of(lookup) or 0,
        energy_trial_s=ENERGY.of(lookup) or 0.0,
        stacks_trial_s=STACKS.of(lookup) or 0.0,
        rate_pps=AT_RATE.of(lookup) or 0.0,
    )


LATENCY_LOADS = 4
"""Latency is measured at 0, 10, 50 and 90 % of PDR."""
_FIRST_GOAL = {
    Algorithm.LADDER: 1.5,
    Algorithm.MLRSEARCH: 1.8,
    Algorithm.RFC2544: 2.1,
    Algorithm.PLR: 1.0,
}
"""Search time of one goal alone over its duration sum, overheads included."""
_FURTHER_GOAL = {
    Algorithm.LADDER: 0.5,
    Algorithm.MLRSEARCH: 0.6,
    Algorithm.RFC2544: 3.1,
    Algorithm.PLR: 0.0,
}
"""Cost of one more goal: most of its trials served the other goal already, but in a binary search."""
_SHARED_GOAL = 3.2
"""The same where data threads share CPUs: the loads at which nothing is lost are far from those at which little is."""
_VERIFY_S = 0.2
"""The trial before a measurement: do packets arrive?"""
MIN_FACTOR, MAX_FACTOR = 0.7, 2.0
"""A single test over its estimate, for 19 of 20 tests."""


def estimate_s(
    profile: SearchProfile,
    test_type: TestType,
    *,
    trial_overhead_s: float,
    deploy_s: float,
    extras: Extras = Extras(),
    is_shared: bool = False,
) -> float:
    """Seconds that a test takes on average; see above for how far a single one is from it.

    `deploy_s`: bringing the cell up and removing it.
    `is_shared`: whether data threads share CPUs with others, as on a small machine.
    """
    before = deploy_s + _VERIFY_S + trial_overhead_s + extras.seconds(test_type, trial_overhead_s)
    if test_type is TestType.MRR:
        return before + profile.mrr_trials * (profile.mrr_duration_s + trial_overhead_s)
    if extras.rate_pps and test_type is TestType.LATENCY:
        decided_s = max(goal.duration_sum_s for goal in profile.goals)
        return before + decided_s + profile.latency_duration_s + trial_overhead_s
    latency = LATENCY_LOADS * (profile.latency_duration_s + trial_overhead_s)
    return before + _search_s(profile, test_type, is_shared=is_shared) + latency


def _search_s(profile: SearchProfile, test_type: TestType, *, is_shared: bool) -> float:
    """A latency test searches for PDR alone, or for a soak's goal. The goal with most evidence is the first one."""
    like = profile.algorithm
    every = test_type is not TestType.LATENCY or like is Algorithm.PLR
    goals = [goal for goal in profile.goals if every or goal.name == "PDR"]
    sums = sorted((goal.duration_sum_s for goal in goals), reverse=True)
    further = max(_FURTHER_GOAL[like], _SHARED_GOAL) if is_shared else _FURTHER_GOAL[like]
    found = _FIRST_GOAL[like] * sum(sums[:1]) + further * sum(sums[1:])
    return min(found, profile.duration_max_s)


_OVERHEAD_S = {World.LOCAL: 0.05, World.SIM: 0.5, World.LAB: 0.15}
"""Of a trial besides sending: measured locally; the default of the simulation; what is promised for a lab."""
_DEPLOY_S = {World.LOCAL: 1.0, World.SIM: 0.0, World.LAB: 30.0}
"""Bringing a cell of containers up and removing it."""
_BOOT_S = 4.0
"""A guest's boot in software emulation; 3.5 s measured. On few cores guests boot one after another."""


def test_s(topology: Topology, cell: Cell, profile: SearchProfile, test_type: TestType, extras: Extras) -> float:
    """Estimate the seconds of one test; of a virtual clock in a simulation."""
    overhead_s = _OVERHEAD_S[topology.world]
    if topology.simulation is not None:
        overhead_s = float(topology.simulation.get("overhead_s", overhead_s))
    boots = topology.world is World.LOCAL and cell.service_type is ServiceType.VSC
    return estimate_s(
        profile,
        test_type,
        trial_overhead_s=overhead_s,
        deploy_s=_DEPLOY_S[topology.world] + (_BOOT_S * cell.nf_count if boots else 0.0),
        extras=extras,
        is_shared=topology.world is World.LOCAL,
    )
