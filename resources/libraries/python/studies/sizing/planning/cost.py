"""Cost of a sizing: deployments, loads, repetitions, time."""

from dataclasses import dataclass
from itertools import pairwise

from resources.libraries.python.model.service.spec import DeploymentSpec, Scaling
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.studies.sizing.planning.sizes import planned

INSTANCE_DEPLOY_S = 2.0
"""Assumed for bringing up an instance and removing it. Install scripts differ: give your own where it matters."""
REPETITION_OVERHEAD_S = 1.0
"""Assumed for the generator script around the time in which it offers load."""


@dataclass(frozen=True, slots=True)
class SizingCost(StudyCost):
    """Cost of a sizing; its runs are those of the generator script."""

    sizes_at_most: bool
    """Directed search may need fewer."""
    loads: int
    """Per size."""
    loads_at_most: bool
    """The stop rule may end a size earlier."""
    repetitions: int
    """Per load."""
    instance_deploy_s: float
    """Assumed for deploying an instance and removing it."""

    @property
    def sizes(self) -> int:
        """Deployment sizes."""
        return self.steps

    @property
    def at_most(self) -> bool:
        """Whether runs and seconds are a bound."""
        return self.sizes_at_most or self.loads_at_most


def cost(spec: DeploymentSpec, load: WorkloadSpec, instance_deploy_s: float = INSTANCE_DEPLOY_S) -> SizingCost:
    """Count sizes, loads and seconds, exactly or at most.

    `instance_deploy_s`: seconds for bringing up an instance and removing it.

    Raises:
        PlanError: There are too many sizes.
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """
    known = planned(spec)
    loads = len(load.loads())
    if known is None:
        sizes = most_directed(spec)
        smallest = sum(row.instances for row in spec.components)
        # A step adds an instance at most, and none where only flavors grow.
        added = 0 if spec.scaling is Scaling.UP else sizes - 1
        instances = sum(smallest + min(step, added) for step in range(sizes))
    else:
        sizes = len(known)
        instances = sum(share.instances for size in known for share in size.components.values())
    runs = sizes * loads * load.repeat
    seconds = instances * instance_deploy_s + runs * (load.duration_s + REPETITION_OVERHEAD_S)
    return SizingCost(
        name=spec.vnf_name,
        steps=sizes,
        runs=runs,
        unit="runs of the generator",
        seconds=seconds,
        counted={
            "sizes": sizes,
            "sizes_at_most": known is None,
            "loads": loads,
            "loads_at_most": load.stop is not None,
            "repetitions": load.repeat,
            "runs": runs,
        },
        sizes_at_most=known is None,
        loads=loads,
        loads_at_most=load.stop is not None,
        repetitions=load.repeat,
        instance_deploy_s=instance_deploy_s,
    )


def most_directed(spec: DeploymentSpec) -> int:
    """An upper bound of the sizes that directed search visits: it takes the cheapest steps for as long as they fit."""
    steps = [step for row in spec.components for step in _steps(spec, row.name)]
    smallest = spec.smallest()
    left_vcpus, left_mb = spec.resources.vcpus, spec.resources.memory_mb
    bounds = [len(steps)]
    if left_vcpus is not None:
        bounds.append(_fitting([vcpus for vcpus, _ in steps], left_vcpus - spec.fixed_vcpus - spec.vcpus(smallest)))
    if left_mb is not None:
        bounds.append(_fitting([memory for _, memory in steps], left_mb - spec.memory_mb(smallest)))
    return 1 + min(bounds)


def _steps(spec: DeploymentSpec, component: str) -> list[tuple[float, float]]:
    """Cost of each step of a component, vCPUs and MB, up to its maximum."""
    row = spec.component(component)
    flavors = [spec.flavors[name] for name in row.flavors]
    steps: list[tuple[float, float]] = []
    if spec.scaling is not Scaling.OUT:
        steps += [
            (row.instances * (after.vcpus - before.vcpus), row.instances * (after.memory_mb - before.memory_mb))
            for before, after in pairwise(flavors)
        ]
    if spec.scaling is not Scaling.UP:
        steps += [(flavors[-1].vcpus, flavors[-1].memory_mb)] * (row.ceiling - row.instances)
    return steps


def _fitting(costs: list[float], left: float) -> int:
    """How many of the cheapest fit together."""
    count = 0
    for price in sorted(costs):
        left -= price
        if left < -1e-9:
            break
        count += 1
    return count
