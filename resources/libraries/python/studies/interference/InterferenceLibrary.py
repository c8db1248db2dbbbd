"""Keywords of the interference suite: what network functions on one server do to each other."""

from robot.api import logger
from robot.api.deco import keyword, library

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.model.topology import World
from resources.libraries.python.studies.density.keeper import EndOfRun
from resources.libraries.python.studies.interference.analysis.sentences import advice_in_words, matrix_in_words
from resources.libraries.python.studies.interference.choices import asked_study, rerun_of_study
from resources.libraries.python.studies.interference.journal import InterferenceJournal
from resources.libraries.python.studies.interference.progress import InterferenceProgress
from resources.libraries.python.studies.interference.run import InterferenceStudy
from resources.libraries.python.studies.shared.library import CharacterizingLibrary
from resources.libraries.python.studies.shared.robot_context import skipping, variable


@library(scope="GLOBAL", doc_format="ROBOT")
class InterferenceLibrary(CharacterizingLibrary):
    """Measures network functions alone and beside each other, and says where to put them.

    The network functions are described by a YAML file.
    """

    def __init__(self) -> None:
        super().__init__()
        self._progress = InterferenceProgress()
        self._study: InterferenceStudy | None = None

    @keyword
    def describe_interference(self, specification: str, frame: str = "", load: str = "", guarantee: str = "") -> None:
        """Load the network functions and see that all of them fit together. Nothing is deployed yet.

        The path is relative to the present folder, or to ``tests/characterization/specs``. ``frame``, ``load`` (packets
        per second offered to each, one way; ``auto`` for more than the fastest carries) and ``guarantee`` (``yes``
        measures all companies once more with an equal share of the network guaranteed to each) change what the file
        says. So do the variables ``FRAME``, ``INTERFERENCE_LOAD``, ``GUARANTEE``, ``REPETITIONS`` and
        ``TRIAL_DURATION``. Several frame sizes or loads, joined by commas, are a sweep.

        | Describe Interference | interference/pairs.yaml |
        | Describe Interference | interference/pairs.yaml | frame=512B | load=50000 |
        """
        topology, world, environment = self._testbed.opened()
        self._keeper.check()
        spec = asked_study(variable, specification, frame, load, guarantee)
        study = InterferenceStudy(topology, world, spec, environment, self._progress.turn)
        study.draft.rerun = rerun_of_study(variable, topology)
        study.go_on(self._resumed(InterferenceJournal, study.digest(), spec.name))
        self._study = study
        turns = skipping(study.plan)
        self._progress.begins(spec, study.cost, simulated=topology.world is World.SIM)
        logger.info(f"{turns} measurements of {', '.join(contender.name for contender in spec.contenders)}")

    @keyword
    def measure_interference(self) -> None:
        """Deploy and load each network function alone, and beside every other and its like, again and again.

        The order is shuffled in each repetition, so that what drifts falls on all alike. Where the variable ``RESUME``
        names the folder of a run that was cut short, measurements that its journal has are not made again, and the
        others are made at the same load. The test fails at the end where less was measured than ``least_measured`` of
        the specification, by default all.

        | Describe Interference | interference/pairs.yaml |
        | Measure Interference |
        """
        study = self._running
        if study.remark:
            logger.info(study.remark)
            self._progress.says(study.remark)
        try:
            loads_pps = skipping(study.loads_pps)
            for (frame, _), load_pps in zip(study.spec.points(), loads_pps, strict=True):
                logger.info(f"{load_pps:.0f} pps of {frame.name} are offered to each, one way")
            self._progress.loads(loads_pps, study.spec)
            study.measure(loads_pps)
        except RunStopped as error:
            raise EndOfRun(str(error)) from error
        for line in matrix_in_words(study.result()):
            logger.info(line)
        study.enough()

    @keyword
    def advise_placement(self, *servers: str) -> None:
        """Say where network functions are put best, by what was measured.

        Each of ``servers`` names those that a server has already, joined by plus signs; nothing for an empty one. The
        network function that no server has is placed. Without servers all are placed on two.

        | Advise Placement |
        | Advise Placement | gateway+monitor | firewall |
        """
        study = self._running
        study.advise([[name for name in server.split("+") if name] for server in servers])
        for line in advice_in_words(study.result()):
            logger.info(line)

    @keyword
    def close_interference(self, status: str, message: str) -> None:
        """Remove what is deployed and write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Interference | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        if self._study is None:
            return
        study, self._study = self._study, None
        self._progress.done(self._keeper.end_test(study.draft, study.remove, status, message))

    @property
    def _running(self) -> InterferenceStudy:
        if self._study is None:
            raise CsitError("no test is described; Describe Interference comes first")
        return self._study
