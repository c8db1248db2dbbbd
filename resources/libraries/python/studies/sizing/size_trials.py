"""Measurements of a sizing: each size is deployed, loaded, watched and removed before the next one."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import fmean

from pydantic import TypeAdapter

from resources.libraries.python.errors import ConnectionFailed, CsitError, RunStopped, SystemBroken
from resources.libraries.python.recording.run_journal import digest_of
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.sizing.analysis import TraceRow
from resources.libraries.python.studies.sizing.model.spec import (
    DeploymentSpec,
    Flavor,
    MeasuredSize,
    Size,
    Sizing,
    Trace,
    Use,
)
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.planning.sizes import instance_names, name_of, next_size, planned
from resources.libraries.python.studies.sizing.search.capacity import OfferedLoad
from resources.libraries.python.studies.sizing.search.size_search import Reached, SizeSpace, SizingSearch
from resources.libraries.python.testbed.roles.service import (
    InstanceUse,
    IntervalClock,
    LoadReport,
    Orchestrator,
    SizedService,
)
from resources.libraries.python.testbed.worlds.real_time import RealTime

KeepTrace = Callable[[str, str, Sequence[TraceRow]], None]
"""Takes what an instance used: name of the size, name of the instance, rows."""
INTERVAL_S = 1.0
_log = logging.getLogger(__name__)
_MB = 2**20
_Sample = tuple[float, Mapping[str, InstanceUse]]


def digest(spec: DeploymentSpec, workload: WorkloadSpec, system: str) -> str:
    """Digest of a sizing.

    Args:
        spec: The service.
        workload: What is offered to it.
        system: Where it is deployed, such as world and name of the testbed.
    """
    return digest_of(spec.model_dump_json(), workload.model_dump_json(), system)


class SizingJournal(StepJournal[MeasuredSize]):
    """The journal of a sizing: a line for each size, on disk before the next size is deployed."""

    FILE = "sizing.jsonl"
    KIND = "sizing"
    ROWS = TypeAdapter(MeasuredSize)

    @property
    def sizes(self) -> Mapping[str, MeasuredSize]:
        """Measured before, by name; of a size that is there twice the last one."""
        return {sized.name: sized for sized in self.rows}


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

    def __init__(self, service: SizedService, flavors: Mapping[str, Flavor], time: IntervalClock) -> None:
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
            if after[0] > before[0]:
                cpus, bytes_per_s = _rate(name, before, after, _cpu_s), _rate(name, before, after, _network_bytes)
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
    first, last, passed_s = before[1].get(name), after[1].get(name), after[0] - before[0]
    if first is None or last is None or passed_s <= 0:
        return None
    begin, end = count(first), count(last)
    return None if begin is None or end is None else (end - begin) / passed_s


def run_sizing(
    spec: DeploymentSpec,
    workload: WorkloadSpec,
    orchestrator: Orchestrator,
    journal: SizingJournal | None,
    progress: Callable[[str], None],
    *,
    time: IntervalClock | None = None,
    trace: KeepTrace | None = None,
    reached: Reached = lambda _sizes, _loads: None,
) -> Sizing:
    """Find the sizes' capacities, and the best size.

    Args:
        spec: The service.
        workload: What is offered to it.
        orchestrator: Deploys sizes.
        journal: Open; sizes that it has are not measured again. None for a search that cannot be resumed.
        progress: Takes the events of the search in sentences.
        time: How it passes; None for the machine's own.
        trace: Takes what every instance used each second; None for none.
        reached: Takes the number of sizes that are done, and of loads of the present one.

    Raises:
        PlanError: There are too many sizes.
        RunStopped: What was deployed cannot be removed, or the journal cannot be written.
        CsitError: The machine cannot be used at all.
    """
    bench = _Bench(spec, workload, orchestrator, time or RealTime(), trace)
    search = SizingSearch(
        spec,
        workload,
        SizeSpace(planned(spec), partial(name_of, spec), partial(next_size, spec)),
        bench.deploy,
        done=journal.sizes if journal else {},
        keep=journal.keep if journal else lambda _: None,
        report=progress,
        reached=reached,
    )
    return search.run()


class _Bench:
    """Brings sizes up and takes them away."""

    def __init__(
        self,
        spec: DeploymentSpec,
        workload: WorkloadSpec,
        orchestrator: Orchestrator,
        time: IntervalClock,
        trace: KeepTrace | None,
    ) -> None:
        self._spec = spec
        self._workload = workload
        self._orchestrator = orchestrator
        self._time = time
        self._trace = trace

    @contextmanager
    def deploy(self, size: Size) -> Iterator["_DeployedSize"]:
        """See SizingSearch."""
        name = name_of(self._spec, size)
        service = self._orchestrator.service(size)
        with ExitStack() as held:
            held.callback(_stop, service, name)
            begin_s = self._time.now()
            service.start()
            deploy_s = self._time.now() - begin_s
            flavors = {
                instance: self._spec.flavors[size.components[instance.rpartition("-")[0]].flavor]
                for instance in instance_names(self._spec, size)
            }
            trace = partial(self._trace, name) if self._trace else None
            yield _DeployedSize(service, LoadMonitor(service, flavors, self._time), self._workload, deploy_s, trace)


def _stop(service: SizedService, name: str) -> None:
    try:
        service.stop()
    except ConnectionFailed as error:
        # A node was lost: its agent removes what it has deployed, and the next size waits for both.
        _log.warning("%s: %s; the node removes its part by itself", name, error)
    except CsitError as error:
        raise RunStopped(f"{name} could not be removed: {error}") from error


class _DeployedSize:
    """A size that is up, and watched."""

    def __init__(
        self,
        service: SizedService,
        monitor: LoadMonitor,
        workload: WorkloadSpec,
        deploy_s: float | None,
        trace: Callable[[str, Sequence[TraceRow]], None] | None,
    ) -> None:
        self.deploy_s = deploy_s
        self._service = service
        self._monitor = monitor
        self._workload = workload
        self._trace = trace
        self._offered: list[float] = []

    def offer(self, load: float) -> OfferedLoad:
        """See search.sizing.Deployed.

        Raises:
            SystemBroken: Something is wrong with the service after the load.
            CsitError: The load could not be offered.
        """
        self._offered.append(load)
        watched = self._monitor.watch(load, self._offered.count(load), self._workload.duration_s)
        if self._trace is not None:
            for instance, rows in watched.rows.items():
                self._trace(instance, rows)
        problems = self._service.problems()
        if problems:
            raise SystemBroken(f"at {load:g} {self._workload.unit}: {'; '.join(problems)}")
        return OfferedLoad(watched.answer.indicator, watched.use, watched.answer.figures, watched.trace)
