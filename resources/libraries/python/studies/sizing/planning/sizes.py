"""Deployment sizes: their names, all that the resources allow, and the next one for a component that is too small."""

from collections.abc import Iterator
from itertools import islice

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.bounds import MAX_SIZES
from resources.libraries.python.model.service.spec import (
    Component,
    DeploymentSpec,
    Scaling,
    Share,
    Size,
    SizingMode,
)


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
