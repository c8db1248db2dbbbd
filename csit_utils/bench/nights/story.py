"""What happens in a made-up history: which nights change which cells of which testbed, and how. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from resources.libraries.python.model.cell import Cell, ServiceType

TESTBEDS = ("sim-a", "sim-b", "sim-c")
_NOISE = {"sim-a": 0.02, "sim-b": 0.02, "sim-c": 0.03}
"""Standard deviation of the capacity from trial to trial, relative."""


class EventKind(StrEnum):
    """What an event does to the tests that it meets."""

    STEP = "step"
    """The capacity is another one from the first night to the last of the history."""
    OUTLIER = "outlier"
    """The capacity is another one for a night."""
    FRESH = "fresh"
    """A step in the last night: nobody can tell it from an outlier yet."""
    TWO_BANDS = "two bands"
    """The capacity is another one in some nights, at random."""
    FAILURE = "failure"
    """The last NF of the first instance forwards nothing."""
    QUARANTINE = "quarantine"
    """The system under test breaks in every attempt."""
    MISSING = "missing"
    """The testbed was not measured."""


@dataclass(frozen=True)
class PlantedEvent:
    """One planted event."""

    kind: EventKind
    testbed: str
    first: int
    """Night, from 0."""
    last: int
    service_type: ServiceType | None = None
    """None: all of them."""
    chains: int | None = None
    nodes: int | None = None
    factor: float = 1.0
    """On the capacity."""
    share: float = 1.0
    """Of the nights that it meets."""

    def meets(self, testbed: str, night: int, cell: Cell) -> bool:
        """Whether a test is changed by it, but for chance."""
        return (
            testbed == self.testbed
            and self.first <= night <= self.last
            and self.service_type in (None, cell.service_type)
            and self.chains in (None, cell.nf_chains)
            and self.nodes in (None, cell.nf_nodes)
        )


@dataclass(frozen=True)
class Condition:
    """How the simulated system is for one test."""

    capacity_scale: float = 1.0
    forwards: bool = True
    breaks: bool = False


@dataclass(frozen=True)
class Story:
    """A whole history."""

    nights: int
    testbeds: tuple[str, ...]
    events: tuple[PlantedEvent, ...]
    seed: int = 1

    def missing(self, testbed: str, night: int) -> bool:
        """Whether nothing is measured."""
        return any(
            event.kind is EventKind.MISSING and event.testbed == testbed and event.first <= night <= event.last
            for event in self.events
        )

    def noise(self, testbed: str) -> float:
        """Of a testbed, relative."""
        return _NOISE.get(testbed, _NOISE["sim-a"])

    def condition(self, testbed: str, night: int, cell: Cell) -> Condition:
        """Of one test; the same whenever it is asked for."""
        scale, forwards, breaks = 1.0, True, False
        for number, event in enumerate(self.events):
            if not event.meets(testbed, night, cell):
                continue
            chance = Random(f"{self.seed}/{number}/{night}/{cell.model_dump_json()}").random()  # noqa: S311 - no secret
            if chance < event.share:
                scale *= event.factor
                forwards &= event.kind is not EventKind.FAILURE
                breaks |= event.kind is EventKind.QUARANTINE
        return Condition(scale, forwards, breaks)

    def versions(self, testbed: str, night: int) -> dict[str, str]:
        """Versions that the simulated testbed tells: another one from the night of each step of several cells."""
        steps = sum(
            event.kind is EventKind.STEP and event.testbed == testbed and event.first <= night for event in self.events
        )
        return {"simulated vSwitch": f"1.{steps}"}


def story(nights: int, testbeds: int = len(TESTBEDS), seed: int = 1) -> Story:
    """A history with every kind of event; each is planted at a share of the nights, so that any length has them.

    Args:
        nights: At least 10, so that there are enough of them before and after each step.
        testbeds: 1 to 3.
        seed: Of all that is left to chance.
    """
    chosen = TESTBEDS[:testbeds]
    return Story(nights, chosen, tuple(event for event in _events(nights) if event.testbed in chosen), seed)


def _events(nights: int) -> Iterator[PlantedEvent]:
    def night(share: float) -> int:
        return round(share * nights)

    end = nights - 1
    vsc, csc, csp = ServiceType
    yield PlantedEvent(EventKind.STEP, "sim-a", night(0.4), end, csc, factor=0.92)
    yield PlantedEvent(EventKind.STEP, "sim-b", night(0.6), end, vsc, chains=1, factor=0.95)
    yield PlantedEvent(EventKind.STEP, "sim-c", night(0.5), end, csp, factor=1.06)
    yield PlantedEvent(EventKind.STEP, "sim-c", night(0.6), end, csc, chains=1, nodes=1, factor=0.97)
    yield PlantedEvent(EventKind.TWO_BANDS, "sim-a", 0, end, vsc, chains=2, nodes=1, factor=0.9, share=0.25)
    yield PlantedEvent(EventKind.TWO_BANDS, "sim-b", 0, end, csc, chains=1, nodes=1, factor=0.9, share=0.25)
    yield PlantedEvent(EventKind.TWO_BANDS, "sim-c", 0, end, csc, chains=2, nodes=1, factor=0.9, share=0.25)
    yield PlantedEvent(EventKind.OUTLIER, "sim-a", night(0.7), night(0.7), csp, chains=1, nodes=1, factor=0.7)
    yield PlantedEvent(EventKind.OUTLIER, "sim-b", night(0.45), night(0.45), factor=0.9)
    yield PlantedEvent(EventKind.FRESH, "sim-b", end, end, csc, chains=2, nodes=1, factor=0.9)
    yield PlantedEvent(EventKind.FAILURE, "sim-b", night(0.2), night(0.2) + 2, csp, chains=2, nodes=1)
    yield PlantedEvent(EventKind.QUARANTINE, "sim-c", night(0.8), end, vsc, chains=1, nodes=1)
    yield PlantedEvent(EventKind.MISSING, "sim-a", night(0.25), night(0.25) + 1)
