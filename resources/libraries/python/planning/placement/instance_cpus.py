"""On which CPUs the instances of a service run, and whether a machine can have them all."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.service.spec import DeploymentSpec, Flavor, Size
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.memory import MemoryLayout


@dataclass(frozen=True, slots=True)
class InstancePlacement:
    """CPUs of instances."""

    flavors: Mapping[str, Flavor]
    """By instance, `<component>-<number>`, in the order of the components."""
    cpus: Mapping[str, frozenset[int]]
    """By instance; empty when they are not pinned."""
    left: frozenset[int]
    """CPUs that no instance is pinned to."""
    short: str
    """Missing resources of an oversubscribed machine; otherwise empty."""


def usable_mb(memory: MemoryLayout | None) -> int | None:
    """Memory that instances can have: no huge pages, and on a machine that was asked what was free; None if unknown."""
    if memory is None:
        return None
    return sum(node.ordinary_mb if node.available_mb is None else node.available_mb for node in memory)


def place(
    spec: DeploymentSpec, size: Size, layout: CpuLayout, memory_mb: int | None, *, oversubscribe: bool
) -> InstancePlacement:
    """Give all instances of a size their share of a machine.

    `memory_mb`: The machine's memory; None where it is not known.

    Raises:
        PlanError: The machine is too small.
    """
    if spec.servers.count > 1:
        raise PlanError(f"servers.count: {spec.servers.count} hosts for the instances, this machine is one")
    flavors = {
        f"{component.name}-{number}": spec.flavors[size.components[component.name].flavor]
        for component in spec.components
        for number in range(1, size.components[component.name].instances + 1)
    }
    # One logical CPU of every core first: as long as there are enough, no two instances share a core.
    cores = [core for node in layout.numa_nodes for core in layout.cores(node)]
    cpus = [core[turn] for turn in range(max(map(len, cores))) for core in cores if turn < len(core)]
    _check(flavors, len(cpus), memory_mb)
    wanted = {
        name: ceil(flavor.vcpus) if spec.servers.core_pinning else flavor.vcpus for name, flavor in flavors.items()
    }
    total = sum(wanted.values())
    each = "CPUs of their own" if spec.servers.core_pinning else "CPUs"
    short = f"{len(flavors)} instances need {total:g} {each}, {len(cpus)} available" if total > len(cpus) + 1e-9 else ""
    if short and not oversubscribe:
        raise PlanError(short)
    if not spec.servers.core_pinning:
        return InstancePlacement(flavors, {}, frozenset(cpus), short)
    pinned: dict[str, frozenset[int]] = {}
    turn = 0
    for name, count in wanted.items():
        pinned[name] = frozenset(cpus[(turn + step) % len(cpus)] for step in range(int(count)))
        turn += int(count)
    return InstancePlacement(flavors, pinned, frozenset(cpus).difference(*pinned.values()), short)


def _check(flavors: Mapping[str, Flavor], cpus: int, memory_mb: int | None) -> None:
    """Reasons that oversubscription does not remove."""
    for name, flavor in flavors.items():
        if flavor.vcpus > cpus:
            raise PlanError(f"{name} needs {flavor.vcpus:g} CPUs, {cpus} available")
    needed = sum(flavor.memory_mb for flavor in flavors.values())
    if memory_mb is not None and needed > memory_mb:
        raise PlanError(f"{len(flavors)} instances need {needed} MB of memory, {memory_mb} MB available")
