"""Cost of a study of stateful density: cells, trials, time."""

from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.studies.stateful.model import StatefulSpec

DEPLOY_S = 1.0
"""Assumed for a deployment and its removal."""
SEARCH_TRIALS = 40
"""Assumed for a search of the rate: that of NDR has as many."""
SEARCH_S = 16.0
"""Assumed for them."""
CAPACITY_TRIALS = 3
"""Assumed where the limit of the table is known: both bounds, one of them twice."""
FILL_S = 3.0
"""Assumed for filling a table to its limit."""
AROUND_S = 0.1
"""Assumed around the traffic of a trial."""


def cost(spec: StatefulSpec, cells: int | None = None) -> StudyCost:
    """Count cells, which are the steps, trials and seconds.

    `cells`: cells that fit; None for all.

    Raises:
        ConfigError: More trials, or more time, than `model.bounds` allows.
    """
    count = len(spec.cells) if cells is None else cells
    filled = CAPACITY_TRIALS if spec.capacity else 0
    each_s = DEPLOY_S + SEARCH_S + (FILL_S + AROUND_S) * (filled + spec.tear_downs)
    trials = count * (SEARCH_TRIALS + spec.tear_downs + filled)
    return StudyCost(spec.name, count, trials, "trials", count * each_s, {"cells": count, "trials": trials})
