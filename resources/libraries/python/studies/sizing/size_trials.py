"""Measurements of a sizing: each size is deployed, loaded, watched and removed before the next one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from resources.libraries.python.errors import CsitError, RunStopped, SystemBroken
from resources.libraries.python.studies.sizing.analysis.tables import TraceRow
from resources.libraries.python.studies.sizing.journal import SizingJournal
from resources.libraries.python.studies.sizing.load_monitor import LoadMonitor
from resources.libraries.python.studies.sizing.model.spec import DeploymentSpec, Size, Sizing
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.planning.sizes import instance_names, name_of, next_size, planned
from resources.libraries.python.studies.sizing.search.capacity import Once
from resources.libraries.python.studies.sizing.search.size_search import Reached, SizingSearch, Space
from resources.libraries.python.testbed.roles.service import Orchestrator, Passing, SizedService
from resources.libraries.python.testbed.worlds.real_time import RealTime

Trace = Callable[[str, str, Sequence[TraceRow]], None]
"""Takes what an instance used: name of the size, name of the instance, rows."""


def run_sizing(
    spec: DeploymentSpec,
    workload: WorkloadSpec,
    orchestrator: Orchestrator,
    journal: SizingJournal | None,
    progress: Callable[[str], None],
    *,
    time: Passing | None = None,
    trace: Trace | None = None,
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
        Space(planned(spec), partial(name_of, spec), partial(next_size, spec)),
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
        time: Passing,
        trace: Trace | None,
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

    def offer(self, load: float) -> Once:
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
        return Once(watched.answer.indicator, watched.use, watched.answer.figures, watched.trace)
