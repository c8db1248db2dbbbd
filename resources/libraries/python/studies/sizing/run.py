"""A sizing from its two specifications to the record."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, pairwise
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import Any

from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.errors import (
    ConfigError,
    ConnectionFailed,
    CsitError,
    InUse,
    RunStopped,
    SystemBroken,
    Unsupported,
)
from resources.libraries.python.model.service.load import Specifications, load_sizing
from resources.libraries.python.model.service.spec import (
    DeploymentSpec,
    Flavor,
    MeasuredSize,
    Offered,
    Size,
    Sizing,
    Trace,
    Use,
    name_of,
)
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.quantities import counted, grouped
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.shared.progress import StepEnded, human_time
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.studies.sizing.analysis import TraceFiles, TraceRow, headline, sizing_rows
from resources.libraries.python.studies.sizing.model import SizingRecord
from resources.libraries.python.studies.sizing.planning import SizingCost, cost, instance_names, next_size, planned
from resources.libraries.python.studies.sizing.planning.heat_templates import write_heat
from resources.libraries.python.studies.sizing.search.capacity import OfferedLoad, ends, offered_load
from resources.libraries.python.studies.sizing.search.size_search import (
    SizingSearch,
    carried_over,
    measured_size,
    outcome,
)
from resources.libraries.python.testbed.roles.service import (
    InstanceUse,
    IntervalClock,
    Orchestrator,
    RealTime,
    SizedService,
)
from resources.libraries.python.whole_files import write_whole

_cpu_s, _network_bytes = attrgetter("cpu_s"), attrgetter("network_bytes")
KeepTrace = Callable[[str, str, Sequence[TraceRow]], None]
"""Takes what an instance used: name of the size, name of the instance, rows."""
INTERVAL_S = 1.0
_MB = 2**20
_Sample = tuple[float, Mapping[str, InstanceUse]]


class LoadMonitor:
    """Asks a service once a second what its instances have used.

    `service`: it is up. Asked from another thread while a load is offered, never by two at a time.
    `flavors`: of the instances, by their names.
    """

    def __init__(self, service: SizedService, flavors: Mapping[str, Flavor], time: IntervalClock) -> None:
        self._service = service
        self._flavors = flavors
        self._time = time
        self._begin = time.now()

    def watch(self, load: float, repetition: int, duration_s: float) -> tuple[OfferedLoad, dict[str, list[TraceRow]]]:
        """Offer a load once; return what was reported and used, and rows by instance.

        `duration_s`: for which the generator offers it, from the script's start on. Means are over this time: while a
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
        found = OfferedLoad(
            answer.indicator,
            {name: _mean_use(name, flavor, inside) for name, flavor in self._flavors.items()},
            answer.figures,
            self._trace(samples, answer.seconds),
        )
        return found, {name: self._rows(name, samples, load, repetition) for name in self._flavors}

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


