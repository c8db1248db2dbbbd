"""Cost of a study of interference: deployments, measurements, time."""

from dataclasses import dataclass
from math import comb

from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.studies.interference.model.record import InterferenceSpec

AROUND_S = 1.6
"""Assumed around the traffic of a measurement: deploying, a look at the processes, removing. Measured on local.yaml."""
ALONE_S = 3.0
"""Assumed for finding what a network function carries alone, deploying it and removing it included."""


@dataclass(frozen=True, slots=True)
class InterferenceCost(StudyCost):
    """Cost of a study of interference; its steps are measurements, with and without a guarantee in all repetitions."""

    sets: int
    """Targets with each set of co-located network functions, alone included."""
    deployments: int
    """One for each measurement, and one for each network function and frame size to find the load; more where one has a
    stand-in, or where the capacity of the network has to be found."""

    def counts(self) -> dict[str, float]:
        """See StudyCost."""
        return {
            "combinations": self.sets,
            "measurements": self.runs,
            "deployments": self.deployments,
            "seconds": self.seconds,
        }


def cost(spec: InterferenceSpec, around_s: float = AROUND_S) -> InterferenceCost:
    """Count without making any; `schedule` has them one by one.

    Args:
        spec: What is asked.
        around_s: Seconds around the traffic of a measurement.

    Raises:
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """
    names = len(spec.contenders)
    # Multisets of up to together - 1 of n: neighbours have no order, and two may be of a kind.
    sets = names * comb(names + spec.together - 1, names)
    # A network function alone shares nothing: it is measured without a guarantee only.
    rounds = sets + (sets - names if spec.guarantee else 0)
    measurements = rounds * spec.repetitions * len(spec.points())
    searches = names * len(spec.frames or (spec.frame,))
    seconds = searches * ALONE_S + measurements * each_s(spec, around_s)
    return InterferenceCost(
        name=spec.name,
        steps=measurements,
        runs=measurements,
        unit="measurements",
        seconds=seconds,
        sets=sets,
        deployments=searches + measurements,
    )


def each_s(spec: InterferenceSpec, around_s: float = AROUND_S) -> float:
    """Seconds of one measurement."""
    return spec.duration_s + around_s
