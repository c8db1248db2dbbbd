"""Keywords of the characterization suites: services under a row of loads, their profiles, predictions of chains."""

from robot.api import SkipExecution, logger
from robot.api.deco import keyword, library

from resources.libraries.python.errors import CsitError, PlanError
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.studies.shared.characterization_keeper import ending
from resources.libraries.python.studies.shared.console import human_time
from resources.libraries.python.studies.shared.library import CharacterizingLibrary
from resources.libraries.python.studies.shared.robot_context import skipping, variable
from resources.libraries.python.studies.sweep.analysis.sentences import errors_in_words, profile_in_words
from resources.libraries.python.studies.sweep.choices import (
    SweepRow,
    asked_sweep,
    generator_chosen,
    rerun_of_sweep,
    resumed_sweeps,
    shelf,
)
from resources.libraries.python.studies.sweep.journal import SweepJournal
from resources.libraries.python.studies.sweep.load_steps import duration_s, loads
from resources.libraries.python.studies.sweep.profile_store import Shelf
from resources.libraries.python.studies.sweep.progress import SweepProgress
from resources.libraries.python.studies.sweep.run import ServiceSweep

_EACH_SECOND_S = 0.14
"""What a second of load takes beyond itself: preparing, settling and reading of counters. Measured on local.yaml."""


