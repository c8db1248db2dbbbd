"""The time that a selection takes, by suite."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resources.libraries.python.model.bounds import refuse_endless
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.studies.density.planning.extras import LEAST, MOST, Extras, estimate_s
from resources.libraries.python.studies.density.planning.matrix import Candidate

_OVERHEAD_S = {World.LOCAL: 0.05, World.SIM: 0.5, World.LAB: 0.15}
"""Of a trial besides sending: measured locally; the default of the simulation; what is promised for a lab."""
_DEPLOY_S = {World.LOCAL: 1.0, World.SIM: 0.0, World.LAB: 30.0}
"""Bringing a cell of containers up and removing it."""
_BOOT_S = 4.0
"""A guest's boot in software emulation; 3.5 s measured. On few cores guests boot one after another."""
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
        return f"a single test takes {LEAST:g} to {MOST:g} times its estimate, many together are within 15 %"


def times(
    topology: Topology,
    rows: Sequence[Candidate],
    profile: SearchProfile,
    test_types: Iterable[TestType],
    frames: int,
    *,
    extras: Extras = Extras(),  # noqa: B008 - frozen
) -> Times:
    """Estimate the time of every suite.

    Args:
        topology: The testbed, whose world decides the time lost around a trial.
        rows: The cells; those that run are counted.
        profile: The search.
        test_types: A suite each.
        frames: Number of frame sizes; every one is a test.
        extras: Further measurements of each test.

    Raises:
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """
    suites = []
    for service_type in ServiceType:
        own = [row for row in rows if row.cell.service_type is service_type]
        running = [row for row in own if row.runs]
        for test_type in test_types if own else ():
            each = (test_s(topology, row.cell, profile, test_type, extras) for row in running)
            name = f"{service_type.lower()}-{test_type.lower()}"
            suites.append(SuiteTime(name, len(running) * frames, frames * sum(each)))
    found = Times(profile.name, tuple(suites), topology.world is World.SIM)
    refuse_endless("this selection", found.tests, "tests", found.seconds)
    return found


def test_s(topology: Topology, cell: Cell, profile: SearchProfile, test_type: TestType, extras: Extras) -> float:
    """Estimate the seconds of one test; of a virtual clock in a simulation."""
    overhead_s = _OVERHEAD_S[topology.world]
    if topology.simulation is not None:
        overhead_s = float(topology.simulation.get("overhead_s", overhead_s))
    deploy_s = _deploy_s(topology, cell)
    return estimate_s(profile, test_type, trial_overhead_s=overhead_s, deploy_s=deploy_s, extras=extras)


def _deploy_s(topology: Topology, cell: Cell) -> float:
    """Bringing a cell up and removing it."""
    boots = topology.world is World.LOCAL and cell.service_type is ServiceType.VSC
    return _DEPLOY_S[topology.world] + (_BOOT_S * cell.nf_count if boots else 0.0)
