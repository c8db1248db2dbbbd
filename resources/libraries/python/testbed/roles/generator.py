"""The traffic generator."""

from collections.abc import Mapping
from typing import Protocol

from resources.libraries.python.model.trial import HighestLoads, Trial, TrialResult


class TrafficGenerator(Protocol):
    """Offers load to every instance and direction of a plan and counts what comes back."""

    def start(self) -> None:
        """Take the ports into use. Raises when they cannot be had."""

    def run(self, trial: Trial) -> TrialResult:
        """Send, stop, let packets settle, then read the counters."""

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """What can be offered at most, measured or known from the links, and where a search should begin."""

    def facts(self) -> Mapping[str, str]:
        """What it turned out to be, for the record: versions, how it works on this machine. After `start`."""

    def problems(self) -> tuple[str, ...]:
        """What is wrong with it now, a sentence each; empty when all is well. Cheap: asked after every test."""

    def stop(self) -> None:
        """Give the ports back. Safe to call after a failure."""
