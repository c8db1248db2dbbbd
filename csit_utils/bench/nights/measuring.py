"""One night of one testbed: its cells are planned, searched and recorded in virtual time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zlib import crc32

from csit_utils.bench.nights.story import Condition, Story
from resources.libraries.python.errors import NoTraffic
from resources.libraries.python.model.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.frames import frame
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.model.nf_size import NfSize
from resources.libraries.python.model.result import Asked, Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.names import nf_name
from resources.libraries.python.recording.run_journal import MOST_ATTEMPTS
from resources.libraries.python.studies.density.model.record import DensityRecord
from resources.libraries.python.studies.density.model.selection import Selection
from resources.libraries.python.studies.density.planning.rows import Refused, Row, make_rows
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.worlds.simulated import SimulatedTestbed

FIRST_NIGHT = datetime(2026, 1, 1, 22, 0, tzinfo=UTC)
TEST_TYPES = (TestType.NDRPDR, TestType.MRR)
_BREAKS = "vswitch: the simulated process is gone"


@dataclass(frozen=True)
class MeasuredTest:
    """A test that was run, or skipped."""

    suite: str
    """Its name, as Robot makes it of the file's."""
    row: Row
    started_at: datetime
    result: DensityRecord | None
    """None where it was skipped."""
    status: str
    message: str


@dataclass(frozen=True)
class Night:
    """What is measured in one night of one testbed."""

    story: Story
    testbed: str
    number: int
    """From 0."""
    topology: Topology
    """Any simulated one; its name and the behaviour of its system are set here."""
    selection: Selection
    """Cells that do not fit are left out."""
    profile: SearchProfile
    environment: Environment

    @property
    def started_at(self) -> datetime:
        """All testbeds begin at the same time."""
        return FIRST_NIGHT + timedelta(days=self.number)

    def refused(self, service_type: ServiceType) -> tuple[Refused, ...]:
        """Cells that do not fit."""
        chosen = self.selection.model_copy(update={"service_types": (service_type,)})
        return make_rows(self.topology, self.topology.dut.layout, chosen, TestType.MRR).refused

    def tests(self) -> Iterator[MeasuredTest]:
        """Run all tests; takes real time for computing only."""
        clock, quarantined = self.started_at, set[str]()
        for service_type in self.selection.service_types:
            chosen = self.selection.model_copy(update={"service_types": (service_type,)})
            for test_type in TEST_TYPES:
                rows = make_rows(self.topology, self.topology.dut.layout, chosen, test_type).rows
                for row in rows:
                    done = self._test(f"{service_type.title()}-{test_type.title()}", row, test_type, clock, quarantined)
                    yield done
                    clock = datetime.fromisoformat(done.result.finished_at) if done.result else clock

    def _test(self, suite: str, row: Row, test_type: TestType, clock: datetime, quarantined: set[str]) -> MeasuredTest:
        cell = _cell(row)
        key = f"{cell.service_type} {cell.locator} NF-{cell.size_name} vSwitch-{cell.vs_dtc}c"
        if key in quarantined:
            return MeasuredTest(suite, row, clock, None, "SKIP", f"quarantined: {key}: {_BREAKS}")
        condition = self.story.condition(self.testbed, self.number, cell)
        experiment = self._experiment(
            Asked(test_type=test_type, cell=cell, frame=frame(row.arguments[3]), profile=self.profile), condition
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

    def _experiment(self, asked: Asked, condition: Condition) -> DensityTest:
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
    """The phases of a test; return why it failed, nothing when it passed."""
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
    """A system that breaks whenever it is deployed: the simulation has none, so its reasons are told instead."""
    experiment.plan()
    experiment.draft.broken = (_BREAKS,) * MOST_ATTEMPTS
    experiment.draft.quarantined = _BREAKS
    return f"quarantined after {MOST_ATTEMPTS} attempts: {_BREAKS}"


def _cell(row: Row) -> Cell:
    service_type, chains, nodes, _, sizes, vswitch, *_ = row.arguments
    return Cell(
        service_type=ServiceType(service_type),
        nf_chains=int(chains),
        nf_nodes=int(nodes),
        nf_sizes=tuple(NfSize(size) for size in sizes.split("+")),
        vs_dtc=int(vswitch),
    )
