"""Latency under load: one trial each at 0, 10, 50 and 90 % of PDR, or of the soak rate."""

from collections.abc import Callable

from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.model.result import LatencyAtLoad
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.search.profiles import PDR

LOADS_PERCENT = (90, 50, 10, 0)
"""CSIT's order: the heaviest load first, right after the search."""


def measure_latency(
    measure: Callable[[Trial], TrialResult],
    profile: SearchProfile,
    frame: Frame,
    full_pps: float | None,
    number: str = PDR,
) -> tuple[tuple[LatencyAtLoad, ...], tuple[TrialResult, ...]]:
    """Run the latency trials.

    Args:
        measure: Runs one trial.
        profile: Duration of a trial and rate of probe frames.
        frame: Of all trials.
        full_pps: The rate that loads are shares of, aggregate; None where it was not reached, which leaves the trial
            without load.
        number: Name of that rate, for labels: `PDR` or `SOAK`.

    Returns:
        Latency by load, light loads first, and the trials in the order in which they ran.
    """
    percents = LOADS_PERCENT if full_pps else (0,)
    results = tuple(
        measure(
            Trial(
                load_pps=(full_pps or 0.0) * percent / 100,
                duration_s=profile.latency_duration_s,
                frame=frame,
                probe_pps=profile.latency_probe_pps,
                purpose="latency",
            )
        )
        for percent in percents
    )
    rows = (
        LatencyAtLoad(label=f"{number}{percent}", load_pps=result.trial.load_pps, flows=result.latency)
        for percent, result in zip(percents, results, strict=True)
    )
    return tuple(sorted(rows, key=lambda row: row.load_pps)), results
