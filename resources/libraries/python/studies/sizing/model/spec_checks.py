"""Consistency checks of a sizing specification. Each check names the place in the file, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from resources.libraries.python.model.base import Inconsistency, Location
from resources.libraries.python.model.bounds import MOST_SIZING_LOADS

if TYPE_CHECKING:
    from resources.libraries.python.studies.sizing.model.spec import Component, DeploymentSpec, Size
    from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec


def check_deployment(spec: DeploymentSpec) -> None:
    """Refuse what no search could work with.

    Raises:
        Inconsistency: With the place below the specification.
    """
    for attribute in ("name", "short"):
        _refuse_twice([getattr(row, attribute) for row in spec.components], attribute)
    for index, component in enumerate(spec.components):
        _check_component(spec, component, ("components", index))
    _check_scaling(spec)
    _check_sizes(spec)
    _check_smallest(spec)


def _refuse_twice(values: Sequence[str], attribute: str) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise Inconsistency(("components", index, attribute), f"'{value}' is components.{values.index(value)}, too")


def _check_component(spec: DeploymentSpec, component: Component, place: Location) -> None:
    for index, name in enumerate(component.flavors):
        here = (*place, "flavors", index)
        _known_flavor(spec, name, here)
        flavor = spec.flavors[name]
        if index and not _above(spec, component.flavors[index - 1], name):
            before = spec.words(component.flavors[index - 1])
            raise Inconsistency(here, f"{spec.words(name)} comes after {before}; smallest first")
        for what, needed, there in (
            ("vCPUs", round(flavor.vcpus + spec.fixed_vcpus, 6), spec.resources.vcpus),
            ("MB", flavor.memory_mb, spec.resources.memory_mb),
        ):
            if there is not None and needed > there:
                fixed = f" and {spec.fixed_vcpus:g} for what is not sized" if spec.fixed_vcpus else ""
                raise Inconsistency(here, f"{spec.words(name)}{fixed} does not fit into the total of {there:g} {what}")
    if "most_instances" in component.model_fields_set and component.most_instances < component.instances:
        raise Inconsistency(
            (*place, "most_instances"), f"{component.most_instances} is less than the initial {component.instances}"
        )


def _known_flavor(spec: DeploymentSpec, name: str, place: Location) -> None:
    if name not in spec.flavors:
        raise Inconsistency(place, f"no flavor '{name}'; choose from {', '.join(spec.flavors) or 'none'}")


def _above(spec: DeploymentSpec, low: str, high: str) -> bool:
    a, b = spec.flavors[low], spec.flavors[high]
    return a != b and a.vcpus <= b.vcpus and a.memory_mb <= b.memory_mb


def _check_scaling(spec: DeploymentSpec) -> None:
    if spec.mode == "custom" or spec.scaling != "out":
        return
    for index, component in enumerate(spec.components):
        if len(component.flavors) > 1:
            place = ("components", index, "flavors")
            raise Inconsistency(place, f"{len(component.flavors)} flavors; with scaling out a component has one")
    if all(row.ceiling == row.instances for row in spec.components):
        raise Inconsistency(("scaling",), "out, but no component has more most_instances than instances")


def _check_sizes(spec: DeploymentSpec) -> None:
    if (spec.mode == "custom") != bool(spec.sizes):
        given = f"{len(spec.sizes)} sizes are given" if spec.sizes else "no sizes are given"
        raise Inconsistency(("sizes",), f"{given}; mode custom measures those of the file, other modes make their own")
    for index, size in enumerate(spec.sizes):
        place = ("sizes", index)
        for at, message in _faults(spec, size):
            raise Inconsistency((*place, *at), message)
        if size in spec.sizes[:index]:
            raise Inconsistency(place, f"is the same as sizes.{spec.sizes.index(size)}")


def _faults(spec: DeploymentSpec, size: Size) -> Iterator[tuple[Location, str]]:
    names = [row.name for row in spec.components]
    for name, share in size.components.items():
        if name not in names:
            yield ("components", name), f"no component '{name}'; choose from {', '.join(names)}"
        elif share.flavor not in (flavors := spec.component(name).flavors):
            place = ("components", name, "flavor")
            yield place, f"'{share.flavor}' is not a flavor of {name}; choose from {', '.join(flavors)}"
    missing = [name for name in names if name not in size.components]
    if missing:
        yield ("components",), f"has no value for {', '.join(missing)}"
    elif lacking := spec.lacking(size):
        yield (), lacking


def _check_smallest(spec: DeploymentSpec) -> None:
    if spec.mode != "custom" and (lacking := spec.lacking(spec.smallest())):
        raise Inconsistency(("resources",), f"the smallest size {lacking}")


def check_load_count(spec: WorkloadSpec) -> None:
    """Refuse more loads than a sizing may offer.

    Raises:
        Inconsistency: With the place below the specification.
    """
    count = (spec.range.max - spec.range.min) / spec.increase
    if count >= MOST_SIZING_LOADS:
        raise Inconsistency(("increase",), f"{spec.increase:g} makes {count:.0f} loads; at most {MOST_SIZING_LOADS}")


def check_workload(spec: WorkloadSpec) -> None:
    """Refuse loads and limits that cannot answer anything.

    Raises:
        Inconsistency: With the place below the specification.
    """
    span = spec.range.max - spec.range.min
    if spec.increase > span > 0:
        raise Inconsistency(
            ("increase",), f"{spec.increase:g} is more than the range's {span:g}: one load would be offered"
        )
    top = spec.highest_load
    if spec.workload is not None and spec.workload > top:
        raise Inconsistency(
            ("workload",), f"{spec.workload:g} {spec.unit} is above the highest load, {top:g}: no size could show it"
        )
    if spec.stop is not None and spec.stop.below > spec.threshold:
        raise Inconsistency(
            ("stop", "below"),
            f"{spec.stop.below:g} is above the threshold {spec.threshold:g}: sizes would stop while carrying the load",
        )
