"""The traffic generator."""

from collections.abc import Mapping
from typing import Protocol

from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.testbed.roles.patience import patience


class TrafficGenerator(Protocol):
    """Offers load to every instance and direction of a plan and counts what comes back."""

    @patience(7200.0)
    def start(self) -> None:
        """Take the ports into use. Raises when they cannot be had."""

    @patience(120.0, lambda trial: trial.duration_s)
    def run(self, trial: Trial) -> TrialResult:
        """Send, stop, let packets settle, then read the counters."""

    @patience(120.0, lambda trial: 10 * trial.duration_s)
    def highest_loads(self, trial: Trial) -> HighestLoads:
        """What can be offered at most, measured or known from the links, and where a search should begin."""

    def facts(self) -> Mapping[str, str]:
        """What it turned out to be, for the record: versions, how it works on this machine. After `start`."""

    def problems(self) -> tuple[str, ...]:
        """What is wrong with it now, a sentence each; empty when all is well. Cheap: asked after every test."""

    @patience(600.0)
    def stop(self) -> None:
        """Give the ports back. Safe to call after a failure."""


class MeteredGenerator(TrafficGenerator, Protocol):
    """A generator that also reads the counters of its own ports."""

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by interface name; empty where it has no interfaces."""
