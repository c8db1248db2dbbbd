"""Base of all studies: the draft of a record, and one deployed cell at a time, which is measured with care."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.cell import Cell, Frame, TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import drivers_of
from resources.libraries.python.recording.run_journal import MAX_ATTEMPTS
from resources.libraries.python.recording.writer import Draft
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.health import is_breakage, reason_of
from resources.libraries.python.testbed.deployment.parts import Testbed

_Spec = TypeVar("_Spec")
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class StudyTest(ABC, Generic[_Spec]):
    """A test of a study while it runs.

    `world`: where to deploy, opened by the caller.
    `spec`: what to measure. Where it has a `cell`, the record's drivers are those of the cell.
    """

    RECORD: ClassVar[type[Record]]

    def __init__(self, topology: Topology, world: Testbed, spec: _Spec, environment: Environment) -> None:
        self._topology = topology
        self._world = world
        self.spec = spec
        self._deployed: CellUnderTest | None = None
        self.notes: list[str] = []
        """For the result: of steps and searches, and why steps were not measured."""
        self._noted: list[str] = []
        """Notes of the present step or search."""
        cell = getattr(spec, "cell", None)
        drivers = dict(world.drivers) if cell is None else drivers_of(topology, cell, world.drivers)
        self.draft = Draft(self.RECORD, topology, environment, simulation=world.simulation, drivers=drivers)

    @abstractmethod
    def plan(self) -> object:
        """See that what is asked fits, before anything is deployed.

        Raises:
            PlanError: It does not fit.
            Unsupported: The testbed cannot do it.
        """

    @property
    def is_deployed(self) -> bool:
        """Whether there is a running cell."""
        return self._deployed is not None and self._deployed.is_deployed

    def problems(self) -> tuple[str, ...]:
        """Problems of what is deployed; empty when it is healthy."""
        return self._deployed.problems() if self._deployed is not None and self.is_deployed else ()

    def moved(self) -> tuple[str, ...]:
        """Data threads that have moved since the deployment."""
        return self._deployed.moved() if self._deployed is not None and self.is_deployed else ()

    def facts(self) -> dict[str, dict[str, str]]:
        """Facts of the parts of the deployment."""
        return {} if self._deployed is None else self._deployed.deployment.facts()

    def breaks(self, error: Exception) -> bool:
        """Whether an error comes from a broken system under test, so that it is deployed and measured once more."""
        return is_breakage(error)

    def note(self, text: str) -> None:
        """Note something about the present step, or about the search before all steps."""
        self._noted.append(text)

    def under_test(
        self, cell: Cell, frame: Frame, profile: SearchProfile = QUICK, repetition: int = 0
    ) -> CellUnderTest:
        """A cell that is not deployed yet."""
        asked = MeasurementRequest(
            test_type=TestType.MRR, cell=cell, frame=frame, profile=profile, repetition=repetition
        )
        return CellUnderTest(self._topology, self._world, asked)

    def bring_up(self, cell: CellUnderTest, plan: Plan) -> CellUnderTest:
        """Deploy a cell, which is removed by `careful`, or by `remove`.

        Raises:
            CsitError: A part does not start.
        """
        self._deployed = cell
        cell.deploy(plan)
        return cell

    def remove(self) -> str | None:
        """Remove what is deployed, if anything is; return what went wrong, None when nothing did.

        Raises:
            RunStopped: Something is left and cannot be removed by force either.
        """
        deployed, self._deployed = self._deployed, None
        return deployed.remove() if deployed else None

    def careful(self, name: str, measure: Callable[[], _Result]) -> _Result:
        """Deploy and measure by a function, and remove; where that breaks the system under test, once more.

        `name`: for the notes on that, and on errors of removals.
        `measure`: its error goes through where it breaks nothing, and the last time.
        """
        for _ in range(1, MAX_ATTEMPTS):
            try:
                return self._removed(name, measure)
            except (CsitError, OSError) as error:
                if not self.breaks(error):
                    raise
                self.note(f"{name}: measured once more: {reason_of(error)}")
            _log.warning(self._noted[-1])
        return self._removed(name, measure)

    def _removed(self, name: str, measure: Callable[[], _Result]) -> _Result:
        try:
            return measure()
        finally:
            if removal := self.remove():
                self.note(f"{name}: {removal}")
