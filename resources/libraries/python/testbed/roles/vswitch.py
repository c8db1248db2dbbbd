"""The virtual switch."""

from collections.abc import Mapping
from typing import Protocol

from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.testbed.roles.patience import patience


class VSwitch(Protocol):
    """Joins the ports of a plan to L2 segments."""

    @patience(7200.0)
    def start(self) -> None:
        """Bring the switch up with all its segments, data threads on their planned cores."""

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """Logical CPUs on which the data thread of each receive queue may really run, read back from the system.

        By the queue's name in the plan, which is that of the port where it has one.
        """

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by interface name."""

    def facts(self) -> Mapping[str, str]:
        """What the switch turned out to be, for the record: versions, how it works on this machine. After `start`."""

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the switch now, a sentence each; empty when all is well. Cheap: asked after every test."""

    @patience(600.0)
    def stop(self) -> None:
        """Remove everything that `start` made. Safe to call after a failure."""
