"""Every feature that is sampled: its name, its unit, what it means. One value each second, of one owner.

The sources are those of "Probius: Automated Approach for VNF and Service Chain Analysis in Software-Defined NFV" (Nam
et al.): what the guest sees, what its host sees of it, and what the host does meanwhile. Work that the kernel does in
threads of its own is charged to the network function that it serves.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum, isfinite, sqrt
from statistics import quantiles

from resources.libraries.python.model.measurements.features import CHAIN
from resources.libraries.python.studies.chains.model import ChainRun, Statistic
from resources.libraries.python.studies.chains.model.spec import Chain, Workload


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the samples. Percentages are of one CPU unless noted: 250 are two and a half."""

    name: str
    unit: str
    meaning: str
    """After the name in a sentence: `CPU (CPU time of ...)`."""

    @property
    def title(self) -> str:
        """Name without its unit, in words: `CPU`, `rx dropped`."""
        return _OF_UNITS.sub("", self.name).replace("_", " ").replace("cpu", "CPU").replace("helper", "kernel threads")

    @property
    def of(self) -> str:
        """Unit in words: `% of one CPU`."""
        return {"%": "% of one CPU", "1/s": "per second"}.get(self.unit, self.unit)


_OF_UNITS = re.compile(r"_(percent|bytes|bytes_per_s|bps|pps|kib|s)$")


FEATURES: tuple[Feature, ...] = (
    # Of the network function's control group, vCPUs and interfaces.
    Feature("guest_cpu_percent", "%", "CPU time of its control group or of its vCPUs"),
    Feature("guest_memory_bytes", "B", "memory of its control group, without inactive file pages (working set)"),
    Feature("throttled_percent", "%", "time for which it was throttled, its CPU quota used up"),
    Feature("rx_pps", "pps", "packets that its ports received"),
    Feature("tx_pps", "pps", "packets that its ports sent"),
    Feature("rx_dropped_pps", "pps", "packets that its ports dropped on receive"),
    Feature("tx_dropped_pps", "pps", "packets that its ports dropped on transmit, the next queue being full"),
    Feature("queued_packets", "", "packets in the queues behind it: received and not yet taken"),
    Feature("queued_kib", "KiB", "memory of the packets in the sockets of its program"),
    Feature("socket_dropped_pps", "pps", "packets dropped at full sockets of its program, which no port counts"),
    # Of its processes, as the machine sees them, and of the kernel's threads that work for it.
    Feature("cpu_percent", "%", "CPU time of all its processes and of the kernel's threads that work for it"),
    Feature("user_percent", "%", "CPU time of its processes in user space"),
    Feature("system_percent", "%", "CPU time of its processes in the kernel"),
    Feature("helper_percent", "%", "CPU time of the kernel's threads that work for it: NAPI and vhost"),
    Feature("waiting_percent", "%", "time for which its threads were runnable and waited for a CPU"),
    Feature("voluntary_switches", "1/s", "voluntary context switches of its threads"),
    Feature("involuntary_switches", "1/s", "involuntary context switches of its threads"),
    Feature("threads", "", "threads of its processes, and kernel threads that work for it"),
    Feature("memory_bytes", "B", "resident memory of its processes"),
    Feature("read_bytes_per_s", "B/s", "read from storage by its processes"),
    Feature("written_bytes_per_s", "B/s", "written to storage by its processes"),
    # Of the machine itself.
    Feature("all_user_percent", "%", "time of all CPUs in user space"),
    Feature("all_system_percent", "%", "time of all CPUs in the kernel, interrupts apart"),
    Feature("all_interrupt_percent", "%", "time of all CPUs in hardware interrupts"),
    Feature("all_softirq_percent", "%", "time of all CPUs in soft interrupts"),
    Feature("all_idle_percent", "%", "idle time of all CPUs, including waiting for storage"),
    Feature("all_stolen_percent", "%", "time of all CPUs that the machine's host gave to other guests"),
    Feature("all_switches", "1/s", "context switches of all CPUs"),
    Feature("all_interrupts", "1/s", "interrupts of all CPUs"),
    Feature("all_net_rx_softirqs", "1/s", "soft interrupts for receiving, of all CPUs"),
    Feature("all_net_tx_softirqs", "1/s", "soft interrupts for sending, of all CPUs"),
    Feature("backlog_drops", "1/s", "packets dropped because the queue of a CPU was full"),
    Feature("backlog_packets", "", "received packets in the queues of all CPUs"),
    Feature("time_squeezes", "1/s", "times that receiving ended early because its budget was used up"),
    Feature("memory_used_bytes", "B", "memory in use on the machine"),
)
"""Owners that are network functions, and the vSwitch, have those of guest and process; the host has the others."""

