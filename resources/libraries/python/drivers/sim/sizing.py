"""Services of several components on the simulated testbed: capacity and CPU time by size. No script is run.

A component needs CPU time for each call. It begins to refuse calls at a share of its CPUs, where waiting gets too long;
that share falls with the number of CPUs of an instance, so that twice the CPUs carry less than twice the load. More
instances of a component have to keep each other informed, and their load is not spread evenly. What limits a service
need not be a CPU: calls wait for a lock of their instance, or for something outside the service.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import log2, sqrt
from pathlib import Path, PurePath
from random import Random
from statistics import fmean
from typing import Annotated

from pydantic import Field

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.errors import ConfigError, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.load import load_json
from resources.libraries.python.model.service.spec import DeploymentSpec, Flavor, Share, Size, name_of
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport, SizedService

_STEP_S = 1.0
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Part = Annotated[float, Field(ge=0, lt=1)]


class SimComponent(Frozen):
    """The truth about a component. A call is one unit of the workload."""

    cpu_ms: Positive
    """CPU time of a call on an instance with one CPU."""
    cpu_growth: Part = 0.0
    """Extra cost of a call with each doubling of an instance's CPUs, relative."""
    threads: Positive | None = None
    """CPUs that an instance can use at most; None for all that it has."""
    lock_ms: Annotated[float, Field(ge=0)] = 0.0
    """Time of a call in which it holds the lock of its instance; calls that wait for it use no CPU."""
    sync: Annotated[float, Field(ge=0)] = 0.0
    """Of n instances each does 1 / (1 + sync (n - 1)) of what it would do alone."""
    imbalance: Part = 0.0
    """How much less the other instances have to do than the first one."""
    memory_mb: Annotated[float, Field(ge=0)] = 100.0
    """Memory of an idle instance."""
    memory_kb: Annotated[float, Field(ge=0)] = 0.0
    """More for each call per second."""
    network_bytes: Annotated[float, Field(ge=0)] = 0.0
    """Sent and received for a call."""


class LoadControl(Frozen):
    """A token bucket: additive increase, multiplicative decrease. The tokens of a second are the calls it admits."""

    decrease: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """Share of the admitted rate that is left when calls have waited too long."""
    again: Part = 0.4
    """Chance that calls still wait too long after a decrease, so that another one follows."""
    increase: Part = 0.003
    """Increase of what the service carries, added in each second in which they have not."""

    def next(self, admitted: float, limit: float, *, late: bool, rng: Random) -> float:
        """Calls that the next second admits."""
        if not late:
            return admitted + self.increase * limit
        admitted = limit * self.decrease
        while rng.random() < self.again:
            admitted *= self.decrease
        return admitted


class SimulatedService(Frozen):
    """All of a simulated service."""

    seed: int = 1
    components: dict[str, SimComponent]
    full: Annotated[float, Field(gt=0, le=1)] = 0.97
    """CPU share of an instance with one CPU beyond which calls wait too long."""
    full_falls: Part = 0.11
    """By so much less with each doubling of its CPUs."""
    control: LoadControl | None = None
    """None for a service that just drops what it cannot carry."""
    work: dict[str, Positive] = Field(default_factory=dict)
    """Name of a generator script to the cost of its calls; 1 for others."""
    deploy_s: Annotated[float, Field(ge=0)] = 20.0
    """Per instance, virtual time."""
    noise: Part = 0.005
    """Standard deviation of what is carried, from second to second, relative."""
    drift: Part = 0.01
    """The same from repetition to repetition."""
    drift_lasts: Part = 0.0
    """Correlation of that between one repetition and the next; 0 for independent ones."""
    outside: Positive | None = None
    """Calls per second that a part outside the service carries, such as a link or a database; None for all."""
    waste: Part = 0.0
    """Cost of a call that is refused, of the cost of one that is carried: overload costs capacity."""

    def limit(self, name: str, share: Share, flavor: Flavor, work: float) -> float:
        """Calls per second that all instances of a component carry, by their CPUs or their locks."""
        part = self.components[name]
        by_cpu = self._by_cpu(part, flavor, work)
        alone = min(by_cpu, 1000 / (part.lock_ms * work)) if part.lock_ms else by_cpu
        return self._together(part, share, alone)

    def busy(self, name: str, share: Share, flavor: Flavor, work: float, calls: float) -> tuple[float, ...]:
        """CPUs that each instance uses at so many calls per second."""
        part = self.components[name]
        first = calls / self._together(part, share, self._by_cpu(part, flavor, work))
        first *= self._full_share(part, flavor) * self._usable(part, flavor)
        return (first, *[first * (1 - part.imbalance)] * (share.instances - 1))

    def capacity(self, spec: DeploymentSpec, size: Size, work: float) -> float:
        """Calls per second that a size carries: those of its weakest component, or of what is outside."""
        shares = size.components.items()
        weakest = min(self.limit(name, share, spec.flavors[share.flavor], work) for name, share in shares)
        return weakest if self.outside is None else min(weakest, self.outside)

    def _by_cpu(self, part: SimComponent, flavor: Flavor, work: float) -> float:
        cpu_s = part.cpu_ms / 1000 * (1 + part.cpu_growth * self._doublings(part, flavor))
        return self._full_share(part, flavor) * self._usable(part, flavor) / (cpu_s * work)

    def _together(self, part: SimComponent, share: Share, alone: float) -> float:
        return alone * share.instances / (1 + part.sync * (share.instances - 1))

    def _usable(self, part: SimComponent, flavor: Flavor) -> float:
        return flavor.vcpus if part.threads is None else min(flavor.vcpus, part.threads)

    def _full_share(self, part: SimComponent, flavor: Flavor) -> float:
        return max(0.1, self.full - self.full_falls * self._doublings(part, flavor))

    def _doublings(self, part: SimComponent, flavor: Flavor) -> float:
        return max(0.0, log2(self._usable(part, flavor)))


