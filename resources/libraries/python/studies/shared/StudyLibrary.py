"""Keywords of all studies that measure one step after the other: run a study, and close its test."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from robot.api import SkipExecution, logger
from robot.api.deco import library

from resources.libraries.python.csv_tables import Table
from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.variables import Lookup
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.recording.run_journal import TestKey
from resources.libraries.python.studies.shared.boundary import keyword, skipping, variable
from resources.libraries.python.studies.shared.choices import settings_of
from resources.libraries.python.studies.shared.library import StudyKeywords
from resources.libraries.python.studies.shared.step_study import StepStudy

AnyStepStudy = StepStudy[Any, Any, Any, Any]
OnlyIn = Literal["sim", "local", "lab", "real", "any"]
_STUDIES = Path(__file__).parents[1]


@library(scope="GLOBAL", doc_format="ROBOT")
class StudyLibrary(StudyKeywords[AnyStepStudy]):
    """Runs a study: sweeps, outages, interference, chains, sizing, stateful density, or one of your own.

    Its name is given where the library is imported. What a test measures is described by a file of the study.

    | Library | resources.libraries.python.studies.shared.StudyLibrary | outage |
    """

    FIRST_KEYWORD = "Run Study"

    def __init__(self, study: str = "") -> None:
        super().__init__()
        self.STUDY = study
        self._kind = study_named(study)
        self._passed: dict[str, Record] = {}
        """Records of tests of this run, by the digest of what they measured."""

    @keyword
    def run_study(self, specification: str, only_in: OnlyIn = "any", **keys: str) -> None:
        """Measure all steps of a study, each with a deployment of its own, which is removed before the next one.

        The path of the ``specification`` is relative to the present folder, or to ``tests/characterization/specs``.
        Named arguments set keys of it, and so does the variable ``SET``, which counts more. In another world than
        ``only_in`` the test is skipped; ``real`` is every world but ``sim``.

        A step that breaks the system under test is measured once more. One that fails then is missing in the result,
        with the reason. Three failures in a row end the study. The test fails at the end where less was measured than
        ``least_measured`` of the specification, by default all. Where the variable ``RESUME`` names the folder of a run
        that was cut short, steps in its journal are not measured again.

        | Run Study | outage/routers.yaml |
        | Run Study | interference/pairs.yaml | repetitions=5 | frame=512B |
        | Run Study | clearwater/deployment.json | sim | workload=clearwater/workload.json |
        """
        topology, world, environment = self._testbed.opened()
        if not topology.world.is_one_of(only_in):
            raise SkipExecution(topology.world.refusal(only_in))
        study = self._kind(
            topology,
            world,
            self.specification(specification, keys),
            environment,
            self._progress.step,
            choices=self._choices,
            earlier=self._passed,
        )
        study.draft.rerun = self._rerun()
        try:
            skipping(study.plan)
        except PlanError as error:
            raise SkipExecution(str(error)) from error
        self._begin(study)
        self._remark(study.remark)
        self._run_state.begin_steps()
        with self._run_state.ending():
            skipping(lambda: self._measure(study))

    def _begin(self, study: AnyStepStudy) -> None:
        """Begin a test; one that had passed before the run was resumed ends at once."""
        digest, name, lines = study.digest(), study.spec.name, study.preview()
        simulated = self._testbed.opened()[0].world is World.SIM

        def carried(record: Record) -> None:
            if record.passed:
                self._passed[digest] = record
            self._progress.open()
            self._progress.begin(name, ["carried over"], simulated=True)

        key = TestKey(f"{variable('SUITE NAME')}.{variable('TEST NAME')}", digest, digest)
        self._run_state.begin_test(key, failed_again=True, on_carried=carried)
        self._progress.open()
        study.resume(self._run_state.step_journal(study.journal()))
        self._test = study
        for line in lines:
            logger.info(line)
        self._progress.begin(name, lines, simulated=simulated, each_s=study.cost.step_s, left=study.cost.steps)

    def _measure(self, study: AnyStepStudy) -> None:
        study.prepare()
        self._progress.prepared(each_s=study.cost.step_s, left=study.cost.steps)
        for line in study.load_in_words():
            self._remark(line)
        study.run()
        study.enough()

    @keyword
    def study_should_rank_planted_faults_first(self) -> None:
        """Fail unless the chains in which faults were planted are the first suspects, in whichever order.

        | Run Study | chains/four-vnfs.yaml |
        | Study Should Rank Planted Faults First |
        """
        self._running.faults_first()

    @keyword
    def close_test(self, status: str, message: str) -> None:
        """Remove what is deployed and write the record of the test and its CSV files, also where it has failed.

        Use it as test teardown; a failed removal fails the test.

        | Test Teardown | Close Test | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        study = self._test
        record = self._end(status, message)
        if study is not None and record.passed:
            self._passed[study.digest()] = record

    def refuse_wrong(self, choices: Lookup) -> Topology:
        """Refuse wrong variables of the study, too."""
        topology = super().refuse_wrong(choices)
        self._kind.refuse(choices, topology)
        return topology

    def specification(self, name: str, keys: Mapping[str, str] = MappingProxyType({})) -> Any:  # noqa: ANN401 - of any study
        """Load a specification, with the keys that a test and the variable ``SET`` set; the variable counts more.

        `name`: of the file, or of what a study without files measures.

        Raises:
            ConfigError: There is no such file, or it or a value does not fit.
        """
        keys = {**keys, **settings_of(self._choices, self.STUDY)}
        return self._kind.asked(name, keys, self._choices, self._chosen())

    def _tables(self, record: Any) -> Iterable[Table]:  # noqa: ANN401 - a record of this study
        return self._kind.tables(record)

    def _report(self, record: Any) -> None:  # noqa: ANN401 - as above
        lines = list(self._kind.lines(record))
        for line in lines:
            logger.info(line)
        self._progress.end(record.passed, record.message, lines)


def study_named(name: str) -> type[AnyStepStudy]:
    """Class of the study in a folder of this name, which has no library of its own.

    Raises:
        ConfigError: There is none.
    """
    files = _STUDIES.glob("*/run.py")
    names = sorted(path.parent.name for path in files if not any(path.parent.glob("*Library.py")))
    if name not in names:
        raise ConfigError(f"no study '{quoted(name)}'; there are {', '.join(names)}")
    module = f"{__name__.rpartition('.')[0].rpartition('.')[0]}.{name}.run"
    import_module(module)
    return next(each for each in StepStudy.__subclasses__() if each.__module__ == module)
