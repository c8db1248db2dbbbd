"""The time that a selection takes, by suite."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resources.libraries.python.model.bounds import refuse_endless
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.studies.density.planning.extras import MAX_FACTOR, MIN_FACTOR, Extras, test_s
from resources.libraries.python.studies.density.planning.matrix import Candidate

SIMULATED_TEST_S = 0.1
"""Real time of a simulated test; 84 tests took 6 s."""


@dataclass(frozen=True)
class SuiteTime:
    """One suite: a service type and a test type."""

    suite: str
    tests: int
    seconds: float


@dataclass(frozen=True)
class Times:
    """All suites of a selection."""

    profile: str
    suites: tuple[SuiteTime, ...]
    simulated: bool
    """The seconds are those of a virtual clock."""

    @property
    def tests(self) -> int:
        """Number of tests of all suites."""
        return sum(suite.tests for suite in self.suites)

    @property
    def seconds(self) -> float:
        """Time of all suites."""
        return sum(suite.seconds for suite in self.suites)

    @property
    def real_seconds(self) -> float:
        """Wall-clock time."""
        return SIMULATED_TEST_S * self.tests if self.simulated else self.seconds

    def error(self) -> str:
        """How far the estimate may be off, in words."""
        return f"a single test takes {MIN_FACTOR:g} to {MAX_FACTOR:g} times its estimate, many together are within 15 %"


def times(
    topology: Topology,
    rows: Sequence[Candidate],
    profile: SearchProfile,
    test_types: Iterable[TestType],
    *,
    extras: Extras = Extras(),  # noqa: B008 - frozen
) -> Times:
    """Estimate the time of every suite.

    `topology`: the testbed, whose world decides the time lost around a trial.
    `rows`: the cells; those that run are counted, a test for each frame size that can be sent through.

    Raises:
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """
    suites = []
    for service_type in ServiceType:
        own = [row for row in rows if row.cell.service_type is service_type]
        running = [row for row in own if row.runs]
        for test_type in test_types if own else ():
            seconds = sum(len(row.frames) * test_s(topology, row.cell, profile, test_type, extras) for row in running)
            name = f"{service_type.lower()}-{test_type.lower()}"
            suites.append(SuiteTime(name, sum(len(row.frames) for row in running), seconds))
    found = Times(profile.name, tuple(suites), topology.world is World.SIM)
    refuse_endless("this selection", found.tests, "tests", found.seconds)
    return found
