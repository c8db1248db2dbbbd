"""Keywords of the density suites, and the listener that makes their rows."""

import time
from typing import Any, Literal

from robot.api import logger
from robot.api.deco import library
from robot.libraries.BuiltIn import BuiltIn, register_run_keyword

from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.request.frames import frame as frame_named
from resources.libraries.python.model.request.variables import (
    AT_RATE,
    BACK_TO_BACK,
    ENERGY,
    LOSSES,
    PREDICT,
    STACKS,
    Lookup,
)
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.cost import RunPlan, TimedTest
from resources.libraries.python.quantities import rate
from resources.libraries.python.recording.marker import REFUSED_MARKER
from resources.libraries.python.search.energy import energy_in_words
from resources.libraries.python.search.findings.verdict import verdict_text
from resources.libraries.python.search.throughput import Progress
from resources.libraries.python.studies.density.model import REFUSED_CELLS, DensityRecord, RefusedCell
from resources.libraries.python.studies.density.planning.extras import LATENCY_LOADS, chosen_extras
from resources.libraries.python.studies.density.run import NOT_MEASURED, DensityTest
from resources.libraries.python.studies.density.search_priors import MeasuredCells, PriorBook
from resources.libraries.python.studies.density.suite_rows import (
    cell_of,
    chosen_priors,
    drop_placeholders,
    durations_of,
    has_placeholders,
    keys_of,
    put_rows,
    rows_for,
)
from resources.libraries.python.studies.shared.boundary import REDACTION, defect_sentence, keyword, skipping, variable
from resources.libraries.python.studies.shared.choices import chosen_profile, chosen_topology, resumed
from resources.libraries.python.studies.shared.choices_before_run import AT_START
from resources.libraries.python.studies.shared.library import StudyKeywords
from resources.libraries.python.studies.shared.progress import RUN, human_range, human_time
from resources.libraries.python.studies.shared.run_state import ends_run
from resources.libraries.python.testbed.deployment.call_stacks import refuse_unsampled

_TRIAL_OVERHEAD_S = 0.05


