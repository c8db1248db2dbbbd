"""A service of several components, its deployment sizes, and the result of a sizing.

The two specifications are JSON files as "NFV-VITAL: A Framework for Characterizing the Performance of Virtual Network
Functions" (Cao et al.) describes them: its field names, with units added where it has none.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, model_validator

from resources.libraries.python.model.base import Frozen, Inconsistency, Location, is_asked, is_empty, is_none, of_form
from resources.libraries.python.model.service.workload import Options, Positive, Program, WorkloadSpec
from resources.libraries.python.quantities import grouped

Name = Annotated[
    str,
    of_form(
        r"[a-z][a-z0-9_-]{0,23}", "a name of small letters, digits, _ and - (at most 24), which begins with a letter"
    ),
]


class Flavor(Frozen):
    """Resources of an instance."""

    vcpus: Positive
    """CPUs; parts of one are fine where instances are limited by quota."""
    memory_mb: Annotated[int, Field(ge=8)]


def vcpus_text(vcpus: float) -> str:
    """`1 vCPU`, `0.5 vCPUs`."""
    return f"{vcpus:g} vCPU{'s' * (vcpus != 1)}"


class SizingMode(StrEnum):
    """Selection of the sizes to measure."""

    CUSTOM = "custom"
    """Those of `sizes`."""
    EXHAUSTIVE = "exhaustive"
    """All that the resources allow."""
    DIRECTED = "directed"
    """From the smallest on, each time with more for the busiest component."""


class Scaling(StrEnum):
    """How a search scales a component."""

    UP = "up"
    """The next flavor."""
    OUT = "out"
    """One instance more; there is one flavor only."""
    HYBRID = "hybrid"
    """The next flavor, and where there is none, one instance more."""


class WatchedResource(StrEnum):
    """Resource whose utilization decides which component is busiest."""

    CPU = "cpu"
    MEMORY = "memory"
    NETWORK = "network"


class Component(Frozen):
    """A part of the service; each of its instances is a machine of its own."""

    name: Name
    short: Annotated[str, of_form(r"[a-z]{1,4}", "one to four small letters")]
    """In names of sizes: `bn` in `bn1s-sp1m-hs1s`."""
    flavors: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Smallest first."""
    instances: Annotated[int, Field(ge=1, le=100)] = 1
    """At first, and always with scaling up."""
    most_instances: Annotated[int, Field(ge=1, le=100)] = 1
    install: str | None = None
    """Script that brings an instance up, instead of that of the service; relative to the file."""

    @property
    def ceiling(self) -> int:
        """The most instances that it can have."""
        return max(self.instances, self.most_instances)


class Servers(Frozen):
    """The hosts of the instances."""

    count: Annotated[int, Field(ge=1, le=100)] = 1
    core_pinning: bool = False
    """Each instance on CPUs of its own."""


class Resources(Frozen):
    """Resources of all instances together."""

    vcpus: Positive | None = None
    memory_mb: Annotated[int, Field(ge=1)] | None = None


class Share(Frozen):
    """Flavor and instances of a component in a size."""

    flavor: Name
    instances: Annotated[int, Field(ge=1, le=100)] = 1


class Size(Frozen):
    """A deployment size: flavor and number of instances of every component."""

    components: dict[Name, Share]

    @property
    def text(self) -> str:
        """`bono 1 small, sprout 2 medium`."""
        return ", ".join(f"{name} {share.instances} {share.flavor}" for name, share in self.components.items())


def _scaling(components: Sequence[Component]) -> Scaling:
    """How components can grow: by instances where there may be more of them, by flavors where there are several."""
    if all(row.ceiling == row.instances for row in components):
        return Scaling.UP
    return Scaling.OUT if all(len(row.flavors) == 1 for row in components) else Scaling.HYBRID


