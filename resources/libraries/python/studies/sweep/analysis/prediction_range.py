"""Up to which load a prediction may be trusted: judged by the chain that was measured, not by the means of all loads.

A mean over all loads hides that a prediction is good below saturation and poor above it, or the other way round.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from resources.libraries.python.studies.sweep.model.profile import PredictedPoint, Prediction, ProfileMetric

WITHIN: Mapping[ProfileMetric, float] = {
    ProfileMetric.THROUGHPUT: 0.1,
    ProfileMetric.DELAY: 0.25,
    ProfileMetric.LOSS: 5.0,
}
"""Accepted errors: shares of the measured value, for loss percentage points."""


@dataclass(frozen=True)
class Trust:
    """Of one metric."""

    metric: ProfileMetric
    rate: float | None
    """Gbit/s: the highest measured rate up to which all predictions are right; None where the first is wrong."""
    everywhere: bool
    """No prediction is wrong."""


def trust(prediction: Prediction) -> tuple[Trust, ...]:
    """Up to where each metric that was predicted and measured is right."""
    found = []
    for metric in ProfileMetric:
        known = sorted(
            (point for point in prediction.points if metric in point.predicted and metric in point.measured),
            key=lambda point: point.rate,
        )
        right = next((place for place, point in enumerate(known) if not _is_right(point, metric)), len(known))
        if known:
            rate = known[right - 1].rate if right else None
            found.append(Trust(metric, rate, everywhere=right == len(known)))
    return tuple(found)


def _is_right(point: PredictedPoint, metric: ProfileMetric) -> bool:
    off, measured = abs(point.predicted[metric] - point.measured[metric]), point.measured[metric]
    return off <= WITHIN[metric] * (1.0 if metric is ProfileMetric.LOSS else measured)
