"""The drivers that bring one plan to life."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.cpu import CpuLayout
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Asked
from resources.libraries.python.roles.function import NetworkFunctions
from resources.libraries.python.roles.generator import TrafficGenerator
from resources.libraries.python.roles.sampler import Sampler
from resources.libraries.python.roles.vswitch import VSwitch


class Part(Protocol):
    """Something that is started and stopped. Stopping is safe after a failed start."""

    def start(self) -> None:
        """Bring it up."""

    def stop(self) -> None:
        """Remove everything that `start` made."""


@dataclass(frozen=True, slots=True)
class Parts:
    """All drivers of one cell, not yet started."""

    cables: tuple[Part, ...]
    """What the others stand on: namespaces and links; started first, stopped last."""
    switch: VSwitch
    functions: NetworkFunctions
    generator: TrafficGenerator
    clock: Callable[[], float]
    """Seconds; virtual in a simulated world."""
    sampler: Sampler | None = None
    """Use of CPUs, where the world can tell."""
    generator_counters: Callable[[], Mapping[str, InterfaceCounters]] = dict
    """Counters of the generator's own interfaces, where there are any: what the vSwitch did not take in shows there."""

    def in_order(self) -> tuple[Part, ...]:
        """In the order in which they are started."""
        return (*self.cables, self.switch, self.functions, self.generator)


class World(Protocol):
    """Where cells are deployed; open for a whole run."""

    layout: CpuLayout
    """The DUT's logical CPUs."""
    drivers: Mapping[str, str]
    """Role to driver name."""
    simulation: Mapping[str, Any] | None
    """Parameters of a simulated world."""

    def problems(self) -> tuple[str, ...]:
        """What the world lacks, one sentence each with how to mend it. Touches nothing."""

    def wishes(self) -> tuple[str, ...]:
        """What the world lacks for some cells only, whose tests are then skipped; as `problems`."""

    def open(self) -> tuple[str, ...]:
        """Check that the world can be used, reserve it and clean it; say what was cleaned up.

        Raises:
            Unsupported: The machine lacks something.
            CsitError: Somebody else uses it.
        """

    def parts(self, plan: Plan, asked: Asked) -> Parts:
        """Drivers for a cell."""

    def leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        """What is there of this run although no cell is deployed; empty when all is clean.

        Args:
            plan: The last cell, if there was one.
        """

    def clean(self) -> tuple[str, ...]:
        """Remove by force what is there of this run; say what was removed.

        Raises:
            CsitError: Something could not be removed.
        """

    def close(self) -> None:
        """Give the world back."""