OF_CHAINS = (
    Feature("throughput_bps", "bit/s", "throughput at the receiver, one way"),
    Feature("loss_ratio", "", "share of the sent packets that did not arrive"),
    Feature("latency_s", "s", "mean latency under the load, one way"),
    Feature("idle_latency_s", "s", "mean latency without load, one way"),
)
_BY_NAME = {feature.name: feature for feature in (*FEATURES, *OF_CHAINS)}


def feature(name: str) -> Feature:
    """The feature of that name; one of an unknown name has no unit, and its name as its meaning."""
    return _BY_NAME.get(name) or Feature(name, "", name.replace("_", " "))


_NOTABLE = {"%": 5.0, "pps": 50.0, "1/s": 50.0, "B/s": 2.0**20, "B": 2.0**20, "": 1.0}
_NOTABLE_OF_CHAINS = {"throughput_bps": 0.02, "loss_ratio": 0.001, "latency_s": 0.02, "idle_latency_s": 0.02}


def notable(name: str) -> float:
    """The least change of a feature that matters, whatever its standard deviation.

    Returns:
        In the feature's unit; for throughput and latency relative.
    """
    return _NOTABLE_OF_CHAINS.get(name) or _NOTABLE.get(feature(name).unit, 0.0)


THROUGHPUT, LOSS, LATENCY = "throughput_bps", "loss_ratio", "latency_s"
IDLE_LATENCY = "idle_latency_s"
"""It does not depend on the workload."""
CPU, WAITING, THROTTLED, READ = "cpu_percent", "waiting_percent", "throttled_percent", "read_bytes_per_s"
PERFORMANCE = (THROUGHPUT, LOSS, LATENCY)
"""Features of a chain from end to end: a value for each run, not for each second."""

_Key = tuple[Chain, str, Workload, str]
REACH = 1.5
"""Interquartile ranges below the first and above the third quartile that still count (Tukey's fences)."""
MIN_VALUES = 4
"""Fewest samples in which an outlier can be identified."""


def statistics(runs: Sequence[ChainRun]) -> tuple[Statistic, ...]:
    """Means and standard deviations (n - 1) without extraordinary seconds, in the order of the runs.

    Runs that failed have none. Runs of the same chain under the same workload are put together.
    """
    values: dict[_Key, list[float | None]] = defaultdict(list)
    for run in runs:
        if run.failed is None:
            for owner, feature, more in _features(run):
                values[run.chain, owner, run.workload, feature].extend(more)
    return tuple(_each(values))


def _each(values: dict[_Key, list[float | None]]) -> Iterator[Statistic]:
    for (chain, owner, workload, feature), seconds in values.items():
        kept, filtered = ordinary(seconds)
        if kept:
            mean = fsum(kept) / len(kept)
            yield Statistic(
                chain=chain,
                owner=owner,
                workload=workload,
                feature=feature,
                mean=mean,
                stdev=sqrt(fsum((value - mean) ** 2 for value in kept) / (len(kept) - 1)) if len(kept) > 1 else 0.0,
                samples=len(kept),
                filtered=filtered,
            )


def _features(run: ChainRun) -> Iterator[tuple[str, str, Sequence[float | None]]]:
    yield CHAIN, THROUGHPUT, (run.throughput_bps,)
    yield CHAIN, LOSS, (run.loss_ratio,)
    yield CHAIN, LATENCY, (run.latency_s,)
    yield CHAIN, IDLE_LATENCY, (run.idle_latency_s,)
    for series in run.series:
        yield series.owner, series.feature, series.values


def ordinary(values: Sequence[float | None]) -> tuple[list[float], int]:
    """The values inside the fences, in their order, and how many were outside.

    Quartiles are interpolated linearly. Unknown values count neither as the one nor as the other.
    """
    known = [value for value in values if value is not None and isfinite(value)]
    if len(known) < MIN_VALUES:
        return known, 0
    first, _, third = quantiles(known, method="inclusive")
    reach = REACH * (third - first)
    kept = [value for value in known if first - reach <= value <= third + reach]
    return kept, len(known) - len(kept)