@library(scope="GLOBAL", listener=["SELF", REDACTION, AT_START], doc_format="ROBOT")
class DensityLibrary(StudyKeywords[DensityTest]):
    """Measures cells of the density matrix.

    A test describes what it measures, deploys the cell, verifies that packets arrive for every service instance and
    direction, searches, and is closed, which removes the cell and writes its record.

    Where the variable ``RESUME`` names the folder of a run that was cut short, that run continues: tests that have
    ended are carried over, the others are measured.
    """

    RESUMES_ELSEWHERE = False
    FIRST_KEYWORD = "Describe Test"

    def __init__(self) -> None:
        super().__init__()
        self._tests = self._number = 0
        self._began_s = 0.0
        self._containers = ""
        self._priors: PriorBook | None = None
        self._measured = MeasuredCells()
        self._predicts = True
        self._refused: tuple[RefusedCell, ...] = ()

    # -- listener -----------------------------------------------------------------------------------------------------

    def start_suite(self, data: Any, result: Any) -> None:  # noqa: ANN401 (Robot's own types are not typed)
        """Put the rows of the plan into a density suite; where that fails, its setup fails with the reason."""
        try:
            self._make_rows(data, result)
        except CsitError as error:
            data.setup.config(name="Fail", args=[str(error)])
        except Exception as error:  # boundary: Robot would write a traceback, and run placeholders
            data.setup.config(name="Fail", args=[defect_sentence(error)])

    def _make_rows(self, data: Any, result: Any) -> None:  # noqa: ANN401
        lookup = resumed(variable)
        made = rows_for(lookup)
        self._refused = ()
        if made is None:
            return
        if has_placeholders(data):
            options = variable("OPTIONS")
            put_rows(data, made, options.include, options.exclude)
        self._refused = tuple(dict.fromkeys(row.refused for row in made.refused))
        if self._refused:
            lines = [f"- {each.cell.name}: {each.reason}" for each in self._refused]
            result.metadata["Cells that do not fit"] = "\n".join(lines)
        done = self._run_state.done_before(lookup)
        self._tests, self._number = len(data.tests), 0
        is_simulated = chosen_topology(lookup).world is World.SIM
        if not is_simulated and not all(RUN.knows(test.full_name) for test in data.tests):
            # Robot was started itself, and does not know the suites that follow.
            each_s = durations_of(lookup, made, chosen_priors(lookup))
            RUN.plan(RunPlan([TimedTest(test.full_name, each_s.get(test.name, 0.0)) for test in data.tests]))
        carried = sum(key in done for key in keys_of(data, made, str(lookup("TEST_TYPE"))))
        lines = [f"{carried} of {self._tests} tests are carried over"] if carried else []
        self._progress.begin(data.name, lines, simulated=is_simulated)

    def end_suite(self, data: Any, result: Any) -> None:  # noqa: ANN401 (as above)
        """Drop the suite's rows, and where the run ends here, the placeholders of the suites that follow."""
        # Robot would keep them to the end of the run, beside their results. One stays: the last suite looks for any.
        del data.tests[1:]
        if self._run_state.ends_run or any(ends_run(test.tags, test.message) for test in result.tests):
            drop_placeholders(data)

    def _announce(self) -> None:
        if self._refused:
            logger.info(f"{REFUSED_MARKER}{REFUSED_CELLS.dump_json(self._refused).decode()}")

    def _chosen(self) -> Topology:
        chosen_profile(self._choices)  # a wrong name is an error now and not in the first test
        chosen_extras(self._choices)
        if AT_RATE.of(self._choices) and self._choices("TEST_TYPE") not in {None, TestType.LATENCY.value}:
            raise ConfigError("AT_RATE is measured by latency suites only, such as tests/density/csc-latency.robot")
        self._priors = chosen_priors(self._choices)
        self._predicts = PREDICT.of(self._choices)
        return super()._chosen()

    def refuse_wrong(self, choices: Lookup) -> Topology:
        """Refuse rows that cannot be made, too: else they are made when their suite starts, after others have run."""
        rows_for(choices)
        return super().refuse_wrong(choices)

    @keyword
    def open_testbed(self) -> None:
        """Open the testbed as in other studies, and see that what variables ask for can be measured there.

        | Suite Setup | Open Testbed |
        """
        super().open_testbed()
        if STACKS.of(self._choices):
            refuse_unsampled(self._testbed.opened()[1])

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
        cache_ways: int = 0,
    ) -> None:
        """Describe what the test measures: a cell with its sizes, and a frame size.

        ``nf_chains`` are service instances, ``nf_nodes`` NFs in each. ``nf_size`` is 0.5c, 1c, 2c, 3c and so on, or one
        size for each NF such as 1c+0.5c. ``cache_ways`` are ways of the last-level cache of each NF; 0 for none of its
        own.

        | Describe Test | NDRPDR | CSC | 2 | 1 | 64B | 1c | 1 |
        """
        cell = cell_of(service_type, nf_chains, nf_nodes, nf_size, vswitch_cores, nf_kinds, cache_ways)
        profile = chosen_profile(self._choices)
        asked = MeasurementRequest(test_type=test_type, cell=cell, frame=frame_named(frame), profile=profile)
        test = self._test_of(asked)
        self._number += 1
        self._run_state.begin_test(test.key, failed_again=False, on_carried=self._measured.add)
        self._test, self._began_s = test, time.monotonic()
        self._progress.open()
        self._progress.status(f"{self._head}: deploying")

    def _test_of(self, asked: MeasurementRequest) -> DensityTest:
        topology, world, environment = self._testbed.opened()
        test = DensityTest(
            topology,
            world,
            asked,
            environment,
            self._searching,
            priors=self._priors,
            measured=self._measured if self._predicts else None,
            noise=self._testbed.noise,
            qualification=beyond.qualification if (beyond := self._testbed.beyond) is not None else None,
        )
        test.draft.rerun = self._rerun()
        return test

    @keyword
    def measure_with_care(self, phases: str) -> None:
        """Run the keyword ``phases`` for the test that was described, with a health gate after it.

        When the system under test breaks in it (a part dies or hangs, the deployment fails), the deployment is removed
        and the phases run once more. When it breaks again, its cell goes into quarantine: the test fails with the
        reason, and other tests of the same cell are skipped. A result is never tried again, also not 'no traffic'.

        | Measure With Care | Phases Of Mrr |
        """
        self._run_state.measure(self._running, self._again, lambda: BuiltIn().run_keyword(phases))

    def _again(self) -> DensityTest:
        self._test = self._test_of(self._running.draft.asked)
        return self._test

    @property
    def _head(self) -> str:
        asked = self._running.draft.asked
        return f"test {self._number} of {self._tests}, {asked.cell.name} {asked.frame.name}"

    def _searching(self, progress: Progress) -> None:
        draft = self._running.draft
        later_s = LATENCY_LOADS * draft.asked.profile.latency_duration_s
        later_s += chosen_extras(self._choices).seconds(draft.asked.test_type, _TRIAL_OVERHEAD_S)
        bounds = ", ".join(f"{name} {human_range(low, high)}" for name, (low, high) in progress.bounds.items())
        self._progress.status(f"{self._head}: trial {progress.trials}, {bounds}", progress.remaining_s + later_s)

    @keyword
    def measure_idle_power(self) -> None:
        """Measure the power of all nodes before the deployment, for as long as the variable ``ENERGY`` says.

        Without that variable nothing is measured.

        | Measure Idle Power |
        | Deploy Cell |
        """
        trial_s = ENERGY.of(self._choices)
        if trial_s is not None:
            self._progress.status(f"{self._head}: idle power", trial_s)
            self._running.idle_energy(trial_s)

    @keyword
    def deploy_cell(self) -> None:
        """Plan the cell and deploy it; the placement of data threads is read back and compared with the plan.

        | Deploy Cell |
        """
        logger.info(f"deployed in {skipping(self._running.deploy):.3f} s")
        containers = self._running.draft.facts.get("functions", {}).get("containers", "")
        if containers and containers != self._containers:  # the choice of an engine
            self._containers = containers
            self._progress.line(f"containers of NFs: {containers}")

    @keyword
    def verify_traffic(self) -> None:
        """Send at a low rate and fail unless packets arrive for every service instance and direction.

        The message names the last hop that saw them.

        | Verify Traffic |
        """
        skipping(self._running.verify_traffic)

    @keyword
    def search_throughput(self, *goals: Literal["NDR", "PDR"]) -> None:
        """Search the throughput for the goals in one search; the variable ``SEARCH`` says how.

        Where the variable ``PRIORS`` names a folder with earlier results, the search starts from the newest one of the
        same cell on the same machine; otherwise from what at least three cells of its matrix predict that this run has
        measured, unless the variable ``PREDICT`` is ``off``. With ``SEARCH:soak`` the goal is that of the profile,
        whatever goals are named.
        A goal that cannot be reached is a result, not a failure.

        | Search Throughput | NDR | PDR |
        """
        self._remark(self._running.too_noisy())
        logger.info("; ".join(self._running.search(goals)))

    @keyword
    def measure_latency(self) -> None:
        """Measure latency at 0, 10, 50 and 90 % of PDR for every service instance and direction.

        | Search Throughput | PDR |
        | Measure Latency |
        """
        logger.info("; ".join(self._running.latency()))

    @keyword
    def measure_at_rate(self) -> None:
        """Decide at one load whether NDR and PDR are met there for every instance, and measure latency there.

        The variable ``AT_RATE`` is the rate of each instance in packets per second, both directions together.

        | Measure At Rate |
        """
        rate_pps = AT_RATE.of(self._choices)
        if rate_pps is not None:
            self._progress.status(f"{self._head}: trials at {rate(rate_pps)} of each instance")
            logger.info(self._running.at_rate(rate_pps))

    @keyword
    def measure_losses(self) -> None:
        """Count losses, reordering and duplicates packet by packet at NDR, at PDR and in overload.

        The variable ``LOSSES`` is the length of each trial in seconds; without it nothing is measured. Where the
        generator cannot number packets, or count so many, the record has the reason.

        | Search Throughput | NDR | PDR |
        | Measure Losses |
        """
        duration_s = LOSSES.of(self._choices)
        if duration_s is not None:
            lines = self._running.losses(duration_s)
            logger.info("\n".join(lines))
            if reasons := dict.fromkeys(line.partition(" ")[2] for line in lines if f" {NOT_MEASURED}: " in line):
                logger.warn(f"losses {'; '.join(reasons)}")

    @keyword
    def measure_back_to_back(self) -> None:
        """Search the longest burst of which no frame is lost (RFC 9004).

        The variable ``BACK_TO_BACK`` is the number of repetitions. Without it nothing is measured; where
        bursts fill no buffer, a warning says so.

        | Search Throughput | NDR | PDR |
        | Measure Back To Back |
        """
        repetitions = BACK_TO_BACK.of(self._choices)
        if repetitions is None:
            return
        try:
            text = self._running.back_to_back(
                repetitions,
                lambda number: self._progress.status(f"{self._head}: longest burst {number} of {repetitions}"),
            )
            logger.info(text)
        except Unsupported as error:
            self._running.draft.warnings.append(f"back-to-back frames: {error}")
            logger.warn(f"back-to-back frames were not measured: {error}")

    @keyword
    def measure_energy(self) -> None:
        """Measure the power of all nodes at 0, 10, 50 and 90 % of PDR, and the energy per packet.

        The variable ``ENERGY`` is the length of each trial in seconds; without it nothing is measured. Where a node
        has no meter, a warning has the reason.

        | Search Throughput | NDR | PDR |
        | Measure Energy |
        """
        trial_s = ENERGY.of(self._choices)
        if trial_s is None:
            return
        found = self._running.energy(
            trial_s, lambda load_pps: self._progress.status(f"{self._head}: energy at {rate(load_pps)}", trial_s)
        )
        logger.info("\n".join(energy_in_words(found)))
        for node, why in found.unmetered.items():
            logger.warn(f"the energy of {node} was not measured: {why}")

    @keyword
    def sample_stacks(self) -> None:
        """Sample the call stacks of the data CPUs in a trial at PDR, or at NDR where PDR was not found.

        The variable ``STACKS`` is the length of the trial in seconds; without it nothing is sampled.

        | Search Throughput | NDR | PDR |
        | Sample Stacks |
        """
        trial_s = STACKS.of(self._choices)
        if trial_s is not None:
            self._progress.status(f"{self._head}: sampling call stacks", trial_s)
            logger.info(self._running.stacks(trial_s))

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
        self._end(status, message)

    def _report(self, record: DensityRecord) -> None:
        self._measured.add(record)
        cell = f"{record.cell.name} {record.asked.frame.name}"
        found = f"{result_in_words(record)} {human_time(time.monotonic() - self._began_s)}"
        self._progress.line(f"test {self._number} of {self._tests}, {cell}: {found}")


register_run_keyword(__name__, "measure_with_care", deprecation_warning=False)  # type: ignore[no-untyped-call]


def result_in_words(result: DensityRecord) -> str:
    """Numbers of a test with their verdict."""
    goals = (("NDR", result.ndr), ("PDR", result.pdr), ("SOAK", result.soak))
    found = [
        f"{name} {rate(goal.lower_pps)}" if goal.lower_pps is not None else f"{name} not reached"
        for name, goal in goals
        if goal is not None
    ]
    received = (("MRR", result.mrr), ("ORR", result.orr))
    found += [f"{name} {rate(number.mean_pps)}" for name, number in received if number is not None]
    if result.at_rate is not None:
        found.append(result.at_rate.text)
    numbers = {name: result.verdict.of(name) for name, number in (*goals, *received) if number is not None}
    verdict = verdict_text(numbers or {"": result.verdict.kinds})
    note = " (simulated)" if result.simulated else ""
    return f"{', '.join(found) or result.message or 'no result'}{note} [{verdict}]"
