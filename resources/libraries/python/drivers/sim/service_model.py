"""A simulated service of several components: how much each size of it carries, and what that costs its CPUs.

A component needs CPU time for each call. It begins to refuse calls at a share of its CPUs, where waiting gets too long;
that share falls with the number of CPUs of an instance, so that twice the CPUs carry less than twice the load. More
instances of a component have to keep each other informed, and their load is not spread evenly.
"""

from math import log2
from pathlib import Path, PurePath
from random import Random
from typing import Annotated

from pydantic import Field

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.load import load_json
from resources.libraries.python.studies.sizing.model.spec import DeploymentSpec, Flavor, Share, Size
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Part = Annotated[float, Field(ge=0, lt=1)]


class SimComponent(Frozen):
    """The truth about a component. A call is one unit of the workload."""

    cpu_ms: Positive
    """CPU time of a call on an instance with one CPU."""
    cpu_growth: Part = 0.0
    """What a call costs more with each doubling of an instance's CPUs, relative."""
    threads: Positive | None = None
    """CPUs that an instance can use at most; None for all that it has."""
    sync: Annotated[float, Field(ge=0)] = 0.0
    """Of n instances each does 1 / (1 + sync (n - 1)) of what it would do alone."""
    imbalance: Part = 0.0
    """How much less the other instances have to do than the first one."""
    memory_mb: Annotated[float, Field(ge=0)] = 100.0
    """Of an idle instance."""
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
    """Of what the service carries, added in each second in which they have not."""

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

    def limit(self, name: str, share: Share, flavor: Flavor, work: float) -> float:
        """Calls per second that all instances of a component carry."""
        part = self.components[name]
        alone = self._full_share(part, flavor) * self._usable(part, flavor) / (self._cpu_s(part, flavor) * work)
        return alone * share.instances / (1 + part.sync * (share.instances - 1))

    def busy(self, name: str, share: Share, flavor: Flavor, work: float, calls: float) -> tuple[float, ...]:
        """CPUs that each instance uses at so many calls per second."""
        part = self.components[name]
        first = calls / self.limit(name, share, flavor, work)
        first *= self._full_share(part, flavor) * self._usable(part, flavor)
        return (first, *[first * (1 - part.imbalance)] * (share.instances - 1))

    def capacity(self, spec: DeploymentSpec, size: Size, work: float) -> float:
        """Calls per second that a size carries: those of its weakest component."""
        shares = size.components.items()
        return min(self.limit(name, share, spec.flavors[share.flavor], work) for name, share in shares)

    def work_of(self, workload: WorkloadSpec) -> float:
        """What a call of a workload costs."""
        return self.work.get(PurePath(workload.generator).name, 1.0)

    def _usable(self, part: SimComponent, flavor: Flavor) -> float:
        return flavor.vcpus if part.threads is None else min(flavor.vcpus, part.threads)

    def _full_share(self, part: SimComponent, flavor: Flavor) -> float:
        return max(0.1, self.full - self.full_falls * self._doublings(part, flavor))

    def _cpu_s(self, part: SimComponent, flavor: Flavor) -> float:
        return part.cpu_ms / 1000 * (1 + part.cpu_growth * self._doublings(part, flavor))

    def _doublings(self, part: SimComponent, flavor: Flavor) -> float:
        return max(0.0, log2(self._usable(part, flavor)))


def load_simulated_service(path: Path, spec: DeploymentSpec) -> SimulatedService:
    """Read the parameters of a simulated service.

    Raises:
        ConfigError: The file does not fit, or it is of a service with other components.
    """
    simulated = load_json(path, SimulatedService)
    missing = [row.name for row in spec.components if row.name not in simulated.components]
    if missing:
        raise ConfigError(f"{path}: components: nothing of {', '.join(missing)}, which {spec.vnf_name} has")
    return simulated
