"""Cells of a study of stateful density."""

from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.measurements.counters import ConnectionTable
from resources.libraries.python.model.record import Record
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.stateful.analysis import checks
from resources.libraries.python.studies.stateful.model import (
    CellConnections,
    ConnectionTrial,
    EstablishmentRate,
    InstanceConnections,
    Phase,
    StatefulDensity,
    StatefulSpec,
    TableCapacity,
    TearDown,
)
from tests.unit.csit_utils.characterization_records import record

SPEC = PROJECT / "tests" / "characterization" / "specs" / "stateful" / "nat.yaml"
NAT = load_yaml(SPEC, StatefulSpec)


def trial(phase: Phase, load_cps: float, entries: int, instances: int) -> ConnectionTrial:
    return ConnectionTrial(
        phase=phase, load_cps=load_cps, duration_s=0.3, failed=0, dropped=0, evicted=0,
        instances=(InstanceConnections(sent=1000, arrived=1000, entries=entries),) * instances,
    )  # fmt: skip


def cell(instances: int, *failed: int) -> CellConnections:
    """A cell of which trials at the rate have so many entries of 1000 each."""
    rate = EstablishmentRate(
        lower_cps=100_000.0 * instances, upper_cps=102_000.0 * instances, by_instance_cps=(100_000.0,) * instances,
        complete=True, trials=30, search_s=11.0, sending_s=10.0,
    )  # fmt: skip
    trials = (
        *(trial(Phase.RATE, rate.lower_cps, entries, instances) for entries in (1000, *failed)),
        trial(Phase.RATE, 150_000.0, 700, instances),
        trial(Phase.TEAR_DOWN, 0.5 * rate.lower_cps, 1000, instances),
    )
    tear_downs = (TearDown(entries=(1000,) * instances, seconds=(0.001,) * instances, total_s=0.002),)
    return CellConnections(
        instances=instances, nodes=1, plan="digest", rate=rate, empty_s=0.0001, tear_downs=tear_downs, trials=trials,
        tables={
            f"nf-{instance}-1": ConnectionTable(
                entries=0, limit=262_144, buckets=65_536, timeout_s=300, failed=0, dropped=0, evicted=0
            )
            for instance in range(1, instances + 1)
        },
        capacity=TableCapacity(entries=262_144, refused_at=264_765, rate_cps=50_000.0, trials=3),
        checks=checks(NAT, rate, trials, tear_downs),
    )  # fmt: skip


def stateful_record(*failed: int) -> Record:
    """Record of a study with two cells, the second of which has failed trials, and one that does not fit."""
    found = StatefulDensity(spec=NAT, cells=(cell(1), cell(2, *failed)), skipped={"4x1": "needs 9 cores, 8 available"})
    return record("stateful", "NAT", stateful=found)
