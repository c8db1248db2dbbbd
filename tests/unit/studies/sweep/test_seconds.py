"""From trials and readings to seconds of a sweep, on plans of real topologies."""

from typing import Any

import pytest

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
    Interval,
    Trial,
    TrialResult,
)
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.nf_size import NfSize
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
from tests.builders import cpus, finished, plan_of

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
    (crowded,) = vnfs(plan(2))
    assert "vswitch" in crowded.shares_cpus_with
    (alone,) = vnfs(plan(8))
    assert alone.shares_cpus_with == ()
    assert alone.vcpus == 1


def test_the_time_of_a_vnf_is_that_of_its_ports_threads_by_data_thread() -> None:
    made = plan(2, nodes=2)
    before = Sample(threads=threads(made, "nf-1-1", 0.0) | threads(made, "nf-1-2", 0.0))
    after = Sample(threads=threads(made, "nf-1-1", 0.5) | threads(made, "nf-1-2", 0.25))
    assert work(made, before, after, 1.0).cpu == {"nf-1-1": (0.5,), "nf-1-2": (0.25,)}
    assert work(made, before, after, 0.25).cpu["nf-1-1"] == (1.0,), "never more than all of the time"


def test_memory_is_that_of_vnfs_at_the_end_of_a_second() -> None:
    made, idle = plan(8), Sample(memory_bytes={"nf-1-1": 1 << 20}, available_bytes=1 << 30)
    later = Sample(memory_bytes={"nf-1-1": 3 << 20, "vswitch": 9 << 20}, available_bytes=1 << 29)
    cost = work(made, idle, later, 1.0)
    assert (cost.memory_mib, cost.available_mib) == ({"nf-1-1": 3.0}, 512.0)
    unknown = work(made, Sample(), Sample(), 1.0)
    assert (unknown.memory_mib, unknown.available_mib) == ({}, None)


def test_a_vnf_that_waits_for_its_cpu_has_work_all_the_time() -> None:
    """It runs a fifth of the time on a CPU that others have for the rest of it."""
    made = plan(2)
    one, other = (port.interface for port in made.ports("nf-1-1"))
    before = Sample(threads=dict.fromkeys((one, other), ThreadTime(0, 0)))
    after = Sample(
        threads={one: ThreadTime(SECOND_NS // 10, 85 * SECOND_NS // 100), other: ThreadTime(SECOND_NS // 10, 0)}
    )
    cost = work(made, before, after, 1.0)
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
    assert work(crowded, Sample(cpus={cpu: before}), Sample(cpus={cpu: after}), 1.0).cpu == {}, "nobody knows"


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


def test_the_seconds_of_sending_are_found_among_readings_that_began_earlier() -> None:
    """Idle for 1.25 s, then 2 s of work that doubles in the second one, then idle."""
    made, ran, readings = plan(2), 0.0, []
    for index in range(20):
        readings.append(SamplerReading(index / 4, Sample(threads=threads(made, "nf-1-1", ran))))
        ran += 0.0 if not 5 <= index < 13 else 0.25 * (0.3 if index < 9 else 0.6)
    used = busiest(made, readings, 2)
    assert [row.cpu["nf-1-1"][0] for row in used] == pytest.approx([0.3, 0.6], abs=1e-6)
    assert busiest(made, readings[:1], 2) == ()
    assert len(busiest(made, readings[:7], 5)) == 1, "as far as readings reach"


def test_bursts_are_found_where_the_first_begins_although_the_last_second_is_idle() -> None:
    """Idle for 1.25 s, on for a second, off for a second, then idle."""
    made, at_s = plan(2), [index / 4 for index in range(20)]
    ran = [0.4 * min(1.0, max(0.0, each - 1.25)) for each in at_s]
    readings = [
        SamplerReading(at, Sample(threads=threads(made, "nf-1-1", busy))) for at, busy in zip(at_s, ran, strict=True)
    ]
    assert [row.cpu["nf-1-1"][0] for row in busiest(made, readings, 2)] == pytest.approx([0.4, 0.0], abs=1e-6)


def test_the_senders_interface_counts_what_it_dropped_and_no_probes() -> None:
    made = plan(2)
    ports = [flow.tx_interface for flow in made.flows]
    before = dict.fromkeys(ports, InterfaceCounters(0, 100, 0, 0))
    after = dict.fromkeys(ports, InterfaceCounters(0, 1000, 0, 150))
    assert sender_pps(made, [result()], before, after) == pytest.approx(1050.0)
    assert sender_pps(made, [result(interface_sent=1800)], before, after) == pytest.approx(900.0)
    assert sender_pps(made, [result()], {}, {}) is None


def test_probes_are_few_beside_the_load() -> None:
    made = plan(2)
    assert [probes_pps(made, rate) for rate in (0.0, 10_000.0, 1e6)] == [20.0, 100.0, 1000.0]
