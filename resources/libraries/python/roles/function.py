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

    def stop(self) -> None:
        """Remove everything that `start` made. Safe to call after a failure."""
