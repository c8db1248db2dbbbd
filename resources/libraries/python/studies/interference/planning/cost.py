"""What a study of interference costs before it begins: deployments, measurements, time."""

from dataclasses import dataclass
from math import comb

from resources.libraries.python.model.bounds import refuse_endless
from resources.libraries.python.studies.interference.model.record import InterferenceSpec

AROUND_S = 0.9
"""Assumed around the traffic of a measurement: deploying, a look at the processes, removing. Measured on local.yaml."""
ALONE_S = 3.0
"""Assumed for finding what a network function carries alone, deploying it and removing it included."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a whole study."""

    companies: int
    """Targets with each company that they meet, alone included."""
    measurements: int
    """Of all companies in all repetitions, with and without a guarantee."""
    deployments: int
    """One for each measurement, and one for each network function and frame size to find the load; more where one has a
    stand-in, or where what the network carries has to be found."""
    seconds: float


def cost(spec: InterferenceSpec, around_s: float = AROUND_S) -> Cost:
    """Count without making any; `schedule` has them one by one.

    Args:
        spec: What is asked.
        around_s: Seconds around the traffic of a measurement.

    Raises:
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """
    names = len(spec.contenders)
    # Multisets of up to together - 1 of n: a company has its neighbours in any order, and may have two of a kind.
    companies = names * comb(names + spec.together - 1, names)
    # A network function alone shares nothing: it is measured without a guarantee only.
    rounds = companies + (companies - names if spec.guarantee else 0)
    measurements = rounds * spec.repetitions * len(spec.points())
    searches = names * len(spec.frames or (spec.frame,))
    seconds = searches * ALONE_S + measurements * each_s(spec, around_s)
    refuse_endless(spec.name, measurements, "measurements", seconds)
    return Cost(companies, measurements, searches + measurements, seconds)


def each_s(spec: InterferenceSpec, around_s: float = AROUND_S) -> float:
    """Seconds of one measurement."""
    return spec.duration_s + around_s