def load_simulated_service(folder: Path, spec: DeploymentSpec) -> SimulatedService:
    """Read the parameters of a simulated service, which lie beside its specification.

    Raises:
        Unsupported: There are none.
        ConfigError: The file does not fit, or it is of a service with other components.
    """
    path = folder / SIMULATION_FILE
    if not path.is_file():
        raise Unsupported(f"{spec.vnf_name} cannot be simulated: there is no {path}")
    simulated = load_json(path, SimulatedService)
    missing = [row.name for row in spec.components if row.name not in simulated.components]
    if missing:
        raise ConfigError(f"{path}: components: missing {', '.join(missing)} of {spec.vnf_name}")
    return simulated


class VirtualTime:
    """Fulfils `IntervalClock` with a virtual clock."""

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
    """Cost of calls on an instance."""

    name: str
    cpu_s: float
    """CPU time of a call of the whole service."""
    network_bytes: float
    """As cpu_s."""
    idle_bytes: float
    """Memory."""
    busy_bytes: float
    """Memory, more for each call per second."""


@dataclass(frozen=True, slots=True)
class SimOrchestrator:
    """Fulfils `roles.service.Orchestrator`.

    `time`: the clock, shared with the probes.
    """

    simulated: SimulatedService
    spec: DeploymentSpec
    workload: WorkloadSpec
    time: VirtualTime

    def service(self, size: Size) -> "SimService":
        return SimService(self.simulated, self.spec, self.workload, self.time, size)


class SimService(SizedService):
    """A simulated service. Each size has its own random numbers, independent of the order of sizes."""

    def __init__(
        self, simulated: SimulatedService, spec: DeploymentSpec, workload: WorkloadSpec, time: VirtualTime, size: Size
    ) -> None:
        self._simulated = simulated
        self._spec = spec
        self._duration_s = workload.duration_s
        self._work = simulated.work.get(PurePath(workload.generator).name, 1.0)
        self._time = time
        self._size = size
        self._rng = Random(f"{simulated.seed} {name_of(spec, size)}")  # noqa: S311 - a simulation
        self._limit = simulated.capacity(spec, size, self._work)
        self._instances = {row.name: row for name in size.components for row in self._parts(name)}
        self._drift: float | None = None
        self._done = 0.0
        self._worked = 0.0
        self._calls = 0.0

    def _parts(self, name: str) -> Iterator["_Instance"]:
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
        self._time.advance(self._simulated.deploy_s * len(self._instances))

    def offer(self, load: float) -> LoadReport:
        """Calls per second that succeeded: the mean over the duration, and those of each second."""
        control, rng, waste = self._simulated.control, self._rng, self._simulated.waste
        limit = self._limit * (1.0 + self._next_drift())
        # In overload the bucket is as the time before has left it.
        low = 1.0 if control is None else control.decrease
        admitted = load if load <= limit else min(load, limit * rng.uniform(low, 1.0))
        done: list[float] = []
        left_s = self._duration_s
        while left_s > 1e-9:
            carried = limit * rng.gauss(1.0, self._simulated.noise)
            wanted = load if control is None else min(load, admitted)
            refused = max(0.0, wanted - carried) / (1 - waste)
            self._calls = max(0.0, min(wanted, carried - waste * refused))
            if control is not None:
                admitted = control.next(admitted, limit, late=wanted > carried, rng=rng)
            done.append(self._calls)
            step_s = min(_STEP_S, left_s)
            self._done += self._calls * step_s
            self._worked += (carried if refused else self._calls) * step_s
            self._time.advance(step_s)
            left_s -= step_s
        self._calls = 0.0
        return LoadReport(fmean(done), seconds=tuple(done))

    def _next_drift(self) -> float:
        """An autoregressive process of the first order, which begins in its stationary state."""
        lasts, deviation = self._simulated.drift_lasts, self._simulated.drift
        if self._drift is None:
            self._drift = self._rng.gauss(0.0, deviation)
        else:
            self._drift = lasts * self._drift + self._rng.gauss(0.0, deviation * sqrt(1 - lasts**2))
        return self._drift

    def use(self) -> Mapping[str, InstanceUse]:
        return {
            row.name: InstanceUse(
                row.cpu_s * self._worked,
                int(row.idle_bytes + row.busy_bytes * self._calls),
                int(row.network_bytes * self._done),
            )
            for row in self._instances.values()
        }

    def facts(self) -> Mapping[str, str]:
        return {"service": "simulated: nothing was deployed, no call was made"}

    def problems(self) -> tuple[str, ...]:
        return ()

    def stop(self) -> None:
        """Nothing is left."""


SIMULATION_FILE = "simulation.json"
"""Beside the deployment specification."""
