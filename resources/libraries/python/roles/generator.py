"""The traffic generator."""

from typing import Protocol

from resources.libraries.python.model.trial import Trial, TrialResult


class TrafficGenerator(Protocol):
    """Offers load to every instance and direction of a plan and counts what comes back."""

    def start(self) -> None:
        """Take the ports into use. Raises when they cannot be had."""

    def run(self, trial: Trial) -> TrialResult:
        """Send, stop, let packets settle, then read the counters."""

    def maximum_pps(self, trial: Trial) -> float:
        """Highest aggregate load that can be offered, measured or known from the links (aggregate pps)."""

    def stop(self) -> None:
        """Give the ports back. Safe to call after a failure."""
