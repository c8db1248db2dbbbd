"""Delay that interruptions of the CPUs of a path cost its packets: the workload of an M/G/1 queue for each CPU.

`host_noise` has the model.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from resources.libraries.python.model.measurements.noise import CpuNoise

_FULLEST = 0.95
"""Highest utilization: above it queues are in use without interruptions, too."""
_GRID, _STEPS_OF_LONGEST = 600, 50
"""Number of steps of a distribution of waiting times, and of those in the longest interruption."""


def quantile_ns(stops: Sequence[CpuNoise], quantile: float, utilization: float) -> float:
    """Delay at a quantile.

    `stops`: Noise floor of the CPU of each receive queue on the path; there is one at least, each with
      interruptions.
    `quantile`: In (0, 1), such as 0.999.
    `utilization`: Of the data threads, in [0, 1).
    """
    step_s = max(noise.longest_ns for noise in stops) * 1e-9 / _STEPS_OF_LONGEST
    free = 1 - min(utilization, _FULLEST)
    shares: npt.NDArray[np.float64] = np.ones(1)
    for noise in stops:
        shares = np.convolve(shares, _waiting(noise, free, step_s))[:_GRID]
    above = 1 - np.cumsum(shares)
    first = int(np.argmax(above <= 1 - quantile)) if above[-1] <= 1 - quantile else len(shares) - 1
    return first * step_s * 1e9


def _waiting(noise: CpuNoise, free: float, step_s: float) -> npt.NDArray[np.float64]:
    """Distribution of the waiting time of a queue's packets: shares of the packets in steps of `step_s`.

    Work of an interruption's duration comes at random times, and goes at the rate at which the data thread catches up:
    the workload of an M/G/1 queue (Pollaczek-Khinchine), a compound geometric sum of residual durations, computed by
    Panjer's recursion.
    """
    gaps = noise.gaps()
    total_s = sum(gap_s * number for gap_s, number in gaps)
    load = min(total_s / (free * noise.observed_s), _FULLEST)
    edges = np.arange(_GRID + 1) * step_s
    longer = sum((number * np.clip(gap_s - edges, 0.0, None) for gap_s, number in gaps), np.zeros(_GRID + 1)) / total_s
    residual = np.concatenate([[0.0], -np.diff(longer)])[:_GRID]  # rounded up to the end of its step
    shares: npt.NDArray[np.float64] = np.zeros(_GRID)
    shares[0] = 1 - load
    for index in range(1, _GRID):
        shares[index] = load * np.dot(residual[1 : index + 1], shares[index - 1 :: -1])
    return shares
