"""Base classes of the Robot libraries of all studies: testbed, journal, record, errors."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from robot.api import logger

from resources.libraries.python.csv_tables import Table, csv_files
from resources.libraries.python.errors import ConfigError, CsitError, RunStopped
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.measurements.qualification import Qualification
from resources.libraries.python.model.request.variables import GENERATOR, NOISE_FLOOR, Lookup, read_by
from resources.libraries.python.model.result import Environment, Rerun
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.physical_ports import assumptions, attached
from resources.libraries.python.quantities import rate
from resources.libraries.python.search.findings.host_noise import in_words
from resources.libraries.python.search.qualification import UnqualifiedLoads, place_of
from resources.libraries.python.search.qualification import in_words as range_in_words
from resources.libraries.python.studies.shared.boundary import (
    REDACTION,
    announce,
    document,
    guard_keywords,
    keyword,
    variable,
)
from resources.libraries.python.studies.shared.choices import (
    chosen_profile,
    chosen_qualifications,
    chosen_topology,
    generator_chosen,
    rerun_of,
    resumed,
    settings_of,
)
from resources.libraries.python.studies.shared.choices_before_run import AT_START
from resources.libraries.python.studies.shared.progress import StudyProgress
from resources.libraries.python.studies.shared.run_state import AnyStudy, StudyRunState
from resources.libraries.python.testbed.deployment import parts
from resources.libraries.python.testbed.deployment.health import clean_up
from resources.libraries.python.testbed.deployment.loop_back import (
    effort_in_words,
    qualification_for_run,
    qualify_again,
)
from resources.libraries.python.testbed.kinds.factory import located, make_testbed, refuse_wrong_simulation

_Test = TypeVar("_Test", bound=AnyStudy)


class StudyKeywords(Generic[_Test]):
    """Keywords of the library of a study: those that open and close the testbed.

    A subclass sets `_test` when a test begins, and closes it by `_end`.
    """

    RESUMES_ELSEWHERE = True
    """Whether a run may be resumed in another folder: where tests have a journal of their steps."""
    ROBOT_LIBRARY_LISTENER: ClassVar[Any] = [REDACTION, AT_START]
    FIRST_KEYWORD: ClassVar[str]
    """The one that describes the test, for errors."""
    STUDY = ""
    """Name of the study: of its folder."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.STUDY = cls.__module__.rpartition(".")[0].rpartition(".")[2]
        guard_keywords(cls)

    def __init__(self) -> None:
        self._testbed = TestbedSession()
        self._progress = StudyProgress()
        self._run_state = StudyRunState(self._progress)
        self._choices: Lookup = variable
        self._test: _Test | None = None

    @keyword
    def open_testbed(self) -> None:
        """Load the testbed that the variable ``TOPOLOGY`` names, check it, reserve it and remove leftovers.

        Fails in one sentence when a choice is wrong, the machine lacks something, another process uses it, or there is
        no space for results. Use it as suite setup; where an outer suite has opened the testbed, it stays open until
        that suite closes it.

        | Suite Setup | Open Testbed |
        """
        self._announce()
        if not self._testbed.enter():
            return
        self._choices = resumed(variable)
        topology = self._chosen()
        document(variables_in_words(self.STUDY))
        self._run_state.prepare(self._choices, Path(str(variable("OUTPUT DIR"))), elsewhere=self.RESUMES_ELSEWHERE)
        environment = self._testbed.open(
            topology, NOISE_FLOOR.of(self._choices), qualifications=chosen_qualifications(self._choices)
        )
        # The journal has the testbed as its file says: suites of one run may choose another generator or none.
        self._run_state.open(self._choices, chosen_topology(self._choices), environment)
        self._run_state.noise, self._run_state.beyond = self._testbed.noise, self._testbed.beyond

    @keyword
    def close_testbed(self) -> None:
        """Remove leftovers of a run that was cut short, and release the testbed. Use it as suite teardown.

        | Suite Teardown | Close Testbed |
        """
        self._testbed.leave(self._run_state.close)

    def _announce(self) -> None:
        """Log what is known of the suite before its first test, whether the testbed opens or not."""

    def refuse_wrong(self, choices: Lookup) -> Topology:
        """Refuse wrong choices before a run; return the testbed. Nothing is opened.

        Raises:
            ConfigError: A choice is wrong.
        """
        self._choices = choices
        topology = self._chosen()
        refuse_wrong_simulation(topology)
        chosen_profile(choices)
        NOISE_FLOOR.of(choices)
        chosen_qualifications(choices)
        return topology

    def specification(self, name: str, keys: Mapping[str, str] = MappingProxyType({})) -> object:  # noqa: ARG002
        """Load a specification, with keys of a test set otherwise.

        Raises:
            ConfigError: Tests of this study have none, or it does not fit.
        """
        key = next(iter(settings_of(self._choices, self.STUDY)), "")
        raise ConfigError(f"SET '{quoted(key)}': tests of {self.STUDY} have no keys to set")

    def _rerun(self) -> Rerun:
        """How to repeat the present test, for its record."""
        return rerun_of(self._choices, chosen_topology(self._choices), self.STUDY)

    def _chosen(self) -> Topology:
        """Read the choices of the suite; return the testbed.

        Raises:
            ConfigError: A choice is wrong.
        """
        topology = (
            generator_chosen(self._choices) if GENERATOR in read_by(self.STUDY) else chosen_topology(self._choices)
        )
        for each in read_by(self.STUDY):
            each.of(self._choices)
        return topology

    def _remark(self, sentence: str | None) -> None:
        """Log a sentence, and show it on the console."""
        if sentence:
            logger.info(sentence)
            self._progress.line(sentence)

    def _end(self, status: str, message: str) -> Any:  # noqa: ANN401 - a record of any study
        """Remove what is deployed, write the record with its CSV files; return it, None where no test is described."""
        if self._test is None:
            return None
        test, self._test = self._test, None
        record = self._run_state.end_test(
            test, status, message, lambda record: csv_files(self._tables(record)), self._report
        )
        if not self._run_state.ends_run:
            with self._run_state.ending():
                self._testbed.qualify_again()
        return record

    def _report(self, record: Any) -> None:  # noqa: ANN401 - a record of this study
        """Show the result of a test on the console, and log it."""

    def _tables(self, record: Any) -> Iterable[Table]:  # noqa: ANN401, ARG002 - a record of this study
        """Tables of a record, which become CSV files."""
        return ()

    @property
    def _running(self) -> _Test:
        if self._test is None:
            raise CsitError(f"no test is described; {self.FIRST_KEYWORD} comes first")
        return self._test


