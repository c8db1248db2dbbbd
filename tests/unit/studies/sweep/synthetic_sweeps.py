"""Sweeps of services whose functions are known: those that Troia et al. print, and plain ones."""

from collections.abc import Mapping

import numpy as np

from csit_utils.bench.studies.profiles import (
    ADVA,
    BONSAI,
    Function,
    PublishedRouter,
    printed_function,
    printed_sweep,
    sweep_of,
)
from resources.libraries.python.studies.sweep.model.profile import ProfileMetric

__all__ = [
    "ADVA",
    "BONSAI",
    "PublishedRouter",
    "growing_to",
    "plain_router",
    "printed_function",
    "printed_sweep",
    "sweep_of",
]


def plain_router(capacity: float, vcpus: int = 1, delay_ms: float = 0.2) -> Mapping[ProfileMetric, Function]:
    """Lets everything through up to its capacity and that much above it; a queue fills there."""
    return {
        ProfileMetric.THROUGHPUT: lambda r: np.minimum(r, capacity),
        ProfileMetric.LOSS: lambda r: np.where(r > capacity, 100 * (1 - capacity / r), 0.0),
        ProfileMetric.DELAY: lambda r: np.where(r < capacity, delay_ms * vcpus, 10 * delay_ms + r),
    }


def growing_to(full: float, at: float) -> Function:
    """CPUs used in proportion to the rate, up to `full` at the rate `at`."""
    return lambda r: np.minimum(full, full * r / at)
