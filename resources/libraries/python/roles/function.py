"""The network functions of a cell."""

from collections.abc import Mapping
from typing import Protocol

from resources.libraries.python.model.counters import InterfaceCounters


class NetworkFunctions(Protocol):
    """All NFs of one kind in a plan. They come and go together: one by one would cost minutes at 100 NFs."""

    def start(self) -> None:
        """Bring all of them up and configured, data threads on their planned cores."""

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """Logical CPUs on which each interface's data thread may really run, read back from the system."""

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by interface name."""

    def facts(self) -> Mapping[str, str]:
        """What the NFs turned out to be, for the record: versions, how it works on this machine. After `start`."""

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the NFs now, a sentence each; empty when all is well. Cheap: asked after every test."""

    def stop(self) -> None:
        """Remove everything that `start` made. Safe to call after a failure."""
