"""Comparisons of sizes: a component that does not scale, what scaling out costs, the smallest that will do."""

from collections.abc import Iterator, Sequence

from resources.libraries.python.studies.sizing.model.spec import DeploymentSpec, Sized
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.search.capacity import carried_again
from resources.libraries.python.studies.sizing.search.flavor_scaling import not_scaling


def notes(spec: DeploymentSpec, workload: WorkloadSpec, sizes: Sequence[Sized]) -> tuple[str, ...]:
    """Everything worth saying, a sentence each."""
    whole = [row for row in sizes if not row.failed]
    return (
        *not_scaling(spec, workload, whole),
        *scale_out_costs(spec, workload, whole),
        *_enough(workload, whole),
        *_carried_again(workload, whole),
    )


def _cpus(spec: DeploymentSpec, sized: Sized, component: str) -> float:
    share = sized.size.components[component]
    return share.instances * spec.flavors[share.flavor].vcpus


def _instances(sized: Sized) -> int:
    return sum(share.instances for share in sized.size.components.values())


def scale_out_costs(spec: DeploymentSpec, workload: WorkloadSpec, sizes: Sequence[Sized]) -> Iterator[str]:
    """Cost of several small instances compared with fewer large ones with the same vCPUs per component."""
    for size in sizes:
        alike = [
            row
            for row in sizes
            if _instances(row) < _instances(size)
            and all(_cpus(spec, row, part.name) == _cpus(spec, size, part.name) for part in spec.components)
        ]
        base = min(alike, key=_instances, default=None)
        if base is None or not base.capacity or size.capacity is None or size.at_top:
            continue
        cost = 1 - size.capacity / base.capacity
        least = "at least " if base.at_top else ""
        verdict = f"more instances cost {least}{100 * cost:.0f} %" if cost >= 0 else f"they bring {-100 * cost:.0f} %"
        yield (
            f"{size.name} carries {size.capacity:g} {workload.unit}, {base.name} with the same vCPUs "
            f"{base.capacity:g}: {verdict}."
        )


def _enough(workload: WorkloadSpec, sizes: Sequence[Sized]) -> Iterator[str]:
    """The size that carries the workload with the fewest vCPUs."""
    wanted = workload.workload
    if wanted is None:
        return
    fitting = [row for row in sizes if row.capacity is not None and row.capacity >= wanted]
    least = min(fitting, key=lambda row: row.vcpus, default=None)
    if least is None:
        yield f"No measured size carries {wanted:g} {workload.unit}."
    else:
        yield f"{least.name} carries {wanted:g} {workload.unit} with the fewest vCPUs of all measured, {least.vcpus:g}."


def _carried_again(workload: WorkloadSpec, sizes: Sequence[Sized]) -> Iterator[str]:
    for size in sizes:
        again = carried_again(size.offered, workload.threshold)
        if again:
            loads = ", ".join(f"{load:g}" for load in again)
            yield f"{size.name} carries {loads} {workload.unit} above one that it does not carry; these do not count."
