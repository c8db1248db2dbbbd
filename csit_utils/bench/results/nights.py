"""A history of simulated testbeds over many nights, with planted events, to try import, trend, comparison and pages.

Every figure comes from a search or a trial on a simulated system, planned, judged and recorded as tests of the suites
are. Only Robot's run is left out, so that ten thousand tests take minutes.
`python -m csit_utils.bench.results.nights FOLDER` writes `FOLDER/<testbed>/<date>/output.xml`.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Annotated
from zlib import crc32

import typer
from robot.result import Result, TestSuite

from resources.libraries.python.errors import ConfigError, NoTraffic
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.planning.names import nf_name
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.recording.marker import REFUSED_MARKER, RESULT_MARKER
from resources.libraries.python.recording.packed_record import pack
from resources.libraries.python.recording.run_journal import MOST_ATTEMPTS
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.model.record import REFUSED_CELLS, DensityRecord, RefusedCell
from resources.libraries.python.studies.density.model.selection import DRAFT_GRID, Selection, parse_selection
from resources.libraries.python.studies.density.planning.rows import PlannedRows, Row, make_rows
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.worlds.simulated_testbed import SimulatedTestbed

TESTBEDS = ("sim-a", "sim-b", "sim-c")
_NOISE = {"sim-a": 0.02, "sim-b": 0.02, "sim-c": 0.03}
"""Relative standard deviation of the capacity between trials."""


class EventKind(StrEnum):
    """Effects of events on tests."""

    STEP = "step"
    """The capacity changes in one night and stays changed until the last."""
    OUTLIER = "outlier"
    """The capacity changes for one night."""
    FRESH = "fresh"
    """A step in the last night, indistinguishable from an outlier so far."""
    TWO_BANDS = "two bands"
    """The capacity is changed in some nights, at random."""
    FAILURE = "failure"
    """The last NF of the first instance forwards nothing."""
    QUARANTINE = "quarantine"
    """The system under test breaks in every attempt."""
    MISSING = "missing"
    """The testbed was not measured."""


@dataclass(frozen=True)
class PlantedEvent:
    """One planted event."""

    kind: EventKind
    testbed: str
    first: int
    """Night, from 0."""
    last: int
    service_type: ServiceType | None = None
    """None: all."""
    chains: int | None = None
    nodes: int | None = None
    factor: float = 1.0
    """By which the capacity is multiplied."""
    share: float = 1.0
    """Share of nights between first and last that are affected."""

    def meets(self, testbed: str, night: int, cell: Cell) -> bool:
        """Whether a test can be affected."""
        return (
            testbed == self.testbed
            and self.first <= night <= self.last
            and self.service_type in (None, cell.service_type)
            and self.chains in (None, cell.dimensions.instances)
            and self.nodes in (None, cell.dimensions.nfs)
        )


@dataclass(frozen=True)
class Condition:
    """State of the simulated system in one test."""

    capacity_scale: float = 1.0
    forwards: bool = True
    breaks: bool = False


@dataclass(frozen=True)
class EventHistory:
    """The events of a history."""

    nights: int
    testbeds: tuple[str, ...]
    events: tuple[PlantedEvent, ...]
    seed: int = 1

    def missing(self, testbed: str, night: int) -> bool:
        """Whether a testbed is not measured in a night."""
        return any(
            event.kind is EventKind.MISSING and event.testbed == testbed and event.first <= night <= event.last
            for event in self.events
        )

    def noise(self, testbed: str) -> float:
        """Return the relative standard deviation of the capacity of a testbed."""
        return _NOISE.get(testbed, _NOISE["sim-a"])

    def condition(self, testbed: str, night: int, cell: Cell) -> Condition:
        """Return the condition of one test, a function of its arguments and the seed."""
        scale, forwards, breaks = 1.0, True, False
        for number, event in enumerate(self.events):
            if not event.meets(testbed, night, cell):
                continue
            chance = Random(f"{self.seed}/{number}/{night}/{cell.model_dump_json()}").random()  # noqa: S311 - no secret
            if chance < event.share:
                scale *= event.factor
                forwards &= event.kind is not EventKind.FAILURE
                breaks |= event.kind is EventKind.QUARANTINE
        return Condition(scale, forwards, breaks)

    def versions(self, testbed: str, night: int) -> dict[str, str]:
        """Return the versions that the simulated testbed reports; each step raises one."""
        steps = sum(
            event.kind is EventKind.STEP and event.testbed == testbed and event.first <= night for event in self.events
        )
        return {"simulated vSwitch": f"1.{steps}"}


def story(nights: int, testbeds: int = len(TESTBEDS), seed: int = 1) -> EventHistory:
    """Return a history with every kind of event.

    Args:
        nights: At least 10, so that there are enough before and after each step.
        testbeds: 1 to 3.
        seed: Of random events.
    """
    chosen = TESTBEDS[:testbeds]
    return EventHistory(nights, chosen, tuple(event for event in _events(nights) if event.testbed in chosen), seed)


def _events(nights: int) -> Iterator[PlantedEvent]:
    def night(share: float) -> int:
        return round(share * nights)

    end = nights - 1
    vsc, csc, csp = ServiceType
    yield PlantedEvent(EventKind.STEP, "sim-a", night(0.4), end, csc, factor=0.92)
    yield PlantedEvent(EventKind.STEP, "sim-b", night(0.6), end, vsc, chains=1, factor=0.95)
    yield PlantedEvent(EventKind.STEP, "sim-c", night(0.5), end, csp, factor=1.06)
    yield PlantedEvent(EventKind.STEP, "sim-c", night(0.6), end, csc, chains=1, nodes=1, factor=0.97)
    yield PlantedEvent(EventKind.TWO_BANDS, "sim-a", 0, end, vsc, chains=2, nodes=1, factor=0.9, share=0.25)
    yield PlantedEvent(EventKind.TWO_BANDS, "sim-b", 0, end, csc, chains=1, nodes=1, factor=0.9, share=0.25)
    yield PlantedEvent(EventKind.TWO_BANDS, "sim-c", 0, end, csc, chains=2, nodes=1, factor=0.9, share=0.25)
    yield PlantedEvent(EventKind.OUTLIER, "sim-a", night(0.7), night(0.7), csp, chains=1, nodes=1, factor=0.7)
    yield PlantedEvent(EventKind.OUTLIER, "sim-b", night(0.45), night(0.45), factor=0.9)
    yield PlantedEvent(EventKind.FRESH, "sim-b", end, end, csc, chains=2, nodes=1, factor=0.9)
    yield PlantedEvent(EventKind.FAILURE, "sim-b", night(0.2), night(0.2) + 2, csp, chains=2, nodes=1)
    yield PlantedEvent(EventKind.QUARANTINE, "sim-c", night(0.8), end, vsc, chains=1, nodes=1)
    yield PlantedEvent(EventKind.MISSING, "sim-a", night(0.25), night(0.25) + 1)


FIRST_NIGHT = datetime(2026, 1, 1, 22, 0, tzinfo=UTC)
TEST_TYPES = (TestType.NDRPDR, TestType.MRR)
_BREAKS = "vswitch: the simulated process is gone"


@dataclass(frozen=True)
class MeasuredTest:
    """A test that was run or skipped."""

    suite: str
    """Its name, as Robot derives it from the file name."""
    row: Row
    started_at: datetime
    result: DensityRecord | None
    """None if it was skipped."""
    status: str
    message: str


@dataclass(frozen=True)
class Night:
    """All tests of one night of one testbed."""

    story: EventHistory
    testbed: str
    number: int
    """From 0."""
    topology: Topology
    """A simulated one; its name and the behaviour of its system are replaced."""
    rows: Mapping[tuple[ServiceType, TestType], PlannedRows]
    """Tests of each suite, the same in all nights; cells that do not fit are refused."""
    profile: SearchProfile
    environment: Environment

    @property
    def started_at(self) -> datetime:
        """Start time, the same for all testbeds."""
        return FIRST_NIGHT + timedelta(days=self.number)

    def refused(self) -> dict[str, tuple[RefusedCell, ...]]:
        """Return cells that do not fit, by service type as in names of suites."""
        return {
            kind.title(): tuple(row.refused for row in rows.refused)
            for (kind, test_type), rows in self.rows.items()
            if test_type is TestType.MRR
        }

    def tests(self) -> Iterator[MeasuredTest]:
        """Run all tests in virtual time."""
        clock, quarantined = self.started_at, set[str]()
        for (service_type, test_type), rows in self.rows.items():
            for row in rows.rows:
                done = self._test(f"{service_type.title()}-{test_type.title()}", row, test_type, clock, quarantined)
                yield done
                clock = datetime.fromisoformat(done.result.finished_at) if done.result else clock

    def _test(self, suite: str, row: Row, test_type: TestType, clock: datetime, quarantined: set[str]) -> MeasuredTest:
        cell = row.cell
        key = f"{cell.service_type} {cell.locator} NF-{cell.size_name} vSwitch-{cell.vs_dtc}c"
        if key in quarantined:
            return MeasuredTest(suite, row, clock, None, "SKIP", f"quarantined: {key}: {_BREAKS}")
        condition = self.story.condition(self.testbed, self.number, cell)
        experiment = self._experiment(
            MeasurementRequest(test_type=test_type, cell=cell, frame=row.frame, profile=self.profile), condition
        )
        experiment.draft.started_at = clock.isoformat(timespec="milliseconds")
        message = _quarantine(experiment) if condition.breaks else _measure(experiment)
        if condition.breaks:
            quarantined.add(key)
        experiment.remove()
        result = experiment.draft.finish(
            test_id=f"Density.{suite}.{row.name}",
            test_name=row.name,
            tags=row.tags,
            passed=not message,
            message=message,
        )
        lasted_s = sum(trial.total_duration_s for trial in result.trials)
        finished_at = (clock + timedelta(seconds=lasted_s)).isoformat(timespec="milliseconds")
        result = result.model_copy(update={"finished_at": finished_at})
        return MeasuredTest(suite, row, clock, result, "FAIL" if message else "PASS", message)

    def _experiment(self, asked: MeasurementRequest, condition: Condition) -> DensityTest:
        simulation = {
            "model": "noisy",
            "noise": self.story.noise(self.testbed),
            "seed": crc32(f"{self.story.seed}/{self.testbed}/{self.number}".encode()),
            "capacity_scale": condition.capacity_scale,
            "drop_at": () if condition.forwards else (nf_name(1, asked.cell.nf_nodes),),
        }
        named = self.topology.metadata.model_copy(update={"name": self.testbed})
        topology = self.topology.model_copy(update={"simulation": simulation, "metadata": named})
        environment = self.environment.model_copy(
            update={
                "hostname": self.testbed,
                "versions": self.environment.versions | self.story.versions(self.testbed, self.number),
            }
        )
        return DensityTest(topology, SimulatedTestbed(topology), asked, environment)


def _measure(experiment: DensityTest) -> str:
    """Run the phases of a test; return why it failed, or an empty string."""
    experiment.deploy()
    try:
        experiment.verify_traffic()
    except NoTraffic as error:
        return str(error)
    if experiment.draft.asked.test_type is TestType.MRR:
        experiment.mrr()
    else:
        experiment.search(("NDR", "PDR"))
        experiment.latency()
    return ""


def _quarantine(experiment: DensityTest) -> str:
    """Record a system that breaks in every deployment; the simulation cannot do that itself."""
    experiment.plan()
    experiment.draft.broken = (_BREAKS,) * MOST_ATTEMPTS
    experiment.draft.quarantined = _BREAKS
    return f"quarantined after {MOST_ATTEMPTS} attempts: {_BREAKS}"


_TEMPLATES = {"Ndrpdr": "Ndr And Pdr Should Be Found", "Mrr": "Mrr Should Be Measured"}


def write_night(night: Night, path: Path) -> int:
    """Run the tests of a night and write its output.xml; return their number."""
    top = TestSuite(name="Density")
    count = _add_tests(top, night.tests(), night.refused())
    path.parent.mkdir(parents=True, exist_ok=True)
    Result(suite=top, rpa=False, generator="csit nights").save(path)
    return count


def _add_tests(top: TestSuite, tests: Iterable[MeasuredTest], refused: dict[str, tuple[RefusedCell, ...]]) -> int:
    """Put tests into a suite of suites, each with the cells that do not fit in its setup."""
    suites: dict[str, TestSuite] = {}
    count = 0
    for done in tests:
        if done.suite not in suites:
            suites[done.suite] = suite = top.suites.create(name=done.suite)
            suite.setup.config(name="Open Testbed", owner="DensityLibrary", status="PASS", start_time=done.started_at)
            cells = REFUSED_CELLS.dump_json(refused[done.suite.split("-")[0]]).decode()
            suite.setup.body.create_message(f"{REFUSED_MARKER}{cells}", "INFO", timestamp=done.started_at)
        _add_test(suites[done.suite], done)
        count += 1
    return count


def _add_test(suite: TestSuite, done: MeasuredTest) -> None:
    elapsed_s = sum(trial.total_duration_s for trial in done.result.trials) if done.result else 0.0
    test = suite.tests.create(
        name=done.row.name,
        tags=done.row.tags,
        status=done.status,
        message=done.message,
        start_time=done.started_at,
        elapsed_time=timedelta(seconds=elapsed_s),
    )
    template = _TEMPLATES[done.suite.split("-")[1]]
    test.body.create_keyword(
        name=template, args=done.row.arguments, status=done.status, message=done.message, start_time=done.started_at
    )
    if done.result is not None:
        test.teardown.config(name="Close Test", owner="DensityLibrary", status="PASS", start_time=done.started_at)
        text = f"{RESULT_MARKER}{pack(done.result)}"
        test.teardown.body.create_message(message=text, level="INFO", timestamp=done.started_at)


_FEWEST_NIGHTS = 10


def make(  # noqa: PLR0917 - options of a command line have names
    folder: Annotated[Path, typer.Argument(help="Where to write.")],
    nights: Annotated[int, typer.Option(help="Number of nights, at least 10.")] = 30,
    testbeds: Annotated[int, typer.Option(min=1, max=3, help="Number of testbeds.")] = 3,
    cells: Annotated[str, typer.Option(help="Cells of the matrix; those that do not fit are skipped.")] = DRAFT_GRID,
    search: Annotated[str, typer.Option(help="Search profile.")] = "ladder",
    processes: Annotated[int, typer.Option(min=1, help="Number of worker processes.")] = 1,
) -> None:
    """Write a history of simulated nights with planted regressions, two-band cells, failures and gaps.

    The whole matrix on three testbeds in 30 nights is 10,032 tests.

    Example: python -m csit_utils.bench.results.nights /tmp/nights --nights 20 --cells '{1,2}x1' --search quick
    """
    if nights < _FEWEST_NIGHTS:
        raise ConfigError(f"--nights {nights}: planted steps need at least {_FEWEST_NIGHTS}")
    tests = write_story(story(nights, testbeds), folder, cells, search, processes)
    typer.echo(f"{folder}: {tests} simulated tests")


def write_story(history: EventHistory, folder: Path, cells: str, search: str, processes: int = 1) -> int:
    """Write a history; return its number of tests."""
    topology, environment = load_topology(PROJECT / "topologies" / "sim.yaml"), fingerprint()
    rows, asked = _rows(topology, parse_selection(cells=cells, nf_sizes="1c")), profile(search)
    work = [
        Night(history, testbed, number, topology, rows, asked, environment)
        for number in range(history.nights)
        for testbed in history.testbeds
        if not history.missing(testbed, number)
    ]
    paths = [folder / night.testbed / night.started_at.date().isoformat() / "output.xml" for night in work]
    if processes == 1:
        return sum(map(write_night, work, paths))
    with ProcessPoolExecutor(processes) as pool:
        return sum(pool.map(write_night, work, paths))


def _rows(topology: Topology, selection: Selection) -> dict[tuple[ServiceType, TestType], PlannedRows]:
    """Return the tests of each suite, in the order in which suites run."""
    return {
        (service_type, test_type): make_rows(topology, topology.dut.layout, chosen, test_type)
        for service_type in selection.service_types
        for chosen in [selection.model_copy(update={"service_types": (service_type,)})]
        for test_type in TEST_TYPES
    }


if __name__ == "__main__":
    try:
        typer.run(make)
    except ConfigError as error:
        sys.exit(str(error))
