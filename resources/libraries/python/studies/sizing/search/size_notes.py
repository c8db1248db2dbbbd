"""Observations on the measured sizes of a service, a sentence each."""

from collections.abc import Iterator, Sequence

from resources.libraries.python.model.service.spec import DeploymentSpec, MeasuredSize
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.search.capacity import carried_again, most_used
from resources.libraries.python.studies.sizing.search.flavor_scaling import not_scaling
from resources.libraries.python.studies.sizing.search.size_gains import gain

NOT_A_CPU = "a lock, a single thread or something outside the service"
"""Limits of a service in which no component is near the limit of its CPUs."""
_FEW = 3
"""Sizes that a sentence names."""
_ONE_THREAD = 0.9, 1.02
"""CPUs that a busy thread is seen to use."""


def notes(spec: DeploymentSpec, workload: WorkloadSpec, sizes: Sequence[MeasuredSize]) -> tuple[str, ...]:
    """Return comparisons of the measured sizes, a sentence each."""
    whole = [row for row in sizes if not row.failed]
    return (
        *not_scaling(spec, workload, whole),
        *scale_out_costs(spec, workload, whole),
        *_losses(spec, whole),
        *_not_near_limit(spec, whole),
        *_enough(workload, whole),
        *_carried_again(workload, whole),
    )


def _cpus(spec: DeploymentSpec, sized: MeasuredSize, component: str) -> float:
    share = sized.size.components[component]
    return share.instances * spec.flavors[share.flavor].vcpus


def _instances(sized: MeasuredSize) -> int:
    return sum(share.instances for share in sized.size.components.values())


def scale_out_costs(spec: DeploymentSpec, workload: WorkloadSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
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


def _losses(spec: DeploymentSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
    """Sizes that surely carry less than one from which they differ by more for one component only."""
    for size in sizes:
        for base in sizes:
            more = gain(base, size)
            if more is not None and more.high < 0 and len(grown := _grown(spec, base, size)) == 1:
                yield f"{size.name} carries less than {base.name} ({more}): more for {grown[0]} costs capacity."


def _grown(spec: DeploymentSpec, base: MeasuredSize, size: MeasuredSize) -> list[str]:
    """Components that have more CPUs, if no other component differs."""
    differing = [name for name, share in size.size.components.items() if share != base.size.components[name]]
    return differing if all(_cpus(spec, size, name) > _cpus(spec, base, name) for name in differing) else []


def _not_near_limit(spec: DeploymentSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
    found = [row for row in sizes if row.near_limit is False and row.capacity is not None]
    if found:
        names = ", ".join(row.name for row in found[:_FEW])
        others = f" and {len(found) - _FEW} more" if len(found) > _FEW else ""
        most = max(max(most_used(row.offered).values()) for row in found)
        threads = "".join(
            f"; {each}" for each in dict.fromkeys(each for row in found for each in one_thread(spec, row))
        )
        yield (
            f"No component is near its limit in {names}{others}, where no instance uses more than {100 * most:.0f} % "
            f"of its CPUs: {NOT_A_CPU} may limit them{threads}."
        )


def one_thread(spec: DeploymentSpec, sized: MeasuredSize) -> Iterator[str]:
    """Components of which an instance uses one of its CPUs, as a program with one thread does under any overload."""
    for name, share in most_used(sized.offered).items():
        vcpus = spec.flavors[sized.size.components[name].flavor].vcpus
        if vcpus > 1 and _ONE_THREAD[0] <= share * vcpus <= _ONE_THREAD[1]:
            yield f"{name} uses {share * vcpus:.2f} of {vcpus:g} vCPUs, as one thread does"


def _enough(workload: WorkloadSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
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


def _carried_again(workload: WorkloadSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
    for size in sizes:
        again = carried_again(size.offered, workload.threshold)
        if again:
            loads = ", ".join(f"{load:g}" for load in again)
            yield f"{size.name} carries {loads} {workload.unit} above one that it does not carry; these do not count."
