"""Deployment sizes: names, all that the resources allow, the next larger one, and what measuring them costs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.bounds import MAX_SIZES
from resources.libraries.python.model.service.spec import Component, DeploymentSpec, Scaling, Share, Size, SizingMode
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.planning.cost import StudyCost


def instance_names(spec: DeploymentSpec, size: Size) -> tuple[str, ...]:
    """Names of all instances, `<component>-<number>`: components as in the specification, numbers from 1."""
    return tuple(
        f"{row.name}-{number}"
        for row in spec.components
        for number in range(1, size.components[row.name].instances + 1)
    )


def next_size(spec: DeploymentSpec, size: Size, component: str) -> Size | None:
    """More for one component, as the specification scales; None where it has the most already.

    The size may need more than the resources: see `DeploymentSpec.lacking`.
    """
    row, share = spec.component(component), size.components[component]
    larger = row.flavors.index(share.flavor) + 1
    if spec.scaling is not Scaling.OUT and larger < len(row.flavors):
        grown = share.model_copy(update={"flavor": row.flavors[larger]})
    elif spec.scaling is not Scaling.UP and share.instances < row.ceiling:
        grown = share.model_copy(update={"instances": share.instances + 1})
    else:
        return None
    return Size(components={**size.components, component: grown})


def planned(spec: DeploymentSpec) -> tuple[Size, ...] | None:
    """The sizes that are known before anything is measured; None for directed search, which finds its way.

    Raises:
        PlanError: There are more than `model.bounds` allows.
    """
    match spec.mode:
        case SizingMode.CUSTOM:
            return spec.sizes
        case SizingMode.EXHAUSTIVE:
            return exhaustive(spec)
        case SizingMode.DIRECTED:
            return None


def exhaustive(spec: DeploymentSpec) -> tuple[Size, ...]:
    """All combinations within the resources, fewest vCPUs first, then least memory, then in order of the specification.

    Scaling up varies flavors with the first number of instances, out varies instances, hybrid both.

    Raises:
        PlanError: They are more than 10,000.
    """
    found = possible(spec)
    if found is None:
        raise PlanError(
            f"more than {MAX_SIZES} sizes of {spec.vnf_name} fit into the resources; reduce the resources, or use "
            "directed search"
        )
    return found


def possible(spec: DeploymentSpec) -> tuple[Size, ...] | None:
    """The sizes of `exhaustive`; None where they are more than 10,000."""
    found = list(islice(_combinations(spec, 0, spec.smallest()), MAX_SIZES + 1))
    if len(found) > MAX_SIZES:
        return None
    return tuple(sorted(found, key=lambda size: (spec.vcpus(size), spec.memory_mb(size))))


def _combinations(spec: DeploymentSpec, index: int, size: Size) -> Iterator[Size]:
    """Sizes that differ from this one from the component at `index` on; what lacks resources leads no further."""
    if spec.lacking(size):
        return
    if index == len(spec.components):
        yield size
        return
    component = spec.components[index]
    for share in _shares(spec, component):
        yield from _combinations(spec, index + 1, Size(components={**size.components, component.name: share}))


def _shares(spec: DeploymentSpec, component: Component) -> Iterator[Share]:
    most = component.instances if spec.scaling is Scaling.UP else component.ceiling
    for flavor in component.flavors:
        for instances in range(component.instances, most + 1):
            yield Share(flavor=flavor, instances=instances)


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
