"""Resource use of every instance of a service under load: each second, and as means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from resources.libraries.python.studies.sizing.analysis.tables import TraceRow
from resources.libraries.python.studies.sizing.model.spec import Flavor, Trace, Use
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport, Passing, SizedService

INTERVAL_S = 1.0
_MB = 2**20
_Sample = tuple[float, Mapping[str, InstanceUse]]


@dataclass(frozen=True, slots=True)
class WatchedLoad:
    """Report of one offered load, and resources used meanwhile."""

    answer: LoadReport
    use: dict[str, Use]
    rows: dict[str, list[TraceRow]]
    """By instance."""
    trace: Trace


class LoadMonitor:
    """Asks a service once a second what its instances have used.

    Args:
        service: It is up. Asked from another thread while a load is offered, never by two at a time.
        flavors: Of the instances, by their names.
        time: How time passes.
    """

    def __init__(self, service: SizedService, flavors: Mapping[str, Flavor], time: Passing) -> None:
        self._service = service
        self._flavors = flavors
        self._time = time
        self._begin = time.now()

    def watch(self, load: float, repetition: int, duration_s: float) -> WatchedLoad:
        """Offer a load once.

        Args:
            load: In the workload's unit.
            repetition: Its number, from 1.
            duration_s: For which the generator offers it, from the script's start on. Means are over this time: while a
                script waits for late answers afterwards, every instance looks idle.

        Raises:
            CsitError: The load could not be offered, or instances could not be asked.
        """
        samples = [self._sample()]
        with self._time.every(INTERVAL_S, lambda: samples.append(self._sample())):
            answer = self._service.offer(load)
        samples.append(self._sample())
        until = samples[0][0] + duration_s
        inside = [row for row in samples if row[0] < until]
        inside += samples[len(inside) : len(inside) + 1]
        return WatchedLoad(
            answer,
            {name: _mean_use(name, flavor, inside) for name, flavor in self._flavors.items()},
            {name: self._rows(name, samples, load, repetition) for name in self._flavors},
            self._trace(samples, answer.seconds),
        )

    def _trace(self, samples: Sequence[_Sample], indicators: Sequence[float]) -> Trace:
        pairs = [(before, after) for before, after in pairwise(samples) if after[0] > before[0]]
        return Trace(
            indicators=tuple(float(f"{value:.5g}") for value in indicators),
            ends_s=tuple(round(after[0] - samples[0][0], 3) for _, after in pairs),
            cpu={
                name: tuple(
                    None if (cpus := _rate(name, before, after, _cpu_s)) is None else round(cpus / flavor.vcpus, 4)
                    for before, after in pairs
                )
                for name, flavor in self._flavors.items()
            },
        )

    def _sample(self) -> _Sample:
        use = self._service.use()
        return self._time.now(), use

    def _rows(self, name: str, samples: Sequence[_Sample], load: float, repetition: int) -> list[TraceRow]:
        rows = []
        for before, after in pairwise(samples):
            cpus, bytes_per_s = _rate(name, before, after, _cpu_s), _rate(name, before, after, _network_bytes)
            if after[0] > before[0]:
                rows.append(
                    TraceRow(
                        time_s=round(after[0] - self._begin, 3),
                        cpu_percent=None if cpus is None else round(100 * cpus, 2),
                        memory_bytes=_memory(name, after),
                        network_bps=None if bytes_per_s is None else round(8 * bytes_per_s),
                        load=load,
                        repetition=repetition,
                    )
                )
        return rows


def _mean_use(name: str, flavor: Flavor, samples: Sequence[_Sample]) -> Use:
    cpus = _rate(name, samples[0], samples[-1], _cpu_s)
    bytes_per_s = _rate(name, samples[0], samples[-1], _network_bytes)
    memory = [count for row in samples if (count := _memory(name, row)) is not None]
    return Use(
        cpu=None if cpus is None else cpus / flavor.vcpus,
        memory=fmean(memory) / (flavor.memory_mb * _MB) if memory else None,
        network_bps=None if bytes_per_s is None else 8 * bytes_per_s,
    )


def _cpu_s(use: InstanceUse) -> float | None:
    return use.cpu_s


def _network_bytes(use: InstanceUse) -> float | None:
    return use.network_bytes


def _memory(name: str, sample: _Sample) -> int | None:
    use = sample[1].get(name)
    return None if use is None else use.memory_bytes


def _rate(name: str, before: _Sample, after: _Sample, count: Callable[[InstanceUse], float | None]) -> float | None:
    """Rate of a counter between two samples, per second; None where it is not known."""
    ends = [sample[1].get(name) for sample in (before, after)]
    counts = [None if use is None else count(use) for use in ends]
    passed_s = after[0] - before[0]
    if counts[0] is None or counts[1] is None or passed_s <= 0:
        return None
    return (counts[1] - counts[0]) / passed_s
