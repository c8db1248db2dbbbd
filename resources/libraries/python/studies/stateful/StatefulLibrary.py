"""Keywords of the suite of stateful density: connection rates and tables of NATs and firewalls, after RFC 9693."""

from robot.api.deco import library

from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.library import StepStudyLibrary
from resources.libraries.python.studies.stateful.analysis import in_words, stateful_tables
from resources.libraries.python.studies.stateful.model.record import StatefulDensity, StatefulRecord
from resources.libraries.python.studies.stateful.model.spec import load_stateful
from resources.libraries.python.studies.stateful.run import StatefulTest


@library(scope="GLOBAL", doc_format="ROBOT")
class StatefulLibrary(StepStudyLibrary[StatefulTest]):
    """Measures how many connections per second network functions take, tear down, and how many their tables hold.

    The kind of network function and the cells are described by a YAML file.
    """

    FIRST_KEYWORD = "Describe Stateful Density"
    LOAD = load_stateful
    TABLES = stateful_tables

    @keyword
    def describe_stateful_density(self, specification: str) -> None:
        """Load a specification and check that its cells fit. Nothing is deployed yet.

        The path is relative to the present folder, or to ``tests/characterization/specs``. The variable ``SET``
        replaces values of the file, such as ``search=quick``.

        | Describe Stateful Density | stateful/nat.yaml |
        """
        self._describe_file(StatefulTest, specification)

    @keyword
    def measure_stateful_density(self) -> None:
        """Deploy each cell; search its connection establishment rate, tear connections down, search table capacity.

        Tables are emptied, and verified to be empty, before each trial. A cell that breaks the testbed is repeated
        once. Where the variable ``RESUME`` names the folder of a run that was cut short, cells in its journal are not
        measured again. The test fails at the end where less was measured than ``least_measured`` of the specification.

        | Describe Stateful Density | stateful/nat.yaml |
        | Measure Stateful Density |
        """
        self._measure()

    @keyword
    def close_stateful_density(self, status: str, message: str) -> None:
        """Remove what is deployed and write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Stateful Density | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        self._end(status, message)

    def _lines(self, found: StatefulDensity) -> list[str]:
        return [f"{cell.name}: {in_words(cell)}" for cell in found.cells]

    def _result_lines(self, record: StatefulRecord) -> list[str]:
        if (found := record.stateful) is None or not record.passed:
            return []
        note = " (simulated)" if record.simulated else ""
        return [f"{found.spec.name} {cell.name}: {in_words(cell)}{note}" for cell in found.cells]