def variables_in_words(study: str) -> str:
    """Variables of a study for the documentation of a suite, in Robot's format."""
    rows = (f"| ``-v {each.name}:{each.example}`` | {each.meaning} | {each.default} |" for each in read_by(study))
    return "\n".join(["\n", "| =Variable= | =Meaning= | =Default= |", *rows])


def _remove_by_force(world: parts.Testbed) -> None:
    """Remove leftovers, and warn of each."""
    for line in clean_up(world, None):
        logger.warn(f"{line} was left and has been removed by force")


class TestbedSession:
    """The testbed of a run, opened once for nested suites."""

    __test__ = False  # not a pytest class

    def __init__(self) -> None:
        self._suites = 0
        self._topology: Topology | None = None
        self._world: parts.Testbed | None = None
        self._environment: Environment | None = None
        self.noise: tuple[CpuNoise, ...] = ()
        """Noise floor when it was opened."""
        self.beyond: UnqualifiedLoads | None = None
        """Qualification of its generator, and trials beyond that."""
        self._qualifications: Path | None = None
        self._qualified_again: set[tuple[str, int]] = set()

    def enter(self) -> bool:
        """Count a suite in; return whether it is the outermost one, which opens the testbed."""
        self._suites += 1
        return self._suites == 1

    def leave(self, then: Callable[[], None]) -> None:
        """Count a suite out; the outermost one closes the testbed, open or not.

        `then`: called afterwards in any case.
        """
        self._suites -= 1
        if self._suites <= 0:
            with ExitStack() as steps:
                steps.callback(then)
                self.close()

    def open(self, topology: Topology, noise_s: float, *, qualifications: Path | None = None) -> Environment:
        """Check the testbed, reserve it, remove leftovers, observe its noise floor, qualify its generator.

        Returns:
            Its fingerprint.

        `noise_s`: how long the noise floor is observed; 0 for not at all.
        `qualifications`: folder of the generator's qualification; where it has none, a short one is made. None: no
        qualification.

        Raises:
            Unsupported: A machine lacks something.
            CsitError: Another process uses it.
        """
        if topology.world is World.LAB:
            nodes = ", ".join(topology.nodes)
            announce(f"connecting to {nodes}; the first time, agents are installed there")
        self._topology = topology = located(topology)
        self._world = make_testbed(topology)
        for line in self._world.open():
            logger.warn(line)
        for line in (*attached(topology), *assumptions(topology)):
            announce(line)
        environment = self._world.environment()  # after opening, which may change settings of the machine
        options = {  # what its file says of drivers is a fact of the testbed, too
            f"option {path} of {name}": value
            for name, node in topology.nodes.items()
            for path, value in node.options.items()
        }
        self._environment = environment.model_copy(update={"settings": environment.settings | options})
        self.noise = self._noise_floor(noise_s, on_console=topology.world is not World.SIM)
        self._qualifications = qualifications
        if qualifications is not None:
            found = self._qualified(topology, qualifications, on_console=topology.world is not World.SIM)
            if found is not None:
                self.beyond = UnqualifiedLoads(found)
                self._world.on_trial = self.beyond.look
        logger.info(f"testbed {topology.metadata.name} is open")
        return self._environment

    def _noise_floor(self, noise_s: float, *, on_console: bool) -> tuple[CpuNoise, ...]:
        """Observe it and say what it is. A run goes on without it where a node does not tell."""
        if not noise_s or self._world is None:
            return ()
        try:
            found = self._world.noise(noise_s)
        except CsitError as error:
            logger.warn(f"the noise floor is not known: {error}")
            return ()
        if words := in_words(found):
            announce(words, on_console=on_console)
        return found

    def _qualified(self, topology: Topology, folder: Path, *, on_console: bool) -> Qualification | None:
        """Look for the qualification of the generator, or make one. A run goes on without it where that fails."""
        assert self._world is not None and self._environment is not None  # noqa: S101 - it is open
        try:
            found = qualification_for_run(
                topology,
                self._world,
                self._environment,
                partial(announce, on_console=on_console),
                folder,
            )
        except CsitError as error:
            logger.warn(f"the generator is not qualified: {error}")
            _remove_by_force(self._world)
            return None
        if found is not None:
            self._world.way = found.way
            logger.info(range_in_words(found))
        return found

    def qualify_again(self) -> None:
        """Measure again what the last test has shown to be too low in the qualification; each point once in a run.

        A qualification of a disturbed minute would mark every later result.
        """
        if self.beyond is None or self._topology is None or self._world is None or self._qualifications is None:
            return
        again = {
            point: offered_pps
            for point, offered_pps in self.beyond.take_disproved().items()
            if (point.frame.name, point.flows) not in self._qualified_again
        }
        if not again:
            return
        self._qualified_again |= {(point.frame.name, point.flows) for point in again}
        for point, offered_pps in again.items():
            announce(
                f"qualifying the generator again, for {effort_in_words(self._topology)}: {rate(offered_pps)} lost "
                f"nothing in the test, and it was qualified up to {rate(point.loss_free_pps or 0.0)} without loss "
                f"({place_of(point)})"
            )
        try:
            self.beyond.qualification = qualify_again(
                self._topology, self._world, self.beyond.qualification, again, self._qualifications
            )
        except RunStopped:
            raise
        except CsitError as error:
            logger.warn(f"the generator is not qualified again: {error}")
            _remove_by_force(self._world)
            return
        logger.info(range_in_words(self.beyond.qualification))

    def close(self) -> None:
        """Remove leftovers of a run that was cut short, and release the testbed."""
        world, self._world = self._world, None
        if world is None:
            return
        with ExitStack() as steps:
            steps.callback(world.close)
            _remove_by_force(world)

    def opened(self) -> tuple[Topology, parts.Testbed, Environment]:
        """Return topology, world and fingerprint.

        Raises:
            CsitError: It is not open.
        """
        if self._topology is None or self._world is None or self._environment is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        return self._topology, self._world, self._environment
