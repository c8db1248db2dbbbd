"""Parts of a deployment: what roles that are deployed have in common."""

from collections.abc import Mapping
from typing import Protocol

from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.testbed.roles.patience import patience


class DeploymentPart(Protocol):
    """A part of a deployment."""

    @patience(7200.0)
    def start(self) -> None:
        """Bring it up and configure it, data threads on their planned cores."""

    @patience(600.0)
    def stop(self) -> None:
        """Remove everything that `start` made. Safe to call after a failed start."""


class ObservablePart(DeploymentPart, Protocol):
    """A part that reports on itself."""

    def facts(self) -> Mapping[str, str]:
        """Return versions, and modes of operation on this machine, for the record. After `start`."""

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with it now, a sentence each; empty when all is well. Cheap: called after every test."""


class ForwardingPart(ObservablePart, Protocol):
    """A part of the system under test: it has interfaces, and data threads that serve their receive queues."""

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """Return logical CPUs on which the data thread of each receive queue may run, read back from the system.

        By the queue's name in the plan, which is that of the interface where it has one.
        """

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Return counters by interface name."""
