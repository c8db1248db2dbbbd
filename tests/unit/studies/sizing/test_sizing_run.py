"""A whole sizing: Clearwater and an IDS on the simulated testbed, what is watched, what is left, how it goes on."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from resources.libraries.python.drivers.sim.sizing import VirtualTime, simulated_sizing
from resources.libraries.python.errors import (
    CommandFailed,
    ConfigError,
    ConnectionFailed,
    CsitError,
    RunStopped,
    Unsupported,
)
from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.model.service.spec import Flavor, MeasuredSize, Size, Sizing, Trace, Use
from resources.libraries.python.studies.sizing.analysis import TraceRow
from resources.libraries.python.studies.sizing.size_trials import LoadMonitor
from resources.libraries.python.testbed.kinds.real_time import RealTime
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport
from tests.unit.studies.sizing.sizing_runs import run_sizing
from tests.unit.studies.sizing.sizing_specs import service

SPECS = Path(__file__).parents[3] / "characterization" / "specs"
MB = 2**20


def simulated(
    folder: str = "clearwater",
    deployment: str = "deployment.json",
    workload: str = "workload.json",
    *,
    duration_s: float = 300.0,
    rows: dict[tuple[str, str], list[TraceRow]] | None = None,
) -> Sizing:
    asked = load_specifications(SPECS / folder / deployment, SPECS / folder / workload)
    asked = replace(asked, workload=asked.workload.model_copy(update={"duration_s": duration_s}))
    here = simulated_sizing(asked, SPECS / folder)

    def trace(size: str, instance: str, more: object) -> None:
        rows.setdefault((size, instance), []).extend(more)  # type: ignore[arg-type]

    return run_sizing(
        asked.deployment, asked.workload, here.orchestrator, time=here.time, trace=None if rows is None else trace
    )


def cpu_at_capacity(sized: MeasuredSize) -> dict[str, float]:
    point = next(row for row in sized.offered if row.load == sized.capacity)
    return {name: use.cpu for name, use in point.use.items() if use.cpu is not None}


@pytest.mark.slow
def test_directed_search_of_clearwater_goes_the_way_of_the_paper() -> None:
    found = simulated()
    assert [(row.name, row.vcpus, row.capacity, row.bottleneck) for row in found.sizes] == [
        ("bn1s-sp1s-hs1s", 3, 350, "sprout"),
        ("bn1s-sp1m-hs1s", 4, 400, "homestead"),
        ("bn1s-sp1m-hs1m", 5, 600, "sprout"),
    ]
    assert (found.stopped, found.best) == ("resources exhausted", "bn1s-sp1m-hs1m")
    assert found.steps[-1].endswith("sprout 1 large, homestead 1 medium needs 7 vCPUs, 6 available.")
    best = cpu_at_capacity(found.sizes[-1])
    assert all(0.75 <= cpu <= 0.85 for cpu in best.values()), best
    first = cpu_at_capacity(found.sizes[0])
    assert first["sprout-1"] / first["bono-1"] == pytest.approx(2, rel=0.01)
    for sized in found.sizes:
        assert sized.overload_from > sized.capacity


def test_another_kind_of_call_has_the_same_best_size_at_a_quarter_of_the_rate() -> None:
    found = simulated(workload="invite.json", duration_s=60)
    assert found.best == "bn1s-sp1m-hs1m"
    assert found.named()[found.best].capacity == 150


@pytest.mark.slow
def test_scaling_up_gains_what_scaling_out_does_not() -> None:
    found = simulated(deployment="scaling.json", workload="quick.json", duration_s=60)
    capacities = {row.name: row.capacity for row in found.sizes}
    assert capacities["bn1s-sp1s-hs1s"] == capacities["bn1m-sp2s-hs2s"] == 350
    assert (capacities["bn1m-sp1m-hs1m"], capacities["bn1l-sp1l-hs1l"]) == (600, 1000)
    for out in ("bn1l-sp2m-hs2m", "bn1l-sp4s-hs4s"):
        assert 350 < (capacities[out] or 0) < 1000
    assert any("same vCPUs 600: more instances cost 42 %" in note for note in found.notes)


@pytest.mark.slow
def test_directed_search_needs_three_sizes_where_exhaustive_search_needs_eleven() -> None:
    every = simulated(deployment="exhaustive.json", duration_s=30)
    directed = simulated(duration_s=30)
    assert (len(every.sizes), len(directed.sizes)) == (11, 3)
    assert every.best == directed.best


@pytest.mark.slow
def test_an_ids_of_one_thread_does_not_scale() -> None:
    found = simulated("snort")
    capacities = [row.capacity for row in found.sizes]
    assert all(a is not None and b is not None and abs(b / a - 1) < 0.1 for a, b in pairwise(capacities))
    assert "ids does not scale past 1 vCPU" in found.notes[0]
    assert cpu_at_capacity(found.sizes[1])["ids-1"] == pytest.approx(0.5, abs=0.05)


def test_what_is_not_simulated_is_unsupported() -> None:
    asked = load_specifications(SPECS / "snort" / "deployment.json", SPECS / "snort" / "workload.json")
    with pytest.raises(Unsupported, match="snort cannot be simulated: there is no "):
        simulated_sizing(asked, SPECS)
    with pytest.raises(ConfigError, match="components: missing ids of snort"):
        simulated_sizing(asked, SPECS / "clearwater")


def test_every_instance_is_traced_each_second() -> None:
    rows: dict[tuple[str, str], list[TraceRow]] = {}
    found = simulated(duration_s=5, rows=rows)
    assert {size for size, _ in rows} == {row.name for row in found.sizes}
    first = [row for row in rows["bn1s-sp1s-hs1s", "sprout-1"] if row.load == 200]
    assert [row.repetition for row in first] == [number for number in range(1, 11) for _ in range(5)]
    assert [row.time_s for row in first] == [float(second) for second in range(1, 51)]
    for row in first:
        assert row.cpu_percent == pytest.approx(200 * 0.27, rel=0.01)
        assert row.network_bps == pytest.approx(200 * 14000 * 8, rel=0.01)
        assert row.memory_bytes == pytest.approx(700 * MB + 200 * 200 * 1024, rel=0.01)


@pytest.mark.slow
def test_beyond_the_capacity_cpus_go_up_and_down_within_a_run() -> None:
    rows: dict[tuple[str, str], list[TraceRow]] = {}
    simulated(duration_s=60, rows=rows)

    def spread(load: float) -> float:
        cpus = [row.cpu_percent for row in rows["bn1s-sp1s-hs1s", "sprout-1"] if row.load == load]
        return pstdev(cpu for cpu in cpus if cpu is not None)

    assert spread(400) > 10 * spread(300)
    assert spread(400) > 5


@dataclass
class Faulty:
    """A service and its orchestrator in one that fails at the step given."""

    where: str
    time: VirtualTime = field(default_factory=VirtualTime)
    calls: list[str] = field(default_factory=list)

    def service(self, _: Size) -> "Faulty":
        return self

    def _do(self, what: str) -> None:
        self.calls.append(what)
        if what == self.where:
            raise CommandFailed((what,), 1, "no")
        if (what, self.where) in (("offer", "node"), ("stop", "removal")):
            raise ConnectionFailed("DUT1: the agent ended with 137")

    def start(self) -> None:
        self._do("start")

    def offer(self, load: float) -> LoadReport:
        self._do("offer")
        self.time.advance(10)
        return LoadReport(load)

    def use(self) -> Mapping[str, InstanceUse]:
        self._do("use")
        return {}

    def facts(self) -> Mapping[str, str]:
        return {}

    def problems(self) -> tuple[str, ...]:
        return ("all processes of sprout-1 have ended",) if self.where == "problems" else ()

    def stop(self) -> None:
        self._do("stop")


LOAD = load_specifications(SPECS / "clearwater" / "deployment.json", SPECS / "clearwater" / "workload.json").workload


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("start", "start ended with 1: no"),
        ("offer", "offer ended with 1: no"),
        ("use", "use ended with 1: no"),
        ("problems", "at 200 calls/s: all processes of sprout-1 have ended"),
        ("node", "DUT1: the agent ended with 137"),
    ],
)
def test_every_failure_is_reported_and_the_service_removed(where: str, said: str) -> None:
    faulty = Faulty(where)
    found = run_sizing(service(), LOAD, faulty, time=faulty.time)
    assert (found.stopped, found.sizes[0].failed) == ("failed", said)
    assert (faulty.calls[-1], faulty.calls.count("stop")) == ("stop", 1)


def test_a_service_that_cannot_be_removed_stops_the_run() -> None:
    faulty = Faulty("stop")
    with pytest.raises(RunStopped, match="bn1s-sp1s-hs1s could not be removed: stop ended with 1: no"):
        run_sizing(service(), LOAD, faulty, time=faulty.time)


def test_a_node_that_is_lost_in_a_removal_does_not_end_the_run() -> None:
    """Its agent removes what it has deployed, and the load had been measured."""
    faulty = Faulty("removal")
    found = run_sizing(service(), LOAD, faulty, time=faulty.time)
    assert found.stopped != "failed"
    assert [each.failed for each in found.sizes] == [None] * len(found.sizes)
    assert faulty.calls.count("stop") == len(found.sizes)


class Ramp:
    """A service that uses half a CPU while a load is offered, for twice as long as it should be."""

    def __init__(self, time: VirtualTime, seconds: int) -> None:
        self.time = time
        self.seconds = seconds
        self.cpu_s = 0.0

    def offer(self, load: float) -> LoadReport:
        for second in range(2 * self.seconds):
            self.cpu_s += 0.5 if second < self.seconds else 0.0
            self.time.advance(1)
        return LoadReport(load, seconds=(load,) * self.seconds)

    def use(self) -> Mapping[str, InstanceUse]:
        return {"a-1": InstanceUse(self.cpu_s, 32 * MB, None)}


def test_means_are_over_the_time_in_which_load_is_offered() -> None:
    time = VirtualTime()
    monitor = LoadMonitor(
        Ramp(time, 10), {"a-1": Flavor(vcpus=2, memory_mb=64), "b-1": Flavor(vcpus=1, memory_mb=64)}, time
    )  # type: ignore[arg-type]
    watched = monitor.watch(100, 1, 10)
    assert watched.use["a-1"] == Use(cpu=0.25, memory=0.5, network_bps=None)
    assert watched.use["b-1"] == Use(cpu=None, memory=None, network_bps=None)
    assert [row.cpu_percent for row in watched.rows["a-1"]] == [50.0] * 10 + [0.0] * 10
    assert all(row.memory_bytes is None and row.cpu_percent is None for row in watched.rows["b-1"])
    assert watched.trace == Trace(
        indicators=(100.0,) * 10,
        ends_s=tuple(float(second) for second in range(1, 21)),
        cpu={"a-1": (0.25,) * 10 + (0.0,) * 10, "b-1": (None,) * 20},
    )


def test_the_simulated_service_keeps_each_second_of_three_loads() -> None:
    first = simulated(duration_s=20).sizes[0]
    kept = {row.load: row.trace for row in first.offered if row.trace is not None}
    assert first.capacity == 350
    assert list(kept) == [200, 350, first.offered[-1].load]
    for row in first.offered:
        if row.trace is not None:
            assert len(row.trace.indicators) == len(row.trace.ends_s) == 20
            assert fmean(row.trace.indicators) == pytest.approx(row.indicators[0], rel=1e-4)
            assert set(row.trace.cpu) == {"bono-1", "sprout-1", "homestead-1"}
    assert pstdev(kept[first.offered[-1].load].indicators) > 5 * pstdev(kept[200].indicators), "overload oscillates"
    assert max(cpu or 0.0 for cpu in kept[350].cpu["sprout-1"]) == pytest.approx(0.95, abs=0.05)


def test_real_time_ticks_beside_the_work_and_not_after_it() -> None:
    time = RealTime()
    ticks: list[float] = []
    enough = threading.Event()

    def tick() -> None:
        ticks.append(time.now())
        if len(ticks) == 3:
            enough.set()

    with time.every(0.02, tick):
        assert enough.wait(60)
    count = len(ticks)
    assert not enough.wait(0) or count == len(ticks)
    assert ticks == sorted(ticks)


def test_an_error_in_a_tick_is_raised_where_the_watching_ends() -> None:
    raised = threading.Event()

    def tick() -> None:
        raised.set()
        raise CsitError("cannot be asked")

    with pytest.raises(CsitError, match="cannot be asked"), RealTime().every(0.01, tick):
        assert raised.wait(60)