class SizeTrials:
    """Deploys one size after the other and offers it the loads of a workload.

    `trace`: takes what every instance used each second; None for none.
    `on_load`: called after each load with the number of loads on the size, and a sentence.
    """

    def __init__(
        self,
        spec: DeploymentSpec,
        workload: WorkloadSpec,
        orchestrator: Orchestrator,
        *,
        time: IntervalClock | None = None,
        trace: KeepTrace | None = None,
        on_load: Callable[[int, str], None] = lambda _loads, _sentence: None,
    ) -> None:
        self._spec = spec
        self._workload = workload
        self._orchestrator = orchestrator
        self._time = time or RealTime()
        self._trace = trace
        self._on_load = on_load
        self._name = ""
        self._service: SizedService | None = None
        self._deploy_s: float | None = None
        self._offered: list[Offered] = []

    def measure(self, size: Size) -> MeasuredSize:
        """Deploy a size and offer it all loads; `remove` has to follow.

        Raises:
            SystemBroken: Something is wrong with the service after a load.
            CsitError: It cannot be deployed, or a load could not be offered.
        """
        self._name, unit = name_of(self._spec, size), self._workload.unit
        self._offered, self._deploy_s = [], None
        self._service = service = self._orchestrator.service(size)
        begin_s = self._time.now()
        service.start()
        self._deploy_s = self._time.now() - begin_s
        flavors = {
            instance: self._spec.flavors[size.components[instance.rpartition("-")[0]].flavor]
            for instance in instance_names(self._spec, size)
        }
        monitor = LoadMonitor(service, flavors, self._time)
        for load in self._workload.loads():
            repetitions = count(1)
            row = offered_load(
                load,
                self._workload.repeat,
                lambda load: self.offer(service, monitor, load, next(repetitions)),  # noqa: B023
            )
            self._offered.append(row)
            words = f"{size.text} at {grouped(load)} {unit}: {grouped(row.mean, 4)}, {100 * row.ratio:.1f} %"
            self._on_load(len(self._offered), words)
            if ends(self._workload.stop, self._offered):
                break
        return measured_size(self._spec, self._workload, (size, self._name), self._offered, self._deploy_s)

    def failed(self, size: Size, reason: str) -> MeasuredSize:
        """Return the size that was measured last and has failed, with the loads before."""
        return measured_size(
            self._spec, self._workload, (size, self._name), self._offered, self._deploy_s, failed=reason
        )

    def offer(self, service: SizedService, monitor: LoadMonitor, load: float, repetition: int) -> OfferedLoad:
        """Offer a load once.

        Raises:
            SystemBroken: Something is wrong with the service after the load.
            CsitError: The load could not be offered.
        """
        found, traced = monitor.watch(load, repetition, self._workload.duration_s)
        if self._trace is not None:
            for instance, rows in traced.items():
                self._trace(self._name, instance, rows)
        if problems := service.problems():
            raise SystemBroken(f"at {grouped(load)} {self._workload.unit}: {'; '.join(problems)}")
        return found

    def facts(self) -> dict[str, str]:
        """Facts of the service; empty where none is deployed."""
        return dict(self._service.facts()) if self._service is not None else {}

    def remove(self) -> None:
        """Remove what is deployed, if anything is.

        Raises:
            RunStopped: It cannot be removed.
        """
        service, self._service = self._service, None
        try:
            if service is not None:
                service.stop()
        except ConnectionFailed as error:
            # A node was lost: its agent removes what it has deployed, and the next size waits for both.
            _log.warning("%s: %s; the node removes its part by itself", self._name, error)
        except CsitError as error:
            raise RunStopped(f"{self._name} could not be removed: {error}") from error


def search_of(
    spec: DeploymentSpec, workload: WorkloadSpec, report: Callable[[str], None] = lambda _: None
) -> SizingSearch:
    """Return the search over the sizes of a service.

    Raises:
        PlanError: There are too many sizes.
    """
    return SizingSearch(spec, workload, planned(spec), partial(next_size, spec), report)


_log = logging.getLogger(__name__)
OVERSUBSCRIBED = "oversubscribed"
"""The fact of a service that has more CPUs than there are."""