@library(scope="GLOBAL", doc_format="ROBOT")
class CharacterizationLibrary(CharacterizingLibrary):
    """Measures services under a row of loads.

    A service is a network function alone, a chain of them, or branches between shared ones. A test describes its
    sweep, deploys the service, verifies that packets arrive, runs the sweep, profiles the service, and is closed, which
    removes the service and writes the record.

    The variable ``GENERATOR`` names another traffic generator than the testbed's file does. Where the variable
    ``RESUME`` names the folder of a run that was cut short, that run goes on: tests that had passed are carried over,
    and a sweep that was cut goes on with its next load.
    """

    def __init__(self) -> None:
        super().__init__()
        self._progress = SweepProgress()
        self._shelf: Shelf | None = None
        self._service: ServiceSweep | None = None
        self._passed: dict[str, str] = {}  # tests of this process, by the digest of their sweep

    @keyword
    def describe_sweep(  # noqa: PLR0917 - a row of a Robot table
        self,
        name: str,
        nf_kinds: str,
        nf_sizes: str = "1c",
        branches: str = "1",
        shared_nodes: str = "",
        frame: str = "",
        flows: str = "",
        protocol: str = "",
        rates: str = "",
        duration: str = "",
        bursts: str = "",
        once: bool = False,
    ) -> None:
        """Say what the test measures: a service, and what is sent through it. Skips the test where it does not fit.

        ``nf_kinds`` are the network functions in the order of the chain, such as ``linux_router+linux_firewall``, or
        ``none`` for the path without any, with a cable in their place; and
        ``nf_sizes`` their flavors: 0.5c, 1c, 2c, 3c and so on for all, or one for each. With ``branches`` there are so
        many chains beside each other; ``shared_nodes`` are one for all branches: ``1+3`` of three is a split and merge.

        ``rates`` are packets per second of each flow, one way: ``10000-200000/10000`` (first-last/step) or ``auto``,
        twelve steps up to 1.6 times what the service forwards in a short test, of the path up to what it forwards.
        ``duration`` is in seconds, of each load. ``bursts`` are one load that comes and goes instead: ``on 2 off 1 at
        50000``, or ``at 1.2x`` for a multiple of what the service forwards.

        What is not given is as the variables ``FRAME``, ``FLOWS``, ``PROTOCOL``, ``SWEEP_RATES`` and ``SWEEP_DURATION``
        say. Traffic goes both ways. With ``once`` the test is skipped where another one of the same run has measured
        the same: its record is there.

        | Describe Sweep | firewall | linux_firewall | rates=10000-200000/10000 | frame=512B |
        """
        self._keeper.check()
        topology, world, environment = self._testbed.opened()
        row = SweepRow(
            name, nf_kinds, nf_sizes, branches, shared_nodes, frame, flows, protocol, rates, duration, bursts
        )
        asked = asked_sweep(self._choices, topology, row)
        service = ServiceSweep(topology, world, asked, environment, self._progress.load)
        service.draft.rerun = rerun_of_sweep(self._choices)
        try:
            skipping(service.plan)
        except PlanError as error:
            raise SkipExecution(str(error)) from error
        digest = service.digest()
        if once and digest in self._passed:
            raise SkipExecution(f"{asked.name} is measured already, by {self._passed[digest]}: its record is there")

        def carried(record: Characterization) -> None:
            if self._shelf is not None:
                self._shelf.put(record)
            self._passed[digest] = record.test_id

        service.go_on(self._resumed(SweepJournal, digest, asked.name, carried))
        self._progress.test(asked.name, simulated=service.draft.simulation is not None)
        self._service = service

    @keyword
    def deploy_service(self) -> None:
        """Bring the service to life; where its data threads run is read back.

        | Deploy Service |
        """
        logger.info(f"deployed in {skipping(self._running.deploy):.3f} s")

    @keyword
    def verify_traffic(self) -> None:
        """Send at a low rate and fail unless packets arrive for every branch and direction.

        The message names the last hop that saw them.

        | Verify Traffic |
        """
        skipping(self._running.verify_traffic)

    @keyword
    def run_sweep(self) -> None:
        """Run all loads, lowest first, and sample throughput, loss, delay and CPUs every second.

        A load that the generator could not offer is flagged and the sweep goes on.

        | Run Sweep |
        """
        service = self._running
        with ending():
            spec = skipping(service.spec)
        row = loads(spec)
        expected = human_time(duration_s(spec, each_second_s=_EACH_SECOND_S))
        first, last = min(load.rate_pps for load in row), max(load.rate_pps for load in row)
        flows = f"{spec.flows} flow{'s' if spec.flows > 1 else ''} each way"
        text = f"{len(row)} loads from {first:.0f} to {last:.0f} pps per flow, {flows}, {expected}"
        for line in filter(None, [text, service.remark]):
            logger.info(line)
            self._progress.begins(line)
        with ending():
            found = skipping(lambda: service.sweep(spec))
        for point in found.points:
            logger.info(f"{point.rate_pps:.0f} pps: " + (point.flagged or "as asked"))

    @keyword
    def profile_service(self) -> None:
        """Find the load that saturates the service, and the functions that describe it below and above.

        | Run Sweep |
        | Profile Service |
        """
        for line in profile_in_words(self._running.profile()):
            logger.info(line)

    @keyword
    def predict_chain(self, *parts: str) -> None:
        """Predict the chain that was swept from profiles of its parts alone, and compare with what was measured.

        ``parts`` are names of services in the order of the chain, measured with the same frame before: in this run, or
        in an earlier one whose results are below the folder that the variable ``PROFILES`` names. Where the path
        without network functions was measured there as well, its delay counts once, and not once for each part.

        | Predict Chain | router | firewall |
        """
        if self._shelf is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        for line in errors_in_words(self._running.predict(parts, self._shelf)):
            logger.info(line)

    @keyword
    def close_test(self, status: str, message: str) -> None:
        """Remove the service and write the record of the test and its CSV files, also where the test has failed.

        Use it as test teardown; a failed removal fails the test.

        | Test Teardown | Close Test | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        if self._service is None:
            return
        service, self._service = self._service, None
        record = self._keeper.end_test(service.draft, service.remove, status, message)
        if self._shelf is not None and record.passed:
            self._shelf.put(record)
        if record.passed:
            self._passed[service.digest()] = record.test_id
        self._progress.done(record)

    def _chosen(self) -> Topology:
        self._choices = resumed_sweeps(variable)
        topology = generator_chosen(self._choices)
        earlier = shelf(self._choices, topology)
        if self._shelf is None or not self._shelf.is_of(topology.world, topology.metadata.name):
            self._shelf = earlier
        return topology

    @property
    def _running(self) -> ServiceSweep:
        if self._service is None:
            raise CsitError("no test is described; Describe Sweep comes first")
        return self._service
