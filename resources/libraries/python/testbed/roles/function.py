"""The network functions of a cell."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from resources.libraries.python.model.counters import InterfaceCounters, Processed, Throttling
from resources.libraries.python.testbed.roles.patience import patience


class NetworkFunctions(Protocol):
    """All NFs of one kind in a plan. They come and go together: one by one would cost minutes at 100 NFs."""

    @patience(7200.0)
    def start(self) -> None:
        """Bring all of them up and configured, data threads on their planned cores."""

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """Logical CPUs on which the data thread of each receive queue may really run, read back from the system.

        By the queue's name in the plan, which is that of the interface where it has one.
        """

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by interface name."""

    def facts(self) -> Mapping[str, str]:
        """What the NFs turned out to be, for the record: versions, how it works on this machine. After `start`."""

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the NFs now, a sentence each; empty when all is well. Cheap: asked after every test."""

    @patience(600.0)
    def stop(self) -> None:
        """Remove everything that `start` made. Safe to call after a failure."""


@runtime_checkable
class Processing(Protocol):
    """Network functions that can tell what they have done: packets that a monitor looked at pass no interface."""

    def processed(self) -> Mapping[str, Processed]:
        """By name of the NF, since it was made; without those that cannot tell. Cheap: asked around every trial.

        Raises:
            CsitError: An NF has ended, or its counters cannot be read.
        """


@runtime_checkable
class Confined(Protocol):
    """Network functions of which some have a limit of CPU time (`model.function.Limits`)."""

    def throttling(self) -> Mapping[str, Throttling]:
        """By name of the NF, since it was made; without those that have no such limit."""


class ProcessingFunctions(NetworkFunctions, Processing, Protocol):
    """Network functions of which some report what they have processed."""
