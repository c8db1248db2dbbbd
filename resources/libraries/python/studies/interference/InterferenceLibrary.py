"""Keywords of the interference suite: co-located network functions."""

from collections.abc import Iterable

from robot.api import logger
from robot.api.deco import library

from resources.libraries.python.studies.interference.analysis.sentences import advice_in_words, matrix_in_words
from resources.libraries.python.studies.interference.analysis.tables import interference_tables
from resources.libraries.python.studies.interference.model.record import (
    Interference,
    InterferenceRecord,
    load_interference,
)
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.library import StepStudyLibrary
from resources.libraries.python.studies.shared.robot_context import skipping


@library(scope="GLOBAL", doc_format="ROBOT")
class InterferenceLibrary(StepStudyLibrary[InterferenceTest]):
    """Measures network functions alone and co-located, and advises on their placement.

    The network functions are described by a YAML file.
    """

    FIRST_KEYWORD = "Describe Interference"
    LOAD = load_interference
    TABLES = interference_tables

    @keyword
    def describe_interference(self, specification: str, **keys: str) -> None:
        """Load the network functions and check that all of them fit together. Nothing is deployed yet.

        The path is relative to the present folder, or to ``tests/characterization/specs``. Named arguments replace
        values of the file, and so does the variable ``SET``, which counts more: ``load_pps`` in packets per second, one
        way, or ``auto`` for more than the fastest carries; ``guarantee=yes``, or ``network,cpu``, to measure all
        co-located sets once more with an equal share guaranteed to each. Lists of ``frame`` or ``load_pps`` are a
        sweep.

        | Describe Interference | interference/pairs.yaml |
        | Describe Interference | interference/pairs.yaml | frame=512B | load_pps=50000 |
        """
        self._describe_file(InterferenceTest, specification, keys)

    @keyword
    def measure_interference(self) -> None:
        """Deploy and load each network function alone, and co-located with every other, in all repetitions.

        The order is shuffled in each repetition, so that drift affects all alike. A measurement that breaks the system
        under test is tried once more. Where the variable ``RESUME`` names the folder of a run that was cut short,
        measurements in its journal are not made again, and the others are made at the same load. The test fails
        at the end where less was measured than ``least_measured`` of the specification, by default all.

        | Describe Interference | interference/pairs.yaml |
        | Measure Interference |
        """
        self._measure()

    @keyword
    def advise_placement(self, *servers: str) -> None:
        """Advise where to place network functions, by the measurements.

        Each of ``servers`` names those that a server has already, joined by plus signs; nothing for an empty one. The
        network function that no server has is placed. Without servers all are placed on two. Where the specification
        says ``verify: 3``, the best three placements by prediction are measured as they are before: those on two
        servers at the end of `Measure Interference`, those on other servers here.

        | Advise Placement |
        | Advise Placement | gateway+monitor | firewall |
        """
        study = self._running
        here = [[name for name in server.split("+") if name] for server in servers]
        with self._run_state.ending():
            skipping(lambda: study.advise(here))
        for line in advice_in_words(study.result()):
            logger.info(line)

    @keyword
    def close_interference(self, status: str, message: str) -> None:
        """Remove what is deployed and write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Interference | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        self._end(status, message)

    def _lines(self, found: Interference) -> Iterable[str]:
        return matrix_in_words(found)

    def _result_lines(self, record: InterferenceRecord) -> list[str]:
        found = record.interference
        if found is None or not record.passed:
            return []
        note = " (simulated)" if record.simulated else ""
        summary = f"{found.spec.name}: {len(found.measurements)} measurements{note}"
        return [summary, *matrix_in_words(found), *advice_in_words(found)]
