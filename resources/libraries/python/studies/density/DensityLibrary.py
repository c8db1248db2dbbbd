"""Keywords of the density suites, and the listener that makes their rows."""

from pathlib import Path
from typing import Any, Literal

from robot.api import logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn, register_run_keyword

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.cell import ServiceType, TestType
from resources.libraries.python.model.frames import frame as frame_named
from resources.libraries.python.model.result import Asked, Result
from resources.libraries.python.studies.density.keeper import Keeper
from resources.libraries.python.studies.density.progress import ConsoleProgress
from resources.libraries.python.studies.density.run import Experiment
from resources.libraries.python.studies.density.search_priors import PriorBook
from resources.libraries.python.studies.density.suite_rows import cell_of, has_placeholders, keys_of, put_rows, rows_for
from resources.libraries.python.studies.shared.choices import (
    Lookup,
    chosen_priors,
    chosen_profile,
    chosen_topology,
    rerun,
    resumed,
)
from resources.libraries.python.studies.shared.library import MeasuringLibrary
from resources.libraries.python.studies.shared.robot_context import skipping, variable


@library(scope="GLOBAL", listener="SELF", doc_format="ROBOT")
class DensityLibrary(MeasuringLibrary):
    """Measures cells of the density matrix.

    A test describes what it measures, deploys the cell, verifies that packets arrive for every service instance and
    direction, searches, and is closed, which removes the cell and writes its record.

    Where the variable ``RESUME`` names the folder of a run that was cut short, that run goes on: tests that have ended
    are carried over from its journal, the others are measured.
    """

    def __init__(self) -> None:
        super().__init__()
        self._experiment: Experiment | None = None
        self._choices: Lookup = variable
        self._progress = ConsoleProgress()
        self._keeper = Keeper(self._progress)
        self._priors: PriorBook | None = None

    # -- listener -----------------------------------------------------------------------------------------------------

    def start_suite(self, data: Any, result: Any) -> None:  # noqa: ANN401 (Robot's own types are not typed)
        """Put the rows of the plan into a density suite."""
        try:
            lookup = resumed(variable)
            made = rows_for(lookup)
        except CsitError as error:
            data.setup.config(name="Fail", args=[str(error)])
            return
        if made is None:
            return
        if has_placeholders(data):
            options = variable("OPTIONS")
            put_rows(data, made, options.include, options.exclude)
        for refused in made.refused:
            result.metadata[f"Does not fit: {refused.cell}"] = refused.reason
        done = self._keeper.done_before(lookup)
        self._progress.suite(data.name, len(data.tests), sum(key in done for key in keys_of(data, lookup)))

    # -- testbed ------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._choices = resumed(variable)
        topology = chosen_topology(self._choices)
        chosen_profile(self._choices)  # a wrong name is told now and not in the first test
        self._priors = chosen_priors(self._choices)
        self._keeper.prepare(self._choices, Path(str(variable("OUTPUT DIR"))))
        environment = self._testbed.open(topology)
        self._keeper.open(self._choices, topology, environment)

    def _close(self) -> None:
        self._keeper.close()

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

        ``nf_chains`` are service instances, ``nf_nodes`` NFs in each. ``nf_size`` is 0.5c, 1c, 2c, 3c and so on, or one
        size for each NF such as 1c+0.5c.

        | Describe Test | NDRPDR | CSC | 2 | 1 | 64B | 1c | 1 |
        """
        cell = cell_of(service_type, nf_chains, nf_nodes, nf_size, vswitch_cores, nf_kinds)
        profile = chosen_profile(self._choices)
        asked = Asked(test_type=test_type, cell=cell, frame=frame_named(frame), profile=profile)
        self._keeper.begin_test(asked)
        self._experiment = self._experiment_for(asked)
        self._progress.test(asked, simulated=self._experiment.draft.simulation is not None)

    def _experiment_for(self, asked: Asked) -> Experiment:
        topology, world, environment = self._testbed.opened()
        report = self._progress.search
        experiment = Experiment(topology, world, asked, environment, report, priors=self._priors)
        experiment.draft.rerun = rerun(self._choices, topology)
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
        seconds = skipping(self._running.deploy)
        logger.info(f"deployed in {seconds:.3f} s")
        self._progress.deployed(self._running.draft.facts)

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
        """Measure the maximum receive rate: what comes back at line rate, or at the most that the generator can send.

        | Measure Mrr |
        """
        logger.info("; ".join(self._running.mrr()))

    @keyword
    def measure_orr(self) -> None:
        """Measure the overload receive rate: what comes back at four times the best rate that was seen to come back.

        Nothing is measured where line rate, or the most that the generator can send, is less than that: then it is MRR.

        | Measure Mrr |
        | Measure Orr |
        """
        logger.info("; ".join(self._running.orr()))

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
                test_id=f"{variable('SUITE NAME')}.{variable('TEST NAME')}",
                test_name=str(variable("TEST NAME")),
                tags=tuple(variable("TEST TAGS")),
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
