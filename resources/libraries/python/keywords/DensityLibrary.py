"""Keywords of the density suites, and the listener that makes their rows."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from robot.api import SkipExecution, logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn, register_run_keyword

from resources.libraries.python.deployment.experiment import Experiment
from resources.libraries.python.deployment.health import clean_up
from resources.libraries.python.deployment.parts import World
from resources.libraries.python.deployment.worlds import world_of
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.keywords.choices import (
    Lookup,
    chosen_priors,
    chosen_profile,
    chosen_topology,
    rerun,
    resumed,
)
from resources.libraries.python.keywords.keeper import Keeper
from resources.libraries.python.keywords.progress import ConsoleProgress
from resources.libraries.python.keywords.suite_rows import has_placeholders, keys_of, put_rows, rows_for
from resources.libraries.python.model.cell import Cell, NfSize, ServiceType, TestType
from resources.libraries.python.model.frames import frame as frame_named
from resources.libraries.python.model.result import Asked, Environment, Result
from resources.libraries.python.model.selection import parse_kinds
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.recording.priors import PriorBook


@library(scope="GLOBAL", listener="SELF", doc_format="ROBOT")
class DensityLibrary:
    """Measures cells of the density matrix.

    A test describes what it measures, deploys the cell, verifies that packets arrive for every service instance and
    direction, searches, and is closed, which removes the cell and writes its record.
    """

    def __init__(self) -> None:
        self._topology: Topology | None = None
        self._world: World | None = None
        self._environment: Environment | None = None
        self._experiment: Experiment | None = None
        self._choices: Lookup = _variable
        self._progress = ConsoleProgress()
        self._keeper = Keeper(self._progress)
        self._priors: PriorBook | None = None
        self._opened = 0

    # -- listener -----------------------------------------------------------------------------------------------------

    def start_suite(self, data: Any, result: Any) -> None:  # noqa: ANN401 (Robot's own types are not typed)
        """Put the rows of the plan into a density suite."""
        try:
            lookup = resumed(_variable)
            made = rows_for(lookup)
        except CsitError as error:
            data.setup.config(name="Fail", args=[str(error)])
            return
        if made is None:
            return
        if has_placeholders(data):
            options = _variable("OPTIONS")
            put_rows(data, made, options.include, options.exclude)
        for refused in made.refused:
            result.metadata[f"Does not fit: {refused.cell}"] = refused.reason
        done = self._keeper.done_before(lookup)
        self._progress.suite(data.name, len(data.tests), sum(key in done for key in keys_of(data, lookup)))

    # -- testbed ------------------------------------------------------------------------------------------------------

    @keyword
    def open_testbed(self) -> None:
        """Load the testbed that the variable ``TOPOLOGY`` names, check it, reserve it and remove leftovers.

        Fails in one sentence when the file is wrong, the machine lacks something, somebody else uses it, or there is no
        space for results. Use it as suite setup; where an outer suite has opened the testbed, it stays open until that
        suite closes it.

        Where the variable ``RESUME`` names the folder of a run that was cut short, that run goes on: tests that have
        ended are carried over from its journal, the others are measured.

        | Suite Setup | Open Testbed |
        """
        self._opened += 1
        if self._opened > 1:
            return
        self._choices = resumed(_variable)
        self._topology = chosen_topology(self._choices)
        chosen_profile(self._choices)  # a wrong name is told now and not in the first test
        self._priors = chosen_priors(self._choices)
        self._keeper.prepare(self._choices, Path(str(_variable("OUTPUT DIR"))))
        self._world = world_of(self._topology)
        for line in self._world.open():
            logger.warn(line)
        self._environment = self._world.environment()  # after opening, which may change settings of the machine
        self._keeper.open(self._choices, self._topology, self._environment)
        logger.info(f"testbed {self._topology.metadata.name} is open")

    @keyword
    def close_testbed(self) -> None:
        """Remove what is left of a run that was cut short, and give the testbed back. Use it as suite teardown.

        | Suite Teardown | Close Testbed |
        """
        self._opened -= 1
        if self._opened > 0:
            return
        world, self._world = self._world, None
        with ExitStack() as steps:
            steps.callback(self._keeper.close)
            if world is not None:
                steps.callback(world.close)
                for line in clean_up(world, None):
                    logger.warn(f"{line} was still there and was removed by force")

    # -- phases of a test ---------------------------------------------------------------------------------------------

    @keyword
    def describe_test(  # noqa: PLR0917 - a row of a Robot table
        self,
        test_type: TestType,
        service_type: ServiceType,
        nf_chains: int,
        nf_nodes: int,
        frame: str = "64B",
        nf_size: str = "1c",
        vswitch_cores: Literal[1, 2, 4] = 1,
        nf_kinds: str = "",
    ) -> None:
        """Say what the test measures: a cell with its sizes, and a frame size.

        ``nf_chains`` are service instances, ``nf_nodes`` NFs in each. ``nf_size`` is 0.5c, 1c or 2c, or one size for
        each NF such as 1c+0.5c.

        | Describe Test | NDRPDR | CSC | 2 | 1 | 64B | 1c | 1 |
        """
        sizes = tuple(NfSize(size) for size in nf_size.split("+"))
        asked = Asked(
            test_type=test_type,
            cell=Cell(
                service_type=service_type,
                nf_chains=nf_chains,
                nf_nodes=nf_nodes,
                nf_sizes=sizes,
                vs_dtc=vswitch_cores,
                nf_kinds=parse_kinds(nf_kinds),
            ),
            frame=frame_named(frame),
            profile=chosen_profile(self._choices),
        )
        self._keeper.begin_test(asked)
        self._experiment = self._experiment_for(asked)
        self._progress.test(asked, simulated=self._experiment.draft.simulation is not None)

    def _experiment_for(self, asked: Asked) -> Experiment:
        if self._topology is None or self._world is None or self._environment is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        report = self._progress.search
        experiment = Experiment(self._topology, self._world, asked, self._environment, report, priors=self._priors)
        experiment.draft.rerun = rerun(self._choices, self._topology)
        return experiment

    @keyword
    def measure_with_care(self, phases: str) -> None:
        """Run the keyword ``phases`` for the test that was described, with a health gate after it.

        When the system under test breaks in it (a part dies or hangs, the deployment fails), the cell is removed and
        all is done once more. When it breaks again, the cell goes into quarantine: the test fails with the reason, and
        other tests of the same cell are skipped. A result is never tried again, also not 'no traffic'.

        | Measure With Care | Phases Of Mrr |
        """

        def again() -> Experiment:
            self._experiment = self._experiment_for(self._running.draft.asked)
            return self._experiment

        self._keeper.measure(self._running, again, lambda: BuiltIn().run_keyword(phases))

    @keyword
    def deploy_cell(self) -> None:
        """Plan the cell and bring it to life; data threads are read back and compared with the plan.

        | Deploy Cell |
        """
        seconds = _skipping(self._running.deploy)
        logger.info(f"deployed in {seconds:.3f} s")

    @keyword
    def verify_traffic(self) -> None:
        """Send at a low rate and fail unless packets arrive for every service instance and direction.

        The message names the last hop that saw them.

        | Verify Traffic |
        """
        self._running.verify_traffic()

    @keyword
    def search_throughput(self, *goals: Literal["NDR", "PDR"]) -> None:
        """Search the throughput for the goals in one search; the variable ``SEARCH`` says how.

        Where the variable ``PRIORS`` names a folder with earlier results, the search starts from the newest one of the
        same cell on the same machine. With ``SEARCH:soak`` the goal is that of the profile, whatever goals are named.
        A goal that cannot be reached is a result, not a failure.

        | Search Throughput | NDR | PDR |
        """
        logger.info("; ".join(self._running.search(goals)))

    @keyword
    def measure_latency(self) -> None:
        """Measure latency at 0, 10, 50 and 90 % of PDR for every service instance and direction.

        | Search Throughput | PDR |
        | Measure Latency |
        """
        logger.info("; ".join(self._running.latency()))

    @keyword
    def measure_mrr(self) -> None:
        """Measure the maximum receive rate: what comes back at the highest load that can be offered.

        | Measure Mrr |
        """
        logger.info("; ".join(self._running.mrr()))

    @keyword
    def close_test(self, status: str, message: str) -> None:
        """Remove the cell and write the record of the test. Use it as test teardown; a failed removal fails the test.

        | Test Teardown | Close Test | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        if self._experiment is None:
            return
        experiment, self._experiment = self._experiment, None

        def finish(removal: str) -> Result:
            return experiment.draft.finish(
                test_id=str(BuiltIn().get_variable_value("${SUITE NAME}")) + "." + str(_variable("TEST NAME")),
                test_name=str(_variable("TEST NAME")),
                tags=tuple(_variable("TEST TAGS")),
                passed=status == "PASS" and not removal,
                message="; ".join(filter(None, [message, removal])),
            )

        self._keeper.end_test(finish, experiment, message, status)

    @property
    def _running(self) -> Experiment:
        if self._experiment is None:
            raise CsitError("no test is described; Describe Test comes first")
        return self._experiment


register_run_keyword(__name__, "measure_with_care", deprecation_warning=False)  # type: ignore[no-untyped-call]


def _skipping(step: Callable[[], float]) -> float:
    """Run a step; what this machine cannot do skips the test."""
    try:
        return step()
    except Unsupported as error:
        raise SkipExecution(str(error)) from error


def _variable(name: str) -> Any:  # noqa: ANN401 (a Robot variable is anything)
    """A Robot variable, None where it is not set."""
    return BuiltIn().get_variable_value(f"${{{name}}}")
