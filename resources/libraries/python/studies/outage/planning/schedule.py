"""Cost of a study of outages, and the order of its trials."""

from dataclasses import dataclass
from random import Random

from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.studies.outage.model.spec import OutageSpec, Strike

AROUND_S = 1.0
"""Assumed around the traffic of a trial: deploying, preparing, removing."""
SEARCH_S = 15.0
"""Assumed for the search of NDR, its deployment included."""


@dataclass(frozen=True, slots=True)
class OutageTurn:
    """One trial to be made."""

    number: int
    """Its place in the order, from 0."""
    repetition: int
    strike: Strike | None
    """None for a trial without an event."""


@dataclass(frozen=True, slots=True)
class OutageCost(StudyCost):
    """Cost of a study of outages; each step is a deployment with one trial."""

    def counts(self) -> dict[str, float]:
        """See StudyCost."""
        return {"trials": self.runs, "deployments": self.steps, "seconds": self.seconds}


def cost(spec: OutageSpec) -> OutageCost:
    """Count trials and seconds.

    Raises:
        ConfigError: More trials, or more time, than `model.bounds` allows.
    """
    trials = spec.repetitions * len(spec.columns)
    search_s = SEARCH_S if spec.rate_pps is None else 0.0
    return OutageCost(spec.name, trials, trials, "trials", search_s + trials * (spec.duration_s + AROUND_S))


def schedule(spec: OutageSpec) -> tuple[OutageTurn, ...]:
    """All trials. Each repetition has every event once, in an order of its own that depends on the seed only."""
    turns: list[OutageTurn] = []
    for repetition in range(spec.repetitions):
        row: list[Strike | None] = [*([None] if spec.control else []), *spec.events]
        Random(f"{spec.seed}/{repetition}").shuffle(row)  # noqa: S311 (reproducible, not secret)
        turns += [OutageTurn(number, repetition, strike) for number, strike in enumerate(row, len(turns))]
    return tuple(turns)
