"""Trials at one load, one after the other, with everything that parts and machine count around each."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields

from resources.libraries.python.model.measurements.counters import CpuTime, HostState, InterfaceCounters, Sample
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.search.findings.correlates import Quantity, Repeat
from resources.libraries.python.testbed.deployment.cell import Deployment

_MIB = 1 << 20


_Reading = tuple[Sample, HostState, Mapping[str, InterfaceCounters]]


def repeat_trial(
    deployment: Deployment, measure: Callable[[Trial], TrialResult], trial: Trial, count: int
) -> list[Repeat]:
    """Run a trial so many times; those that the generator did not send in full are left out."""
    found = []
    before = _read(deployment)
    for _ in range(count):
        result = measure(trial)
        after = _read(deployment)
        if not result.generator_limited and result.offered_duration_s > 0:
            readings = dict(_gained(before, after, result.offered_duration_s))
            found.append(Repeat(deployment.parts.clock(), result.forwarded_pps, readings))
        before = after
    return found


def _read(deployment: Deployment) -> _Reading:
    return deployment.sample(), deployment.state(), deployment.counters()


def _gained(before: _Reading, after: _Reading, seconds: float) -> Iterator[tuple[Quantity, float]]:
    """What was counted between two readings, for each second of a trial, and levels at the second one."""
    (sample, state, counters), (sample_after, state_after, counters_after) = before, after
    times = {
        f"the data thread of {name}": [(time, sample.threads.get(name))] for name, time in sample_after.threads.items()
    }
    for owner, tasks in sample_after.tasks.items():
        known = sample.tasks.get(owner, {})
        times[owner] = [(task.time, known[thread].time if thread in known else None) for thread, task in tasks.items()]
    for name, pairs in times.items():
        row = [(now, then) for now, then in pairs if then is not None]
        yield (
            (f"running time of {name}", "ms/s"),
            sum(now.running_ns - then.running_ns for now, then in row) / seconds / 1e6,
        )
        yield (
            (f"time that {name} waits for its CPU", "ms/s"),
            sum(now.waiting_ns - then.waiting_ns for now, then in row) / seconds / 1e6,
        )
    for cpu in sample_after.cpus.keys() & sample.cpus.keys():
        for kind in fields(CpuTime):
            ns = getattr(sample_after.cpus[cpu], kind.name) - getattr(sample.cpus[cpu], kind.name)
            yield (f"{kind.name.removesuffix('_ns')} time of CPU {cpu}", "ms/s"), ns / seconds / 1e6
    for owner, used in sample_after.memory_bytes.items():
        yield (f"memory of {owner}", "MiB"), used / _MIB
    for interface in counters_after.keys() & counters.keys():
        gained = counters_after[interface] - counters[interface]
        yield (f"drops at the receiving end of {interface}", "pps"), gained.rx_dropped / seconds
        yield (f"drops at the sending end of {interface}", "pps"), gained.tx_dropped / seconds
    for name in state_after.counts.keys() & state.counts.keys():
        yield (name, "per second"), (state_after.counts[name] - state.counts[name]) / seconds
    for named, value in state_after.levels.items():
        what, _, unit = named.rpartition(" in ")
        yield (what, unit), value
