"""Keywords of the characterization suites: sweeps of services, their profiles, predictions of chains."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from robot.api import SkipExecution, logger
from robot.api.deco import library
from robot.libraries.BuiltIn import register_run_keyword

from resources.libraries.python.csv_tables import Table
from resources.libraries.python.errors import ConfigError, CsitError, PlanError
from resources.libraries.python.model.base import first_error
from resources.libraries.python.model.bounds import LONGEST_LOAD_S, LONGEST_NUMBER, quoted
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import are_vms
from resources.libraries.python.model.request.variables import (
    DEPARTURES,
    FIREWALL,
    FLOWS,
    FRAME,
    NAT,
    PROFILES,
    PROTOCOL,
    ROUTER,
    STOP_LOSS,
    SWEEP_DURATION,
    SWEEP_RATES,
    SWEEP_WIDTH,
    Lookup,
)
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.quantities import rate
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.density.model.selection import parse_kinds, parse_sizes
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.library import DeployedStudyLibrary
from resources.libraries.python.studies.shared.progress import human_time
from resources.libraries.python.studies.shared.robot_context import skipping
from resources.libraries.python.studies.sweep.analysis.sentences import (
    break_point_in_words,
    errors_in_words,
    profile_in_words,
    smt_in_words,
)
from resources.libraries.python.studies.sweep.analysis.tables import tables_of
from resources.libraries.python.studies.sweep.load_steps import duration_s, loads
from resources.libraries.python.studies.sweep.model.record import SweepRecord, SweepSpec
from resources.libraries.python.studies.sweep.profile_store import ProfileStore
from resources.libraries.python.studies.sweep.request import SweepRequest, parse_bursts, parse_rates
from resources.libraries.python.studies.sweep.run import ServiceSweep
from resources.libraries.python.testbed.deployment.generator_limits import departures_of, protocol_of

_EACH_SECOND_S = 0.14
"""Overhead of a second of load: preparing, settling and reading counters. Measured on local.yaml."""
_KINDS = (FIREWALL, NAT, ROUTER)
"""Variables of the suites, which name network functions of their rows."""
NO_NF = "none"
"""In the place of NF kinds: the path without any."""


@library(scope="GLOBAL", doc_format="ROBOT")
class CharacterizationLibrary(DeployedStudyLibrary[ServiceSweep]):
    """Measures services under a row of loads.

    A service is a single network function, a chain of them, or branches between shared ones. A test describes its
    sweep, deploys the service, verifies that packets arrive, runs the sweep, profiles the service, and is closed, which
    removes the service and writes the record.

    The variable ``GENERATOR`` names another traffic generator than the testbed's file does. Where the variable
    ``RESUME`` names the folder of a run that was cut short, that run continues: tests that had passed are carried over,
    and a sweep that was cut short continues with its next load.
    """

    FIRST_KEYWORD = "Describe Sweep"

    def __init__(self) -> None:
        super().__init__()
        self._profiles: ProfileStore | None = None
        self._journal: StepJournal[Any] | None = None
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
        smt: str = "",
    ) -> None:
        """Describe what the test measures: a service and its traffic. Skips the test where the service does not fit.

        ``nf_kinds`` are the network functions in the order of the chain, such as ``linux_router+linux_firewall``, or
        ``none`` for the path without any, with a cable in their place; and
        ``nf_sizes`` their flavors: 0.5c, 1c, 2c, 3c and so on for all, or one for each. With ``branches`` there are so
        many parallel chains; ``shared_nodes`` are one for all branches: ``1+3`` of three is a split and merge.

        ``rates`` are packets per second of each flow, one way: ``10000-200000/10000`` (first-last/step) or ``auto``,
        twelve steps up to 1.6 times what the service forwards in a short test, of the path up to what it forwards.
        ``duration`` is in seconds, of each load. ``bursts`` are one load that comes and goes instead: ``on 2 off 1 at
        50000``, or ``at 1.2x`` for a multiple of what the service forwards.

        What is not given is as the variables ``FRAME``, ``FLOWS``, ``PROTOCOL``, ``SWEEP_RATES`` and ``SWEEP_DURATION``
        say. Traffic goes both ways. With ``once`` the test is skipped where another one of the same run has measured
        the same: its record is there.

        With ``smt=off`` the DUTs have SMT switched off while the service is deployed, and so one data thread on each
        core. With ``smt=on`` they must have it. Where a DUT has no SMT, or it is off already, the test is skipped.

        | Describe Sweep | firewall | linux_firewall | rates=10000-200000/10000 | frame=512B |
        """
        topology, _, _ = self._testbed.opened()
        row = SweepRow(
            name, nf_kinds, nf_sizes, branches, shared_nodes, frame, flows, protocol, rates, duration, bursts, smt
        )
        service = self._service(asked_sweep(self._choices, topology, row))
        try:
            skipping(service.plan)
        except PlanError as error:
            raise SkipExecution(str(error)) from error
        digest = service.digest()
        if once and digest in self._passed:
            raise SkipExecution(f"{name} has been measured by {self._passed[digest]}")

        def carried(record: SweepRecord) -> None:
            if self._profiles is not None:
                self._profiles.put(record)
            self._passed[digest] = record.test_id

        self._journal = self._begin(service, digest, name, service.journal(), carried)
        service.resume(self._journal)
        self._progress.begin(name, simulated=service.draft.simulation is not None)
        self._progress.status("deploying")

    def _service(self, asked: SweepRequest) -> ServiceSweep:
        topology, world, environment = self._testbed.opened()
        service = ServiceSweep(topology, world, asked, environment, self._progress.step)
        service.draft.rerun = self._rerun()
        return service

    def _again(self) -> ServiceSweep:
        self._test = self._service(self._running.spec)
        if self._journal is not None:
            self._test.resume(self._journal)
        return self._test

    @keyword
    def deploy_service(self) -> None:
        """Deploy the service; the placement of its data threads is read back.

        | Deploy Service |
        """
        self._deploy(self._running.deploy_service)

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

        A load that the generator could not offer is flagged and the sweep continues. Then up to four further loads are
        measured around the break-point, while its 95 % interval is wider than the variable ``SWEEP_WIDTH`` says (in
        percent of the break-point; ``off`` measures none).

        | Run Sweep |
        """
        service = self._running
        with self._run_state.ending():
            skipping(service.prepare)
        spec: SweepSpec = service.load
        row = loads(spec)
        expected_s = duration_s(spec, each_second_s=_EACH_SECOND_S)
        first, last = min(load.rate_pps for load in row), max(load.rate_pps for load in row)
        flows = f"{spec.flows} flow{'s' if spec.flows > 1 else ''} each way"
        text = f"{len(row)} loads from {rate(first)} to {rate(last)} per flow, {flows}, {human_time(expected_s)}"
        self._progress.begin(
            service.spec.name,
            simulated=service.draft.simulation is not None,
            each_s=expected_s / len(row),
            left=len(row),
        )
        for line in (text, service.remark):
            self._remark(line)
        with self._run_state.ending():
            found = skipping(service.run)
        for point in found.points:
            logger.info(f"{rate(point.rate_pps)}: " + (point.flagged or "as asked"))

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
        """Predict the chain that was swept from the profiles of its single parts, and compare with the measurement.

        ``parts`` are names of services in the order of the chain, measured with the same frame before: in this run, or
        in an earlier one whose results are below the folder that the variable ``PROFILES`` names. Where the path
        without network functions was measured there as well, its delay counts once, and not once for each part.

        | Predict Chain | router | firewall |
        """
        for line in errors_in_words(self._running.predict(parts, self._profile_store())):
            logger.info(line)

    @keyword
    def compare_smt(self) -> None:
        """Compare the service, measured with ``smt=off``, with the same sweep that was measured with SMT before.

        That was in this run, or in an earlier one whose results are below the folder that the variable ``PROFILES``
        names. The record has what SMT adds to the break-point and to the saturated throughput.

        | Compare SMT |
        """
        for line in smt_in_words(self._running.compare_smt(self._profile_store())):
            logger.info(line)

    def _profile_store(self) -> ProfileStore:
        if self._profiles is None:
            raise CsitError("the testbed is not open; the suite setup is missing")
        return self._profiles

    @keyword
    def close_test(self, status: str, message: str) -> None:
        """Remove the service and write the record of the test and its CSV files, also where the test has failed.

        Use it as test teardown; a failed removal fails the test.

        | Test Teardown | Close Test | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        service = self._test
        record = self._end(status, message)
        if service is not None and record.passed:
            if self._profiles is not None:
                self._profiles.put(record)
            self._passed[service.digest()] = record.test_id

    def _tables(self, record: SweepRecord) -> Iterable[Table]:
        return tables_of(record)

    def _result_lines(self, record: SweepRecord) -> list[str]:
        if not record.passed or record.sweep is None:
            return []
        points, samples = len(record.sweep.points), len(record.sweep.samples)
        note = " (simulated)" if record.simulated else ""
        lines = [f"{record.sweep.name}: {f'{points} loads' if points else f'{samples} samples'}{note}"]
        if record.profile is not None:
            lines.append(break_point_in_words(record.profile))
        predictions = [each.model_copy(update={"notes": ()}) for each in record.predictions]
        return [*lines, *errors_in_words(predictions), *smt_in_words(record.smt_gains)]

    def refuse_wrong(self, choices: Lookup) -> Topology:
        """Refuse a wrong sweep, too; only before a run, as suites of users may give each row values of its own."""
        topology = super().refuse_wrong(choices)
        for name in _KINDS:
            parse_kinds(name.text(choices))
        asked_sweep(choices, topology, SweepRow("path", NO_NF))
        return topology

    def _chosen(self) -> Topology:
        topology = super()._chosen()
        earlier = earlier_profiles(self._choices, topology)
        if self._profiles is None or not self._profiles.is_of(topology.world, topology.metadata.name):
            self._profiles = earlier
        return topology


register_run_keyword(__name__, "measure_with_care", deprecation_warning=False)  # type: ignore[no-untyped-call]


def earlier_profiles(lookup: Lookup, topology: Topology) -> ProfileStore:
    """Profiles of this testbed, earlier ones below the folder `PROFILES`.

    Raises:
        ConfigError: There is no such folder.
    """
    folder = PROFILES.text(lookup)
    return ProfileStore(topology.world, topology.metadata.name, Path(folder) if folder else None)


@dataclass(frozen=True, slots=True)
class SweepRow:
    """Arguments of a test; empty ones are taken from the variables."""

    name: str
    nf_kinds: str
    nf_sizes: str = "1c"
    branches: str = "1"
    shared_nodes: str = ""
    frame: str = ""
    flows: str = ""
    protocol: str = ""
    rates: str = ""
    duration: str = ""
    bursts: str = ""
    smt: str = ""


def asked_sweep(lookup: Lookup, topology: Topology, row: SweepRow) -> SweepRequest:
    """Sweep of a test; arguments that it leaves empty are taken from the variables.

    Args:
        lookup: The variables.
        topology: The testbed.
        row: The test.

    Raises:
        ConfigError: A value is wrong.
    """
    cell = _cell(row)
    flows = row.flows or FLOWS.text(lookup) or "auto"
    asked = SweepRequest(
        name=row.name,
        cell=cell,
        frame=frame(row.frame or FRAME.text(lookup)),
        flows=len(cell.instances) if flows == "auto" else _whole(flows, "flows", 1000),
        protocol=protocol_of(topology.tg.generator.driver, row.protocol or PROTOCOL.text(lookup)),
        departures=departures_of(topology.tg.generator.driver, DEPARTURES.text(lookup)),
        duration_s=_whole(row.duration or SWEEP_DURATION.text(lookup), "seconds of a load", LONGEST_LOAD_S),
        rates=None if row.bursts else parse_rates(row.rates or SWEEP_RATES.text(lookup)),
        bursts=parse_bursts(row.bursts) if row.bursts else None,
        stop_loss_ratio=STOP_LOSS.of(lookup),
        width=SWEEP_WIDTH.of(lookup),
        smt=_smt(row.smt),
    )
    asked.check()
    return asked


def _cell(row: SweepRow) -> Cell:
    """A service is a CSP: its NFs are linked to each other, and the vSwitch is at its edges only.

    Virtual machines are never linked to each other: a service of them is a VSC.
    """
    none = row.nf_kinds == NO_NF
    kinds = () if none else parse_kinds(row.nf_kinds)
    try:
        return Cell(
            service_type=ServiceType.VSC if are_vms(kinds) else ServiceType.CSP,
            **Dimensions(_whole(row.branches, "branches", 100), 0 if none else max(1, len(kinds))).columns,
            nf_sizes=parse_sizes(row.nf_sizes),
            nf_kinds=kinds,
            shared_nodes=tuple(
                _whole(node, "the number of a shared node", 100) for node in row.shared_nodes.split("+") if node
            ),
        )
    except ValidationError as error:
        raise ConfigError(f"service {row.name}: {first_error(error)[1]}") from error


def _whole(text: str, what: str, most: int) -> int:
    if not text.isdecimal() or len(text) > LONGEST_NUMBER or not 1 <= int(text) <= most:
        raise ConfigError(f"{what}: '{quoted(text)}' is not a whole number from 1 to {most}")
    return int(text)


def _smt(text: str) -> bool | None:
    if text not in ("", "on", "off"):
        raise ConfigError(f"smt: '{quoted(text)}' is neither 'on' nor 'off'")
    return None if not text else text == "on"
