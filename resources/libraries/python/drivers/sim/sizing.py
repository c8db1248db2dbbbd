"""Services of several components on the simulated testbed. Nothing in it is measured, and no script is run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from statistics import fmean

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.service_model import SimulatedService
from resources.libraries.python.studies.sizing.model.spec import DeploymentSpec, Size
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.planning.sizes import name_of
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport

_STEP_S = 1.0


class VirtualTime:
    """Fulfils `Passing` with a virtual clock."""

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._ticks: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> float:
        return self._clock.now()

    @contextmanager
    def every(self, seconds: float, tick: Callable[[], None]) -> Iterator[None]:
        row = (seconds, tick)
        self._ticks.append(row)
        try:
            yield
        finally:
            self._ticks.remove(row)

    def advance(self, seconds: float) -> None:
        """Let time pass; ticks come on the raster of virtual time."""
        before = self.now()
        self._clock.advance(seconds)
        for interval, tick in self._ticks:
            if int(self.now() / interval + 1e-9) > int(before / interval + 1e-9):
                tick()


@dataclass(frozen=True, slots=True)
class _Instance:
    """What calls cost it."""

    name: str
    cpu_s: float
    """Of a call of the whole service."""
    network_bytes: float
    """As cpu_s."""
    idle_bytes: float
    """Memory."""
    busy_bytes: float
    """Memory, more for each call per second."""


class SimOrchestrator:
    """Fulfils `roles.service.Orchestrator`.

    Args:
        simulated: The truth.
        spec: The service.
        workload: What is offered to it.
        time: The clock, shared with the probes.
    """

    def __init__(
        self, simulated: SimulatedService, spec: DeploymentSpec, workload: WorkloadSpec, time: VirtualTime
    ) -> None:
        self._simulated = simulated
        self._spec = spec
        self._workload = workload
        self._time = time

    def service(self, size: Size) -> "SimService":
        return SimService(self._simulated, self._spec, self._workload, self._time, size)


class SimService:
    """Fulfils `roles.service.SizedService`. Each size has its own random numbers, independent of the order of sizes."""

    def __init__(
        self,
        simulated: SimulatedService,
        spec: DeploymentSpec,
        workload: WorkloadSpec,
        time: VirtualTime,
        size: Size,
    ) -> None:
        """Prepare."""
        self._simulated = simulated
        self._spec = spec
        self._duration_s = workload.duration_s
        self._work = simulated.work_of(workload)
        self._time = time
        self._size = size
        self._rng = Random(f"{simulated.seed} {name_of(spec, size)}")  # noqa: S311 - a simulation
        self._limit = simulated.capacity(spec, size, self._work)
        self._instances = {row.name: row for name in size.components for row in self._parts(name)}
        self._done = 0.0
        self._calls = 0.0

    def _parts(self, name: str) -> Iterator["_Instance"]:
        """The instances of a component."""
        part, share = self._simulated.components[name], self._size.components[name]
        cpus = self._simulated.busy(name, share, self._spec.flavors[share.flavor], self._work, 1.0)
        for number, cpu_s in enumerate(cpus, 1):
            weight = cpu_s / sum(cpus)
            yield _Instance(
                f"{name}-{number}",
                cpu_s,
                part.network_bytes * self._work * weight,
                part.memory_mb * 2**20,
                part.memory_kb * 2**10 * weight,
            )

    def start(self) -> None:
        """Nothing starts; virtual time passes."""
        self._time.advance(self._simulated.deploy_s * len(self._instances))

    def offer(self, load: float) -> LoadReport:
        """Calls per second that succeeded: the mean over the duration, and those of each second."""
        control, rng = self._simulated.control, self._rng
        limit = self._limit * rng.gauss(1.0, self._simulated.drift)
        # In overload the bucket is as the time before has left it.
        low = 1.0 if control is None else control.decrease
        admitted = load if load <= limit else min(load, limit * rng.uniform(low, 1.0))
        done: list[float] = []
        left_s = self._duration_s
        while left_s > 1e-9:
            carried = limit * rng.gauss(1.0, self._simulated.noise)
            wanted = load if control is None else min(load, admitted)
            self._calls = min(wanted, carried)
            if control is not None:
                admitted = control.next(admitted, limit, late=wanted > carried, rng=rng)
            done.append(self._calls)
            step_s = min(_STEP_S, left_s)
            self._done += self._calls * step_s
            self._time.advance(step_s)
            left_s -= step_s
        self._calls = 0.0
        return LoadReport(fmean(done), seconds=tuple(done))

    def use(self) -> Mapping[str, InstanceUse]:
        return {
            row.name: InstanceUse(
                row.cpu_s * self._done,
                int(row.idle_bytes + row.busy_bytes * self._calls),
                int(row.network_bytes * self._done),
            )
            for row in self._instances.values()
        }

    def facts(self) -> Mapping[str, str]:
        """That it is none."""
        return {"service": "simulated: nothing was deployed, no call was made"}

    def problems(self) -> tuple[str, ...]:
        """None."""
        return ()

    def stop(self) -> None:
        """Nothing is left."""