class DeploymentSpec(Frozen):
    """The service, and which sizes of it."""

    vnf_name: Name
    components: Annotated[tuple[Component, ...], Field(min_length=1)]
    flavors: dict[Name, Flavor]
    servers: Servers = Servers()
    resources: Resources = Resources()
    install: str
    """Script that brings an instance up; relative to the file."""
    remove: str | None = None
    """Script that is run in every instance before it goes; all of its processes end in any case."""
    needs: tuple[Program, ...] = ()
    """Programs that these scripts start."""
    options: Options = Field(default_factory=dict, exclude_if=is_empty)
    """Choices that these scripts understand."""
    mode: SizingMode
    scaling: Scaling = Scaling.UP
    """Unless given, all that the components allow."""
    watch: WatchedResource = WatchedResource.CPU
    sizes: tuple[Size, ...] = ()
    fixed_vcpus: Annotated[float, Field(ge=0)] = 0.0
    """vCPUs of the resources that are taken by what is not sized."""

    def component(self, name: str) -> Component:
        """The component of that name.

        Raises:
            KeyError: There is none.
        """
        return next(row for row in self.components if row.name == name)

    def vcpus(self, size: Size) -> float:
        """Return the vCPUs of all instances of a size, without what is not sized."""
        total = sum(share.instances * self.flavors[share.flavor].vcpus for share in size.components.values())
        return round(total, 6)  # three times 0.1 is 0.3

    def memory_mb(self, size: Size) -> int:
        """Return the memory of all instances of a size."""
        return sum(share.instances * self.flavors[share.flavor].memory_mb for share in size.components.values())

    def smallest(self) -> Size:
        """The smallest flavor and the first number of instances everywhere."""
        return Size(
            components={row.name: Share(flavor=row.flavors[0], instances=row.instances) for row in self.components}
        )

    def lacking(self, size: Size) -> str | None:
        """Return why the resources do not suffice for a size, as in `needs 7 vCPUs, 6 available`; None if they do."""
        there = self.resources
        fixed = f" and {self.fixed_vcpus:g} for what is not sized" if self.fixed_vcpus else ""
        if there.vcpus is not None and round(self.vcpus(size) + self.fixed_vcpus, 6) > there.vcpus:
            return f"needs {vcpus_text(self.vcpus(size))}{fixed}, {there.vcpus:g} available"
        if there.memory_mb is not None and self.memory_mb(size) > there.memory_mb:
            return f"needs {self.memory_mb(size)} MB of memory, {there.memory_mb} available"
        return None

    def words(self, flavor: str) -> str:
        """A flavor with its numbers."""
        row = self.flavors[flavor]
        return f"'{flavor}' ({vcpus_text(row.vcpus)}, {row.memory_mb} MB)"

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        if "scaling" not in self.model_fields_set:
            object.__setattr__(self, "scaling", _scaling(self.components))  # still being made: frozen from here on
        _check_deployment(self)
        if is_asked(info):
            _check_most_instances(self)
        return self


def _check_deployment(spec: DeploymentSpec) -> None:
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


def _check_most_instances(spec: DeploymentSpec) -> None:
    """Refuse instances that no size would have."""
    for index, component in enumerate(spec.components):
        if spec.mode != "custom" and spec.scaling is Scaling.UP and component.ceiling > component.instances:
            place = ("components", index, "most_instances")
            message = f"{component.ceiling}, but scaling up adds no instances to the {component.instances} at first"
            raise Inconsistency(place, f"{message}; choose scaling out or hybrid, or leave scaling out")


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


class Use(Frozen):
    """Resource use of an instance under a load, means over time."""

    cpu: float | None
    """Share of its flavor's CPUs in use; 1.0 is all of them."""
    memory: float | None
    """Share of its flavor's memory in use; 1.0 is all of it."""
    network_bps: float | None
    """Sent and received, L2 bits."""


class Trace(Frozen):
    """Samples of each second of one repetition of a load."""

    indicators: tuple[float, ...] = ()
    """Indicators of each second, as the generator script reported them; empty where it reports the mean only."""
    ends_s: tuple[float, ...]
    """Ends of the intervals of `cpu`, since the load's beginning."""
    cpu: dict[str, tuple[float | None, ...]]
    """By instance, of its flavor's CPUs: 1.0 is all of them."""


class Offered(Frozen):
    """One load on one size."""

    load: float
    indicators: tuple[float, ...]
    """Values reported by the script, one per repetition."""
    mean: float
    stdev: float | None
    """Sample standard deviation; None for one repetition. It grows beyond the capacity where a service sheds load."""
    figures: dict[str, float] = Field(default_factory=dict)
    """More that the script said, such as the share of attacks that were detected; means over the repetitions."""
    use: dict[str, Use] = Field(default_factory=dict)
    """By instance, `<component>-<number>`; means over the repetitions."""
    trace: Trace | None = Field(default=None, exclude_if=is_none)
    """Trace of the first repetition; kept for three loads of a size: below its capacity, at it, and beyond."""

    @property
    def ratio(self) -> float:
        """Indicator over load."""
        return self.mean / self.load

    def by_component(self) -> dict[str, list[Use]]:
        """Resource use of the instances of each component."""
        found: dict[str, list[Use]] = {}
        for instance, use in self.use.items():
            found.setdefault(instance.rpartition("-")[0], []).append(use)
        return found


