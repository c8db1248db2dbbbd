"""Loads of a sweep: which are offered, what is read of each second on plans of real topologies, and their points."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from resources.libraries.python.errors import CsitError, NoTraffic
from resources.libraries.python.model.measurements.counters import (
    CpuTime,
    InterfaceCounters,
    Sample,
    TaskTime,
    ThreadTime,
)
from resources.libraries.python.model.measurements.trial import (
    Direction,
    FlowLatency,
    HighestLoads,
    Interval,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.sweep import load_steps
from resources.libraries.python.studies.sweep.analysis.seconds import (
    SamplerReading,
    SecondCost,
    busiest,
    probes_pps,
    second_of,
    seconds_of,
    sender_pps,
    vnfs,
    work,
)
from resources.libraries.python.studies.sweep.load_steps import Sampling
from resources.libraries.python.studies.sweep.model import Bursts, Rates, SweepPoint, SweepSample, SweepSpec
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM, Altered, cell_of, cpus, finished, plan_of

B64 = frame("64B")
SECOND_NS = 1_000_000_000


def plan(cores: int, nodes: int = 1, size: NfSize = NfSize.ONE) -> Plan:
    return plan_of("local", "CSP", 1, nodes, cores=cpus(cores), nf_sizes=(size,))


def threads(made: Plan, owner: str, busy: float, at_s: float = 1.0) -> dict[str, ThreadTime]:
    """Data threads of an owner's ports after `at_s` seconds in which all of them together ran so much of the time."""
    ports = made.ports(owner)
    return {port.interface: ThreadTime(round(busy / len(ports) * at_s * SECOND_NS), 0) for port in ports}


TRIAL = Trial(load_pps=2000.0, duration_s=1.0, frame=B64)


def result(trial: Trial = TRIAL, **more: Any) -> TrialResult:
    return finished(trial, (1000, 750), (1000, 750), **more)


def test_a_vnf_is_reported_with_those_that_share_its_cpu() -> None:
    (crowded,), (alone,) = vnfs(plan(2)), vnfs(plan(8))
    assert "vswitch" in crowded.shares_cpus_with
    assert (alone.shares_cpus_with, alone.vcpus) == ((), 1)


def test_time_is_that_of_a_vnfs_data_threads_and_memory_that_at_the_end_of_a_second() -> None:
    made, memory = plan(2, nodes=2), {"nf-1-1": 3 << 20, "vswitch": 9 << 20}
    before = Sample(threads=threads(made, "nf-1-1", 0.0) | threads(made, "nf-1-2", 0.0), memory_bytes={"nf-1-1": 1})
    ran = threads(made, "nf-1-1", 0.5) | threads(made, "nf-1-2", 0.25)
    cost = work(made, before, Sample(threads=ran, memory_bytes=memory, available_bytes=1 << 29), 1.0)
    assert cost.cpu == {"nf-1-1": (0.5,), "nf-1-2": (0.25,)}
    assert (cost.memory_mib, cost.available_mib) == ({"nf-1-1": 3.0}, 512.0)
    assert work(made, before, Sample(threads=ran), 0.25).cpu["nf-1-1"] == (1.0,), "never more than all of the time"
    unknown = work(made, Sample(), Sample(), 1.0)
    assert (unknown.memory_mib, unknown.available_mib) == ({}, None)


