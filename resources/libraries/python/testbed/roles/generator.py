"""The traffic generator."""

from collections.abc import Mapping
from typing import Protocol

from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.testbed.roles.part import ObservablePart
from resources.libraries.python.testbed.roles.patience import patience


class TrafficGenerator(ObservablePart, Protocol):
    """Offers load to every instance and direction of a plan and counts what comes back."""

    @patience(120.0, lambda trial: trial.duration_s)
    def run(self, trial: Trial) -> TrialResult:
        """Send, stop, let packets settle, then read the counters."""

    @patience(120.0, lambda trial: 10 * trial.duration_s)
    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Return the highest offered load, measured or known from the links, and a load to begin a search at."""


class MeteredGenerator(TrafficGenerator, Protocol):
    """A generator with counters of its own ports."""

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Return counters by interface name; empty where it has no interfaces."""
