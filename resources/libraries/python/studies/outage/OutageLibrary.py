"""Keywords of the outage suite: events that hit one network function under load, and what they cost the others."""

from robot.api import logger
from robot.api.deco import library

from resources.libraries.python.quantities import rate
from resources.libraries.python.studies.outage.analysis.effects import in_words
from resources.libraries.python.studies.outage.analysis.tables import outage_tables
from resources.libraries.python.studies.outage.model.record import OutageRecord
from resources.libraries.python.studies.outage.model.spec import OutageSpec, load_outage
from resources.libraries.python.studies.outage.planning import AROUND_S
from resources.libraries.python.studies.outage.run import OutageJournal, OutageTest
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.library import SpecifiedStudyLibrary


@library(scope="GLOBAL", doc_format="ROBOT")
class OutageLibrary(SpecifiedStudyLibrary[OutageTest]):
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
        topology, world, environment = self._testbed.opened()
        spec: OutageSpec = self.specification(specification)
        study = OutageTest(topology, world, spec, environment, self._progress.step)
        control = " and a control" if spec.control else ""
        self._begin_planned(
            study,
            OutageJournal,
            lambda: (
                f"{study.cost.runs} trials of {spec.duration_s:g} s: {len(spec.events)} events{control}, "
                f"{spec.repetitions} repetitions"
            ),
        )

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

        def offer() -> None:
            study = self._running
            offered = study.rate()
            self._progress.prepared(study.spec.duration_s + AROUND_S)
            of_ndr = "" if offered.ndr_pps is None else f" (NDR of all: {rate(offered.ndr_pps)})"
            self._remark(f"{rate(offered.rate_pps)} offered to each instance in each direction{of_ndr}")

        for line in in_words(self._measure_planned(offer).result().effects):
            logger.info(line)

    @keyword
    def close_outage(self, status: str, message: str) -> None:
        """Remove what is deployed and write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Outage | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        self._end(status, message)

    def _result_lines(self, record: OutageRecord) -> list[str]:
        if (found := record.outage) is None or not record.passed:
            return []
        note = " (simulated)" if record.simulated else ""
        return [f"{found.spec.name}: {len(found.trials)} trials{note}", *in_words(found.effects)]