def test_a_vnf_that_waits_for_its_cpu_has_work_all_the_time() -> None:
    """It runs a fifth of the time on a CPU that others have for the rest of it."""
    made = plan(2)
    ports = [port.interface for port in made.ports("nf-1-1")]
    ran = [ThreadTime(SECOND_NS // 10, waited_ns) for waited_ns in (85 * SECOND_NS // 100, 0)]
    before, after = Sample(threads=dict.fromkeys(ports, ThreadTime(0, 0))), dict(zip(ports, ran, strict=True))
    cost = work(made, before, Sample(threads=after), 1.0)
    assert cost.cpu["nf-1-1"] == pytest.approx([0.2])
    assert cost.busy["nf-1-1"] == pytest.approx([0.95])


def test_the_time_of_a_guest_is_that_of_its_own_threads_also_where_others_share_their_cpus() -> None:
    def tasks(ms: int) -> dict[str, dict[int, TaskTime]]:
        """A vCPU on each of two data CPUs, a vhost thread on the second, QEMU's main thread on both and elsewhere."""
        rows = {1: (400, 300, {one}), 2: (200, 0, {other}), 3: (100, 0, {other}), 4: (60, 0, {one, other}),
                5: (900, 0, {99})}  # fmt: skip
        return {
            "nf-1-1": {
                thread: TaskTime(ThreadTime(ran * ms * 1000, waited * ms * 1000), frozenset(cpus))
                for thread, (ran, waited, cpus) in rows.items()
            }
        }

    made = plan(8, size=NfSize.of(2))
    one, other = made.cores.cpus("nf-1-1")
    spent = Sample(cpus={cpu: CpuTime(10**9, 0, 0, 0) for cpu in (one, other)}, tasks=tasks(1000))
    idle = Sample(cpus=dict.fromkeys((one, other), CpuTime(0, 0, 0, 0)), tasks=tasks(0))
    cost = work(made, idle, spent, 1.0)
    assert cost.cpu["nf-1-1"] == pytest.approx([0.43, 0.33]), "not all of its planned CPUs, which others used too"
    assert cost.busy["nf-1-1"] == pytest.approx([0.7, 0.33]), "the first vCPU waited for its CPU"
    crowded = plan(2, size=NfSize.of(2))
    (one, other) = crowded.cores.cpus("nf-1-1")
    assert one == other, "both data threads have the same CPU"
    assert work(crowded, Sample(tasks=tasks(0)), Sample(tasks=tasks(1000)), 1.0).cpu["nf-1-1"] == pytest.approx(
        [0.38] * 2
    )
    assert work(crowded, Sample(), Sample(tasks=tasks(1000)), 1.0).cpu == {}, "since when is not known"


def test_without_times_of_threads_a_vnf_with_a_cpu_of_its_own_has_that_cpus_time() -> None:
    made = plan(8)
    (cpu,) = made.cores.cpus("nf-1-1")
    before, after = CpuTime(0, 0, 0, 0), CpuTime(300_000_000, 100_000_000, 200_000_000, 50_000_000)
    assert work(made, Sample(cpus={cpu: before}), Sample(cpus={cpu: after}), 1.0).cpu["nf-1-1"] == pytest.approx([0.6])
    crowded = plan(2)
    (cpu,) = crowded.cores.cpus("nf-1-1")
    assert work(crowded, Sample(cpus={cpu: before}), Sample(cpus={cpu: after}), 1.0).cpu == {}, "unknown"


def test_a_sample_is_of_one_way_and_its_delay_the_mean_of_all_probes() -> None:
    def probes(way: Direction, count: int, mean_ns: float | None) -> FlowLatency:
        known = {"instance": 1, "direction": way, "sent": 100, "received": count, "mean_ns": mean_ns}
        return FlowLatency.model_validate(dict.fromkeys(FlowLatency.model_fields) | known)

    probed = (probes(Direction.FORWARD, 30, 1000.0), probes(Direction.REVERSE, 10, 5000.0))
    sample = second_of(result(latency=probed), 1000.0, 7, SecondCost({"nf-1-1": (0.5,)}, {}, {"nf-1-1": 5.0}, 7.0))
    assert (sample.second, sample.input_pps, sample.output_pps, sample.loss_ratio) == (7, 1000.0, 750.0, 0.25)
    assert sample.delay_s == pytest.approx(2e-6)
    assert (sample.memory_mib, sample.available_mib) == ({"nf-1-1": 5.0}, 7.0)
    nothing = second_of(result(latency=(probes(Direction.FORWARD, 0, None),)), 1000.0, 0, SecondCost({}, {}, {}, None))
    assert nothing.delay_s is None


def test_a_generators_log_gives_a_sample_for_each_second_with_its_bursts() -> None:
    rows = [Interval(duration_s=1.0, sent=100.0, received=90.0, delay_ns=2000.0)] * 3
    rows.append(Interval(duration_s=0.5, sent=0.0, received=0.0, delay_ns=None))
    bursty = Trial(load_pps=200.0, duration_s=3.5, frame=B64, on_off_s=(2.0, 1.0))
    costs = [SecondCost({"nf-1-1": (0.1,)}, {}, {"nf-1-1": 5.0}, None)]
    samples = seconds_of(result(trial=bursty, intervals=tuple(rows)), 100.0, costs)
    assert [sample.rate_pps for sample in samples] == [100.0, 100.0, 0.0, 100.0]
    assert [sample.loss_ratio for sample in samples] == [pytest.approx(0.1)] * 3 + [None]
    assert [sample.cpu for sample in samples] == [{"nf-1-1": (0.1,)}, {}, {}, {}]
    assert [sample.memory_mib for sample in samples] == [{"nf-1-1": 5.0}, {}, {}, {}]


@pytest.mark.parametrize("used", [(0.3, 0.6), (0.4, 0.0)], ids=["more and more", "a burst"])
def test_the_seconds_of_sending_are_found_among_readings_that_began_earlier(used: tuple[float, float]) -> None:
    """Idle for 1.25 s, then 2 s of work, the second of which may be idle, then idle."""
    made, ran, readings = plan(2), 0.0, []
    for index in range(20):
        readings.append(SamplerReading(index / 4, Sample(threads=threads(made, "nf-1-1", ran))))
        ran += 0.25 * used[index >= 9] if 5 <= index < 13 else 0.0
    assert [row.cpu["nf-1-1"][0] for row in busiest(made, readings, 2)] == pytest.approx(used, abs=1e-6)
    assert busiest(made, readings[:1], 2) == ()
    assert len(busiest(made, readings[:7], 5)) == 1, "as far as readings reach"


def test_the_senders_interface_counts_no_probes_which_are_few_beside_the_load() -> None:
    made = plan(2)
    ports = [flow.tx_interface for flow in made.flows]
    before = dict.fromkeys(ports, InterfaceCounters(0, 100, 0, 0))
    after = dict.fromkeys(ports, InterfaceCounters(0, 1000, 0, 150))
    assert sender_pps(made, [result()], before, after) == pytest.approx(1050.0)
    assert sender_pps(made, [result(interface_sent=1800)], before, after) == pytest.approx(900.0)
    assert sender_pps(made, [result()], {}, {}) is None
    assert [probes_pps(made, rate) for rate in (0.0, 10_000.0, 1e6)] == [20.0, 100.0, 1000.0]


CAPACITY_PPS = 50_000.0


def spec(**given: object) -> SweepSpec:
    default = {} if "bursts" in given else {"rates": Rates(start_pps=1e4, stop_pps=1e5, step_pps=1e4)}
    return SweepSpec.model_validate({"frame": B64, "duration_s": 3, **default, **given})


def run(
    asked: SweepSpec, most_pps: float = float("inf"),
    sender: Callable[[float], float | None] = lambda counted_pps: counted_pps,
) -> list[load_steps.MeasuredLoad]:  # fmt: skip
    """Of a system that forwards up to its capacity; its generator offers no more than this, its interface counts so."""

    def measure(load: load_steps.LoadStep) -> load_steps.MeasuredLoad:
        offered = min(load.rate_pps * asked.flows, most_pps)
        arrived = min(offered, CAPACITY_PPS)
        samples = tuple(
            SweepSample(
                rate_pps=load.rate_pps, second=second, input_pps=offered, output_pps=arrived,
                loss_ratio=1 - arrived / offered if offered else None,
                delay_s=None if second % 2 else 1e-4 * (1 + second), cpu={"nf-1-1": (arrived / CAPACITY_PPS,)},
                memory_mib={} if second % 3 == 2 else {"nf-1-1": 10.0 + second},
                available_mib=None if second % 3 == 2 else 100.0 - second,
            )
            for second in range(load.begin_s, load.begin_s + load.duration_s)
        )  # fmt: skip
        return load_steps.MeasuredLoad(samples=samples, sender_pps=sender(offered))

    return [measure(load) for group in load_steps.steps_of(asked) for load in group]


def points(asked: SweepSpec, **system: Any) -> list[SweepPoint]:
    return [load_steps.point(each, asked) for each in run(asked, **system)]


def test_loads_go_up_each_second_is_a_sample_and_points_are_their_means() -> None:
    done, made = run(spec()), points(spec())
    assert [each.rate_pps for each in made] == [1e4 * step for step in range(1, 11)]
    assert all([sample.second for sample in each.samples] == [0, 1, 2] for each in done)
    assert [each.loss_ratio for each in made[:5]] == [0.0] * 5, "loss begins at the capacity"
    assert made[9].loss_ratio == pytest.approx(0.5)
    assert [made[9].input_bps, made[9].output_bps] == pytest.approx([1e5 * 512, 5e4 * 512])
    assert made[0].used("nf-1-1") == pytest.approx(0.2)
    assert made[0].delay_s == pytest.approx(2e-4), "the mean of seconds 0 and 2; that of second 1 is unknown"
    assert (made[0].memory_mib, made[0].available_mib) == ({"nf-1-1": 10.5}, 99.5), "of seconds 0 and 1"
    assert all(each.flagged is None for each in made)
    lossy = [load_steps.is_lossy(made[:count], 0.2) for count in range(1, 11)]
    assert lossy == [False] * 8 + [True] * 2, "three loads in a row, 70, 80 and 90 kpps, lose more than a fifth"


def test_a_load_beyond_the_generator_is_flagged_and_the_sweep_goes_on() -> None:
    made = points(spec(rates=Rates(start_pps=200, stop_pps=1000, step_pps=400)), most_pps=288.0)
    assert [each.flagged and "288 pps of " in each.flagged for each in made] == [None, True, True]
    made = points(spec(flows=4))
    assert [(each.input_pps, each.flagged) for each in made[:2]] == [(4e4, None), (8e4, None)]


def test_a_sender_whose_interface_counted_less_is_flagged() -> None:
    first, *_ = points(spec(), sender=lambda counted_pps: 0.9 * counted_pps)
    assert "9.00 kpps" in first.flagged and "10.0 kpps" in first.flagged
    assert first.sender_pps == pytest.approx(9000)
    assert {(each.flagged, each.sender_pps) for each in points(spec(), sender=lambda _: None)} == {(None, None)}


@given(share=st.floats(0.0, 0.2), tolerance=st.floats(0.01, 0.15))
def test_only_what_is_off_by_more_than_the_tolerance_is_flagged(share: float, tolerance: float) -> None:
    assume(abs(share - tolerance) > 1e-6)
    one = spec(rates=Rates(start_pps=1e4, stop_pps=1e4, step_pps=1), tolerance=tolerance)
    (made,) = points(one, most_pps=1e4 * (1 - share))
    assert (made.flagged is not None) == (share > tolerance)


def test_bursts_come_and_go_and_give_no_points() -> None:
    asked = spec(bursts=Bursts(rate_pps=6e4, on_s=2, off_s=1), duration_s=7)
    done = run(asked)
    rates = [(sample.second, sample.rate_pps) for each in done for sample in each.samples]
    assert rates == list(enumerate([6e4, 6e4, 0.0, 6e4, 6e4, 0.0, 6e4]))
    assert [sample.loss_ratio for sample in done[1].samples] == [None]
    assert [(load.rate_pps, load.duration_s) for load in load_steps.loads(asked, whole_bursts=True)] == [(6e4, 7)]


@given(on_s=st.integers(1, 9), off_s=st.integers(1, 9), seconds=st.integers(1, 60))
def test_bursts_fill_their_time_to_the_second(on_s: int, off_s: int, seconds: int) -> None:
    asked = spec(bursts=Bursts(rate_pps=1.0, on_s=on_s, off_s=off_s), duration_s=seconds)
    row = load_steps.loads(asked)
    assert sum(load.duration_s for load in row) == seconds == load_steps.duration_s(asked)
    assert [load.rate_pps > 0 for load in row] == [index % 2 == 0 for index in range(len(row))]


@given(capacity_pps=st.floats(2000.0, 5e6), sag=st.floats(0.0, 0.5))
def test_a_quick_look_finds_the_capacity_of_a_service_that_sags_in_overload(capacity_pps: float, sag: float) -> None:
    def offer(load_pps: float) -> tuple[float, float]:
        excess = max(0.0, load_pps - capacity_pps)
        return load_pps, min(load_pps, max(0.1 * capacity_pps, capacity_pps - sag * excess))

    found = load_steps.capacity(offer, 1e7, 1000.0)
    assert 0.45 * capacity_pps <= found <= capacity_pps
    assert load_steps.capacity(lambda load_pps: (load_pps, 0.0), 1e6, 1000.0) == 0.0, "of a dead service"


@given(st.floats(100.0, 1e7))
def test_loads_around_a_capacity_are_twelve_and_go_well_beyond_it(capacity_pps: float) -> None:
    row = load_steps.rates_around(capacity_pps).each()
    assert len(row) == 12
    assert row[0] < 0.2 * capacity_pps
    assert 1.5 * capacity_pps < row[-1] < 1.7 * capacity_pps


SPEC = SweepSpec(rates=Rates(start_pps=1000, stop_pps=1000, step_pps=1), duration_s=3, flows=2, frame=B64)


@pytest.fixture
def cell() -> Iterator[CellUnderTest]:
    """A simulated router, deployed."""
    router = cell_of("CSP", nf_kinds=(NfKind("linux_router"),))
    asked = MeasurementRequest(test_type=TestType.MRR, cell=router, frame=B64, profile=QUICK)
    made = CellUnderTest(SIM, SimulatedTestbed(SIM), asked)
    made.deploy(made.plan(sources=2))
    yield made
    assert made.remove() is None


def logging(cell: CellUnderTest, *, keeps: bool = True, arriving: float = 0.5) -> list[Trial]:
    """Have a generator that sends two thirds of what it is asked for and keeps a log; what it is asked for."""
    asked: list[Trial] = []

    def run(trial: Trial) -> TrialResult:
        asked.append(trial)
        sent = trial.load_pps / 2 * 2 / 3
        rows = [Interval(duration_s=1, sent=sent, received=arriving * sent, delay_ns=1e6)] * int(trial.duration_s)
        total = round(sent * trial.duration_s)
        counts = [(total, round(arriving * total))] * 2
        return finished(trial, *counts, intervals=tuple(rows) if keeps else (), interface_sent=2 * total)

    loads = HighestLoads(offered_pps=400_000.0, search_pps=100_000.0)
    generator = Altered(cell.deployment.parts.generator, run=run, highest_loads=lambda _: loads)
    cell.deployment.parts = replace(cell.deployment.parts, generator=generator)
    return asked


def test_a_load_is_a_trial_for_each_second_both_ways_and_between_bursts_of_probes(cell: CellUnderTest) -> None:
    found = Sampling(cell, B64, Protocol.IP, by_log=False).measure(SPEC, load_steps.LoadStep(1000.0, 4, 3))
    assert [sample.second for sample in found.samples] == [4, 5, 6]
    assert all(sample.input_pps == sample.output_pps == 2000.0 for sample in found.samples)
    assert all(sample.rate_pps == 1000.0 and sample.delay_s for sample in found.samples)
    assert all(0 < sum(sample.cpu["nf-1-1"]) < 0.1 for sample in found.samples)
    (sample,) = Sampling(cell, B64, Protocol.IP, by_log=False).measure(SPEC, load_steps.LoadStep(0.0, 2, 1)).samples
    assert (sample.input_pps, sample.loss_ratio) == (0.0, None) and sample.delay_s


def test_a_generator_with_a_log_sends_a_load_or_its_bursts_in_one_trial(cell: CellUnderTest) -> None:
    asked = logging(cell)
    found = Sampling(cell, B64, Protocol.UDP, by_log=True).measure(SPEC, load_steps.LoadStep(1500.0, 0, 3))
    (trial,) = asked
    assert (trial.load_pps, trial.duration_s, trial.protocol, trial.on_off_s) == (6000.0, 3.0, Protocol.UDP, None)
    assert [(sample.input_pps, sample.loss_ratio) for sample in found.samples] == [(2000.0, 0.5)] * 3
    assert found.sender_pps == pytest.approx(2000.0)
    asked = logging(cell)
    spec = SPEC.model_copy(update={"rates": None, "bursts": Bursts(rate_pps=1500, on_s=2, off_s=1)})
    found = Sampling(cell, B64, Protocol.UDP, by_log=True).measure(spec, load_steps.LoadStep(1500.0, 0, 3))
    assert asked[0].on_off_s == (2.0, 1.0)
    assert [sample.rate_pps for sample in found.samples] == [1500.0, 1500.0, 0.0]
    logging(cell, keeps=False)
    with pytest.raises(CsitError, match=r"the generator reported no second of 3 s at 1\.50 kpps"):
        Sampling(cell, B64, Protocol.UDP, by_log=True).measure(SPEC, load_steps.LoadStep(1500.0, 0, 3))


def test_the_capacity_is_of_each_flow_one_way_and_a_service_that_forwards_nothing_has_none(cell: CellUnderTest) -> None:
    sampling = Sampling(cell, B64, Protocol.IP, by_log=False)
    logging(cell, arriving=1.0)
    assert sampling.capacity_pps(flows=2) == pytest.approx(100_000 * 2 / 3 / 4, rel=1e-3)
    logging(cell, arriving=0.0)
    with pytest.raises(NoTraffic, match=r"no load from 1\.00 kpps was received: choose rates, or check the service"):
        sampling.capacity_pps(flows=1)
