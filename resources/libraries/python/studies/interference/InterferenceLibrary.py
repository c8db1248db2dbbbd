"""Keywords of the interference suite: co-located network functions."""

from collections.abc import Iterator, Sequence

from robot.api import logger
from robot.api.deco import library

from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.quantities import rate
from resources.libraries.python.studies.interference.analysis.sentences import advice_in_words, matrix_in_words
from resources.libraries.python.studies.interference.analysis.tables import interference_tables
from resources.libraries.python.studies.interference.journal import InterferenceJournal
from resources.libraries.python.studies.interference.model.record import (
    InterferenceRecord,
    InterferenceSpec,
    load_interference,
)
from resources.libraries.python.studies.interference.planning import each_s
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.library import StudyLibrary
from resources.libraries.python.studies.shared.progress import human_time
from resources.libraries.python.studies.shared.robot_context import skipping


@library(scope="GLOBAL", doc_format="ROBOT")
class InterferenceLibrary(StudyLibrary[InterferenceTest]):
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
        topology, world, environment = self._testbed.opened()
        spec: InterferenceSpec = self.specification(specification, keys)
        study = InterferenceTest(topology, world, spec, environment, self._progress.step)
        study.draft.rerun = self._rerun()
        study.resume(self._begin(study, study.digest(), spec.name, InterferenceJournal))
        skipping(study.plan)
        preview = preview_in_words(spec, study.cost, simulated=topology.world is World.SIM)
        self._preview(spec.name, [preview], study.cost)

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
        study = self._running
        self._remark(study.remark)

        def steps() -> None:
            loads_pps = study.loads_pps()
            self._progress.prepared(each_s(study.spec))
            for line in loads_in_words(loads_pps, study.spec):
                self._remark(line)
            study.measure(loads_pps)

        self._run_steps(steps)
        for line in matrix_in_words(study.result()):
            logger.info(line)
        study.enough()

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
        with self._keeper.ending():
            skipping(lambda: study.advise(here))
        for line in advice_in_words(study.result()):
            logger.info(line)

    @keyword
    def close_interference(self, status: str, message: str) -> None:
        """Remove what is deployed and write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Interference | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        self._end(status, message)

    def _result_lines(self, record: InterferenceRecord) -> list[str]:
        found = record.interference
        if found is None or not record.passed:
            return []
        note = " (simulated)" if record.simulated else ""
        summary = f"{found.spec.name}: {len(found.measurements)} measurements{note}"
        return [summary, *matrix_in_words(found), *advice_in_words(found)]


def preview_in_words(spec: InterferenceSpec, cost: StudyCost, *, simulated: bool) -> str:
    """Measurements and time of a study."""
    names = ", ".join(contender.name for contender in spec.contenders)
    twice = "".join(f", once more with guaranteed {each.words}" for each in spec.guarantee)
    rounds = f"{spec.repetitions} repetition{'s' * (spec.repetitions > 1)}{twice}"
    about = "" if simulated else f", about {human_time(cost.seconds)}"
    most = "at most " if spec.verify else ""
    count = f"{most}{cost.runs} {'simulated ' if simulated else ''}measurements"
    return f"{count} of {names}, alone and up to {spec.together} together, {rounds}{about}"


def loads_in_words(loads_pps: Sequence[float], spec: InterferenceSpec) -> Iterator[str]:
    """Stand-ins, and the offered load at each frame size."""
    for contender in spec.contenders:
        if contender.stand_in_for:
            yield f"{contender.name} ({contender.kind}) is a stand-in for {contender.stand_in_for}"
    points = zip(spec.points(), loads_pps, strict=True)
    loads = [rate(pps) if len(loads_pps) == 1 else f"{frame.name} {rate(pps)}" for (frame, _), pps in points]
    yield f"{', '.join(loads)} offered to each, one way"
