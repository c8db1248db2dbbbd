"""`./csit bench`: what it runs, and figures of benchmarks without a machine."""

from math import exp

import numpy as np
import pytest

from tests.benchmarks.watching import BLOCKS, costs, orders


def test_costs_are_found_in_spite_of_a_drift_and_of_a_disturbed_round() -> None:
    taken = {"nothing": 0.0, "nothing again": 0.0, "sampler": 0.04, "tracer": 0.12, "both": 0.16, "stacks": 0.08}
    noise = np.random.default_rng(1)
    rounds = [
        {
            name: 3e5 * exp(-taken[name] - 0.001 * (8 * number + place) + noise.normal(0, 1e-3))
            for place, name in enumerate(order)
        }
        for number, order in enumerate(orders(tuple(BLOCKS), 12))
    ]
    rounds[3]["tracer"] *= 0.5
    for name, found in costs(rounds).items():
        assert found.middle == pytest.approx(taken[name] / 20, abs=2e-4)
        assert found.interval and found.interval[0] <= found.middle <= found.interval[1]
