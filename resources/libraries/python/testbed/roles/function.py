"""The network functions of a cell."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from resources.libraries.python.model.counters import Processed, Throttling
from resources.libraries.python.testbed.roles.part import ForwardingPart


class NetworkFunctions(ForwardingPart, Protocol):
    """All NFs of one kind in a plan. They start and stop together: one by one would cost minutes at 100 NFs."""


@runtime_checkable
class Processing(Protocol):
    """Network functions that count packets themselves: those that a monitor inspects pass no interface."""

    def processed(self) -> Mapping[str, Processed]:
        """Return packets by name of the NF, since its start; without NFs that do not count.

        Cheap: called around every trial.

        Raises:
            CsitError: An NF has exited, or its counters cannot be read.
        """


@runtime_checkable
class Confined(Protocol):
    """Network functions of which some have a limit of CPU time (`model.function.Limits`)."""

    def throttling(self) -> Mapping[str, Throttling]:
        """Return throttling by name of the NF, since its start; without NFs that have no such limit."""


class ProcessingFunctions(NetworkFunctions, Processing, Protocol):
    """Network functions of which some report what they have processed."""