class Capacity(Frozen):
    """Capacity of a size at one threshold."""

    threshold: float
    """Share of the offered load that the indicator has to be."""
    carried: float | None
    """Highest offered load that was carried, as all loads below it; None where not even the lowest was."""
    estimate: float | None
    """Load at which the expected indicator is the threshold's share of it; None where it cannot be estimated."""
    low: float | None
    high: float | None
    """95 % confidence interval of the estimate."""

    @property
    def estimate_in_words(self) -> str:
        """The estimate with its interval, `612, 95 % interval 605 to 619`; empty without one."""
        known = [grouped(each, 4) for each in (self.estimate, self.low, self.high) if each is not None]
        return "{}, 95 % interval {} to {}".format(*known) if len(known) == 3 else ""


class MeasuredSize(Frozen):
    """One size, measured."""

    size: Size
    name: str
    """Key of journals, files and published figures, such as `bn1s-sp1m-hs1s`; texts have `Size.text`."""
    vcpus: float
    memory_mb: int
    offered: tuple[Offered, ...]
    capacity: float | None
    """Highest offered load that was carried; None where not even the lowest was."""
    at_top: bool = False
    """The highest load of the range was carried: the capacity is at least that."""
    capacities: tuple[Capacity, ...] = Field(default=(), exclude_if=is_empty)
    """At the threshold of the workload, then at its other ones."""
    bottleneck: str | None = None
    """The component with the busiest instance at the capacity; None where no component is near its limit."""
    near_limit: bool | None = Field(default=None, exclude_if=is_none)
    """Whether any instance is near the limit of its CPUs under any load; None where that is not known."""
    overload_from: float | None = None
    """Lowest load at which repetitions differ clearly more than at all loads below it: a sign of overload."""
    failed: str | None = None
    """Reason why its measurement failed; what was offered until then is kept."""
    deploy_s: float | None = None
    carried_over: bool = False
    """Measured by the run that this one resumed."""

    @property
    def text(self) -> str:
        """As `Size.text`."""
        return self.size.text


class Overhead(Frozen):
    """Capacity that scaling costs: one size compared with another that has more vCPUs of the same components."""

    scaling: Literal[Scaling.UP, Scaling.OUT]
    base: str
    """Name of the size with fewer vCPUs."""
    size: str
    components: tuple[str, ...]
    """Those that were scaled, all by the same factor."""
    vcpus_ratio: float
    """Their vCPUs, as a multiple of those in the base."""
    capacity_ratio: float
    """Capacity, as a multiple of that of the base."""
    overhead_ratio: float
    """Part of the added and earlier vCPUs that carries nothing: 0 where capacity grows as the vCPUs do."""
    low: float
    high: float
    """95 % confidence interval of the overhead."""


class Sizing(Frozen):
    """A search over deployment sizes."""

    deployment: DeploymentSpec
    workload: WorkloadSpec
    sizes: tuple[MeasuredSize, ...]
    """In the order in which they were measured."""
    steps: tuple[str, ...]
    """Reasons for each next size and for the end of the search."""
    best: str | None
    """Name of the size with the highest capacity, of those that cannot be told apart the one with the fewest vCPUs."""
    stopped: Literal["workload reached", "resources exhausted", "no larger size", "no gain", "all measured", "failed"]
    planned: int | None
    """Sizes that were planned before the search; None where it finds its way."""
    notes: tuple[str, ...] = ()
    """Sentences: components that do not scale, what scaling out costs, loads that do not fit the picture."""
    overheads: tuple[Overhead, ...] = Field(default=(), exclude_if=is_empty)
    """Of scaling up and out, for each size and the next smaller one it can be compared with."""

    @property
    def figure_names(self) -> tuple[str, ...]:
        """Other values reported by the generator script, in its order."""
        return tuple(dict.fromkeys(name for size in self.sizes for row in size.offered for name in row.figures))

    def named(self) -> Mapping[str, MeasuredSize]:
        """By name."""
        return {row.name: row for row in self.sizes}


def name_of(spec: DeploymentSpec, size: Size) -> str:
    """A size in short, such as `bn1s-sp1m-hs1s`: of each component its short name, instances and flavor."""
    codes = flavor_codes(list(spec.flavors))
    shares = ((row.short, size.components[row.name]) for row in spec.components)
    return "-".join(f"{short}{share.instances}{codes[share.flavor]}" for short, share in shares)


def flavor_codes(flavors: Sequence[str]) -> dict[str, str]:
    """The first letters of each flavor that no other begins with; all of them where another one goes on."""
    return {
        name: next(
            (
                name[:end]
                for end in range(1, len(name))
                if not any(other.startswith(name[:end]) for other in flavors if other != name)
            ),
            name,
        )
        for name in flavors
    }
