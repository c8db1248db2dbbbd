"""From trials and readings of a sampler to seconds of a sweep: packets offered and received, CPUs and memory used."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.findings import Usage
from resources.libraries.python.model.measurements.counters import InterfaceCounters, Sample, ThreadTime
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.search.findings.usage import usage
from resources.libraries.python.studies.sweep.model import MIB, CpuUse, SweepSample, Vnf

_WAYS = 2
_PROBE_SHARE = 0.01
_MIN_PROBES_PPS = 20.0
_MAX_PROBES_PPS = 1000.0
_AS_MUCH = 0.998
_NEW = ThreadTime(0, 0)
"""A thread that was started since the last reading."""


@dataclass(frozen=True, slots=True)
class SamplerReading:
    """A sample, and when it was read."""

    at_s: float
    sample: Sample


def probes_pps(plan: Plan, one_way_pps: float) -> float:
    """Probe frames per instance and direction: a hundredth of its load, 20 at least and 1000 at most."""
    return min(_MAX_PROBES_PPS, max(_MIN_PROBES_PPS, _PROBE_SHARE * one_way_pps / len(plan.cell.instances)))


def vnfs(plan: Plan) -> tuple[Vnf, ...]:
    """The network functions of a plan, and with whom each shares CPUs."""
    places: dict[str, set[tuple[str | None, int]]] = {}
    for thread in plan.cores.threads:
        if thread.role is ThreadRole.DATA:
            places.setdefault(thread.owner, set()).add((thread.machine, thread.cpu))
    return tuple(
        Vnf(
            name=function.name,
            kind=function.kind,
            vcpus=len(plan.cores.cpus(function.name)),
            shares_cpus_with=tuple(
                sorted(
                    owner
                    for owner, others in places.items()
                    if owner != function.name and others & places.get(function.name, set())
                )
            ),
        )
        for function in plan.nfs
    )


@dataclass(frozen=True, slots=True)
class SecondCost:
    """Use of a second; see the fields of `SweepSample`."""

    cpu: CpuUse
    busy: CpuUse
    memory_mib: Mapping[str, float]
    available_mib: float | None


_UNKNOWN = SecondCost({}, {}, {}, None)


def work(plan: Plan, before: Sample, after: Sample, sending_s: float) -> SecondCost:
    """Share of the time of sending in which each data thread of each VNF ran and had work, and memory at its end.

    Of a virtual machine or a program beside the kernel it is the time of all threads that work for it: of a guest its
    vCPUs, QEMU's other threads on their CPUs, and vhost threads. Where the world has no times of threads, it is that
    of their CPU, if no other data thread has its place there. A VNF of which nothing is known is left out.

    A data thread may be several threads of the kernel, one for each port, that wait for each other as well as for
    others. It had work at least as long as all of them ran together, and as long as any of them ran or waited.

    Args:
        plan: Has the VNFs and their CPUs.
        before: Reading before.
        after: Reading after.
        sending_s: Seconds of sending in between; above 0.
    """
    found = usage(plan, before, after, sending_s)
    threads = {load.interface: load for load in found.threads}
    cpu: dict[str, tuple[float, ...]] = {}
    busy: dict[str, tuple[float, ...]] = {}
    for vnf in vnfs(plan):
        ports, own = plan.ports(vnf.name), None if vnf.shares_cpus_with else _of_cpus(plan, vnf.name, found)
        if all(port.interface in threads for port in ports):
            rows = [
                [threads[port.interface] for port in ports if port.data_thread == index] for index in range(vnf.vcpus)
            ]
            cpu[vnf.name] = tuple(
                # Of a data thread without a port, to which others may hand packets, use its CPU.
                min(1.0, sum(load.running for load in row)) if row or own is None else own[index]
                for index, row in enumerate(rows)
            )
            had_work = (max((load.running + load.waiting for load in row), default=0.0) for row in rows)
            busy[vnf.name] = tuple(map(max, cpu[vnf.name], had_work))
        elif by_tasks := _of_tasks(plan.cores.cpus(vnf.name), vnf.name, before, after):
            cpu[vnf.name] = tuple(min(1.0, ran_ns / sending_s / 1e9) for ran_ns, _ in by_tasks)
            had_work = (min(1.0, wanted_ns / sending_s / 1e9) for _, wanted_ns in by_tasks)
            busy[vnf.name] = tuple(map(max, cpu[vnf.name], had_work))
        elif own is not None:
            cpu[vnf.name] = own
    memory = {vnf.name: after.memory_bytes[vnf.name] / MIB for vnf in vnfs(plan) if vnf.name in after.memory_bytes}
    available = None if after.available_bytes is None else after.available_bytes / MIB
    return SecondCost(cpu, busy, memory, available)


def _of_tasks(cpus: Sequence[int], name: str, before: Sample, after: Sample) -> list[tuple[float, float]]:
    """Nanoseconds in which threads of a VNF ran, and in which one of them ran or waited, for each of its data CPUs.

    The time of a thread that may run on several of them is divided equally, also between data threads that share a
    CPU. Threads that may run on none of them only manage. Empty where no thread is known.
    """
    then, now = before.tasks.get(name, {}), after.tasks.get(name, {})
    gained = [
        (each.cpus, each.time.running_ns - earlier.running_ns, each.time.waiting_ns - earlier.waiting_ns)
        for thread, each in now.items()
        for earlier in [then[thread].time if thread in then else _NEW]
        if each.cpus & set(cpus)
    ]
    if not then or not gained:
        return []
    shares = [(own, sum(cpu in own for cpu in cpus), ran, waited) for own, ran, waited in gained]
    return [
        (
            sum(ran / places for own, places, ran, _ in shares if cpu in own),
            max(((ran + waited) / places for own, places, ran, waited in shares if cpu in own), default=0.0),
        )
        for cpu in cpus
    ]


def _of_cpus(plan: Plan, name: str, found: Usage) -> tuple[float, ...] | None:
    if any(thread.machine for thread in plan.cores.threads if thread.owner == name):
        return None  # CPUs of a second machine have the same numbers
    busy = {load.cpu: min(1.0, load.user + load.system + load.softirq) for load in found.cpus}
    cpus = plan.cores.cpus(name)
    return tuple(busy[cpu] for cpu in cpus) if all(cpu in busy for cpu in cpus) else None


def second_of(result: TrialResult, rate_pps: float, second: int, cost: SecondCost) -> SweepSample:
    """A sample from a trial of one second.

    `rate_pps`: asked, of each flow.
    """
    return SweepSample(
        rate_pps=rate_pps,
        second=second,
        input_pps=result.offered_pps / _WAYS,
        output_pps=result.forwarded_pps / _WAYS,
        loss_ratio=result.loss_ratio,
        delay_s=mean_delay_s((flow.mean_ns, flow.received) for flow in result.latency),
        **asdict(cost),
    )


def mean_delay_s(rows: Iterable[tuple[float | None, float]]) -> float | None:
    """Mean over all packets of means in nanoseconds, each with its packets; None where nothing is known."""
    known = [(mean_ns, packets) for mean_ns, packets in rows if mean_ns is not None and packets]
    arrived = sum(packets for _, packets in known)
    return sum(mean_ns * packets for mean_ns, packets in known) / arrived / 1e9 if arrived else None


def seconds_of(result: TrialResult, rate_pps: float, costs: Sequence[SecondCost]) -> tuple[SweepSample, ...]:
    """Samples from a long trial whose generator kept a log; what arrives in a second may have been sent in the last.

    Args:
        result: Of the trial.
        rate_pps: Asked, of each flow; of bursts, while they are on.
        costs: What each second cost; empty where unknown.
    """
    duty = result.trial.on_off_s
    known = [*costs, *[_UNKNOWN] * (len(result.intervals) - len(costs))]
    return tuple(
        SweepSample(
            rate_pps=rate_pps if duty is None or index % sum(duty) < duty[0] else 0.0,
            second=index,
            input_pps=each.sent / each.duration_s,
            output_pps=each.received / each.duration_s,
            loss_ratio=max(0.0, 1 - each.received / each.sent) if each.sent else None,
            delay_s=None if each.delay_ns is None else each.delay_ns / 1e9,
            **asdict(cost),
        )
        for index, (each, cost) in enumerate(zip(result.intervals, known, strict=False))
    )


def busiest(plan: Plan, readings: Sequence[SamplerReading], seconds: int) -> tuple[SecondCost, ...]:
    """Cost of each second of a long trial, if the reading at the start of sending is unknown.

    A generator prepares before it sends and settles afterwards, while data threads have nothing to do: of all windows
    of that length, the one in which they ran most is that of the sending. Bursts end with nothing to do, so that many
    windows have as much: the last of them begins with the first burst.

    Args:
        plan: Has the VNFs and their CPUs.
        readings: At equal distances of a part of a second, from before the trial to after it.
        seconds: Of sending.

    Returns:
        One for each second; fewer where the readings do not reach that far.
    """
    if len(readings) < 2:
        return ()
    step_s = (readings[-1].at_s - readings[0].at_s) / (len(readings) - 1)
    each = max(1, round(1.0 / step_s))
    length = min(seconds * each, (len(readings) - 1) // each * each)
    if not length:
        return ()
    ran_ns = [_ran_ns(readings[at], readings[at + length]) for at in range(len(readings) - length)]
    first = max(at for at, ran in enumerate(ran_ns) if ran >= _AS_MUCH * max(ran_ns))
    return tuple(
        work(plan, one.sample, other.sample, other.at_s - one.at_s)
        for one, other in ((readings[first + at], readings[first + at + each]) for at in range(0, length, each))
    )


def _ran_ns(before: SamplerReading, after: SamplerReading) -> int:
    then, now = before.sample, after.sample
    if now.threads:
        return sum(
            now.threads[name].running_ns - each.running_ns for name, each in then.threads.items() if name in now.threads
        )
    return sum(
        now.cpus[cpu].user_ns + now.cpus[cpu].system_ns + now.cpus[cpu].softirq_ns
        - each.user_ns - each.system_ns - each.softirq_ns
        for cpu, each in then.cpus.items()
        if cpu in now.cpus
    )  # fmt: skip


def sender_pps(
    plan: Plan,
    results: Sequence[TrialResult],
    before: Mapping[str, InterfaceCounters],
    after: Mapping[str, InterfaceCounters],
) -> float | None:
    """The rate at which packets of the load came to the sender's interfaces, all flows, one way; None if unknown.

    Those that an interface dropped because the queue behind it was full count: the service did not take them in time.

    `before`: counters by interface, those of the generator among them where they can be read.
    `after`: the same after the trials.
    """
    sending_s = sum(result.offered_duration_s for result in results)
    if not sending_s:
        return None
    counts = [result.interface_sent for result in results]
    if all(count is not None for count in counts):
        return sum(count for count in counts if count is not None) / sending_s / _WAYS
    ports = {flow.tx_interface for flow in plan.flows}
    if not ports <= before.keys() & after.keys():
        return None
    rows = [after[port] - before[port] for port in ports]
    left = sum(row.tx_packets + row.tx_dropped for row in rows)
    probes = sum(flow.sent for result in results for flow in result.latency)
    return max(0.0, left - probes) / sending_s / _WAYS