class ServiceSizing(StepStudy[Specifications, Size, MeasuredSize, Sizing]):
    """Deploys one size after the other, until the search has its answer."""

    RECORD = SizingRecord
    ROW = MeasuredSize
    MEASURED = "sizes were measured"
    FATAL = (ConfigError, InUse, RunStopped, Unsupported)  # which the next size would meet as well
    read = staticmethod(load_sizing)
    headline = staticmethod(headline)
    cost: SizingCost
    folder: Path
    """For traces, tables and templates of this test; that of its journal."""
    trials: SizeTrials

    @classmethod
    def title(cls, found: Sizing) -> str:
        return str(found.deployment.vnf_name)

    def set_up(self) -> None:
        self.cost = cost(self.spec.deployment, self.spec.workload)
        self.draft.drivers = {"orchestrator": str(self._topology.world)}
        self._search = search_of(self.spec.deployment, self.spec.workload, _log.info)

    def identity(self) -> str:
        return self.spec.deployment.model_dump_json() + self.spec.workload.model_dump_json()

    def plan(self) -> None:
        """Nothing: whether a size fits is known when it is deployed."""

    def preview(self) -> list[str]:
        simulated = " of simulated time" if self._topology.world is World.SIM else ""
        return [cost_in_words(self.cost) + simulated]

    def resume(self, journal: StepJournal[Any]) -> None:
        super().resume(journal)
        self.folder = journal.path.parent

    def prepare(self) -> None:
        """Find what deploys sizes.

        Raises:
            Unsupported: This world cannot deploy it.
        """
        host = self._world.host(self.spec, self.spec.folders[0])
        self.draft.simulation = host.simulation
        self.trials = SizeTrials(
            self.spec.deployment,
            self.spec.workload,
            host.orchestrator,
            time=host.time,
            trace=TraceFiles(self.folder).add,
            on_load=self._loaded,
        )

    def _loaded(self, loads: int, sentence: str) -> None:
        _log.info("%s", sentence)
        done, each = len(self.rows), 1 / self.cost.loads
        self._progress(done + 1, sentence, left=self.cost.sizes - done - loads * each, work=each * min(1, loads))

    def ended(self, step: StepEnded) -> None:
        """Report a size, whose work is that of its loads."""
        before = "" if step.work else " was measured before"
        _log.info("%s%s: %s", step.name, before, step.found)
        self._progress(
            step.number, f"{step.name}: {step.found}", left=self.cost.sizes - step.number, failed=step.failed
        )

    def _progress(self, number: int, found: str, *, left: float, work: float = 0.0, failed: bool = False) -> None:
        left, sizes = max(0.0, left), max(number, self.cost.sizes)
        self._on_step(StepEnded(number, sizes, "size", found, left=left, work=work, failed=failed))

    def steps(self) -> Iterator[Sequence[Size]]:
        for size in self._search.wanted():
            yield (size,)
            self._search.add(self.rows[-1])

    def key(self, size: Size) -> str:
        return name_of(self.spec.deployment, size)

    def label(self, size: Size) -> str:
        return size.text

    def in_words(self, sized: MeasuredSize) -> str:
        return outcome(sized, self.spec.workload.unit)

    def measure(self, size: Size) -> MeasuredSize:
        found = self.trials.measure(size)
        if short := self.trials.facts().get(OVERSUBSCRIBED):
            self.note(f"{OVERSUBSCRIBED}: {short}")
        return found

    def breaks(self, error: Exception) -> bool:
        """A node was lost, or a part of the service has died; what else fails has failed for this size."""
        return isinstance(error, ConnectionFailed | SystemBroken)

    def facts(self) -> dict[str, dict[str, str]]:
        return {"service": self.trials.facts()}

    def failed_row(self, size: Size, reason: str) -> MeasuredSize:
        return self.trials.failed(size, reason)

    def carried_over(self, sized: MeasuredSize) -> MeasuredSize:
        return carried_over(self.spec.deployment, self.spec.workload, sized)

    def remove(self) -> str | None:
        if hasattr(self, "trials"):
            self.trials.remove()
        return None

    def analyse(self, sizes: Sequence[MeasuredSize]) -> Sizing | None:
        self.draft.warnings = list(self.notes)
        found = self._search.result()
        return found.model_copy(update={"sizes": (*found.sizes, *sizes[len(found.sizes) :])}) if sizes else None

    def run(self) -> Sizing:
        found = super().run()
        write_whole(self.folder / "sizing.csv", csv_text(sizing_rows(found)))
        # Templates for OpenStack, where its flavors can have that many CPUs.
        if all(flavor.vcpus % 1 == 0 for flavor in self.spec.deployment.flavors.values()):
            write_heat(self.spec, {row.name: row.size for row in found.sizes}, self.folder / "heat")
        _log.info("traces, tables and journal: %s", self.folder)
        return found

    def enough(self) -> None:
        """Check that the search has its answer.

        Raises:
            CsitError: It has not.
        """
        found = self.result()
        if found.stopped == "failed":
            reasons = [f"{row.text}: {row.failed}" for row in found.sizes if row.failed]
            raise CsitError("; ".join(dict.fromkeys(reasons)))


def cost_in_words(price: SizingCost) -> str:
    """Sizes, loads and time of a sizing."""
    most, loads = ("at most " if price.sizes_at_most else ""), ("at most " if price.loads_at_most else "")
    repeated = f", each {price.repetitions} times" if price.repetitions > 1 else ""
    time_text = f"{'at most' if price.at_most else 'about'} {human_time(price.seconds)}"
    sizes = f"{most}{counted(price.sizes, 'size')}"
    return f"{sizes}, {loads}{price.loads} loads on each{repeated}: {time_text}"
