"""Sentences of a density test on the console."""

from resources.libraries.python.search.throughput import Progress
from resources.libraries.python.search.verdict import verdict_text
from resources.libraries.python.studies.density.model.record import DensityRecord
from resources.libraries.python.studies.shared.progress import human_rate


def bounds_in_words(progress: Progress) -> str:
    """Bounds of a search so far."""
    bounds = ", ".join(
        f"{name} {human_rate(low)} .. {human_rate(high)}" for name, (low, high) in progress.bounds.items()
    )
    return f"trial {progress.trials}, {bounds}"


def result_in_words(result: DensityRecord) -> str:
    """Numbers of a test with their verdict."""
    goals = (("NDR", result.ndr), ("PDR", result.pdr), ("SOAK", result.soak))
    found = [
        f"{name} {human_rate(goal.lower_pps)}" if goal.lower_pps is not None else f"{name} not reached"
        for name, goal in goals
        if goal is not None
    ]
    if result.plr is not None:
        found.append(f"PLR {human_rate(result.plr.mean_pps)} ± {human_rate(result.plr.stdev_pps)}")
    rates = (("MRR", result.mrr), ("ORR", result.orr))
    found += [f"{name} {human_rate(rate.mean_pps)}" for name, rate in rates if rate is not None]
    numbers = {name: result.verdict.of(name) for name, number in (*goals, *rates) if number is not None}
    verdict = verdict_text(numbers or {"": result.verdict.kinds})
    note = " (simulated)" if result.simulated else ""
    return f"{', '.join(found) or result.message or 'no result'}{note} [{verdict}]"
