"""Keywords of the outage suite: events that hit one network function under load, and what they cost the others."""

from collections.abc import Iterator

from robot.api.deco import library

from resources.libraries.python.studies.outage.analysis.effects import in_words
from resources.libraries.python.studies.outage.analysis.tables import outage_tables
from resources.libraries.python.studies.outage.model.record import Outage, OutageRecord
from resources.libraries.python.studies.outage.model.spec import load_outage
from resources.libraries.python.studies.outage.run import OutageTest
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.library import StepStudyLibrary


@library(scope="GLOBAL", doc_format="ROBOT")
class OutageLibrary(StepStudyLibrary[OutageTest]):
    """Kills, restarts, pauses, adds, reloads and moves network functions under load.

    The service, its load and the events are described by a YAML file.
    """

    FIRST_KEYWORD = "Describe Outage"
    LOAD = load_outage
    TABLES = outage_tables

    @keyword
    def describe_outage(self, specification: str) -> None:
        """Load a specification and check that its service fits. Nothing is deployed yet.

        The path is relative to the present folder, or to ``tests/characterization/specs``. The variable ``SET``
        replaces values of the file, such as ``share=0.5;repetitions=10``.

        | Describe Outage | outage/routers.yaml |
        """
        self._describe_file(OutageTest, specification)

    @keyword
    def measure_outage(self) -> None:
        """Deploy the service for each event and repetition, and let the event happen under load.

        The load is a share of the NDR, which is searched first, or as specified. Every packet is numbered and
        time-stamped. The order of events is shuffled in each repetition. A trial that breaks the testbed is repeated
        once. Where the variable ``RESUME`` names the folder of a run that was cut short, trials in its journal are
        not made again. The test fails at the end where less was measured than ``least_measured`` of the specification.

        | Describe Outage | outage/routers.yaml |
        | Measure Outage |
        """
        self._measure()

    @keyword
    def close_outage(self, status: str, message: str) -> None:
        """Remove what is deployed and write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Outage | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        self._end(status, message)

    def _lines(self, found: Outage) -> Iterator[str]:
        return in_words(found.effects)

    def _result_lines(self, record: OutageRecord) -> list[str]:
        if (found := record.outage) is None or not record.passed:
            return []
        note = " (simulated)" if record.simulated else ""
        return [f"{found.spec.name}: {len(found.trials)} trials{note}", *in_words(found.effects)]
