"""The search over deployment sizes, given functions that deploy a size and offer a load to it.

Custom, exhaustive and component-aware directed search after "NFV-VITAL: A Framework for Characterizing the Performance
of Virtual Network Functions" (Cao et al., section III-A).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Literal, Protocol

from resources.libraries.python.errors import (
    ConfigError,
    ConnectionFailed,
    CsitError,
    InUse,
    RunStopped,
    SystemBroken,
    Unsupported,
)
from resources.libraries.python.studies.sizing.model.spec import (
    DeploymentSpec,
    MeasuredSize,
    Offered,
    Size,
    Sizing,
    WatchedResource,
)
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.search.capacity import (
    OfferedLoad,
    at_capacity,
    busiest,
    capacity_of,
    carried_again,
    ends,
    is_top,
    offered_load,
    overload_from,
    utilization,
    with_few_traces,
)
from resources.libraries.python.studies.sizing.search.flavor_scaling import not_scaling

MOST_FAILURES = 3
"""So many sizes in a row that could not be measured: it is not the sizes."""
_NOT_OF_A_SIZE = (ConfigError, InUse, RunStopped, Unsupported)
"""Errors that the next size would meet as well."""
_BREAKS = (ConnectionFailed, SystemBroken)
"""Errors after which a size is measured once more: a node was lost, or a part of the service has died."""
Reached = Callable[[int, int], None]
Stopped = Literal["workload reached", "resources exhausted", "no larger size", "all measured", "failed"]


class Deployed(Protocol):
    """A size that is up."""

    deploy_s: float | None
    """Duration of that."""

    def offer(self, load: float) -> OfferedLoad:
        """Offer a load once.

        Raises:
            CsitError: It could not be offered, or the service has died.
        """


@dataclass(frozen=True, slots=True)
class SizeSpace:
    """The sizes there are: `planning.sizes` for one service."""

    planned: tuple[Size, ...] | None
    """All of them in their order; None for directed search."""
    name: Callable[[Size], str]
    grow: Callable[[Size, str], Size | None]
    """More for one component; None where it has the most already."""


class SizingSearch:
    """Measures sizes until an answer is found.

    Args:
        spec: The service.
        workload: What is offered.
        space: The sizes.
        deploy: Brings a size up and, in the end, away. An error in the end is the search's, not the size's.
        done: Sizes by name that were measured before; a size that failed then is measured again.
        keep: Takes every size that was measured now.
        report: Takes the events of the search in sentences.
        reached: Takes, before such a sentence, the number of sizes that are done and of loads of the present one.
    """

    def __init__(
        self,
        spec: DeploymentSpec,
        workload: WorkloadSpec,
        space: SizeSpace,
        deploy: Callable[[Size], AbstractContextManager[Deployed]],
        *,
        done: Mapping[str, MeasuredSize],
        keep: Callable[[MeasuredSize], None],
        report: Callable[[str], None],
        reached: Reached = lambda _sizes, _loads: None,
    ) -> None:
        self._spec = spec
        self._workload = workload
        self._space = space
        self._deploy = deploy
        self._done = done
        self._keep = keep
        self._report = report
        self._tell = reached
        self._sizes: list[MeasuredSize] = []
        self._steps: list[str] = []

    def run(self) -> Sizing:
        """Search to the end.

        Raises:
            CsitError: What was deployed cannot be removed, or the machine cannot be used at all.
        """
        planned = self._space.planned
        stopped = self._directed() if planned is None else self._all(planned)
        return Sizing(
            deployment=self._spec,
            workload=self._workload,
            sizes=tuple(self._sizes),
            steps=tuple(self._steps),
            best=best_of(self._sizes),
            stopped=stopped,
            planned=None if planned is None else len(planned),
            notes=notes(self._spec, self._workload, self._sizes),
        )

    def _all(self, planned: Sequence[Size]) -> Stopped:
        for number, size in enumerate(planned, 1):
            name = self._space.name(size)
            sized = self._measure(size)
            found = outcome(sized, self._workload.unit)
            self._steps.append(f"{name}, size {number} of {len(planned)}, {self._spec.vcpus(size):g} vCPUs: {found}.")
            last = self._sizes[-MOST_FAILURES:]
            if len(last) == MOST_FAILURES and all(row.failed for row in last):
                self._step(f"Ended: {MOST_FAILURES} sizes in a row could not be measured.")
                return "failed"
        if all(row.failed for row in self._sizes):
            self._step("Ended: no size could be measured.")
            return "failed"
        self._step("Ended: all sizes are measured.")
        return "all measured"

    def _directed(self) -> Stopped:
        size = self._spec.smallest()
        self._step(f"{self._space.name(size)} first: the smallest size, {self._spec.vcpus(size):g} vCPUs.")
        while True:
            sized = self._measure(size)
            if sized.failed:
                self._step(f"Ended: {sized.name} could not be measured, so the component that needs more is unknown.")
                return "failed"
            reached = self._reached(sized)
            if reached:
                self._step(f"Ended: {reached}.")
                return "workload reached"
            why, component = self._why(sized)
            if component is None:
                self._step(f"Ended: {why}.")
                return "failed"
            larger = self._space.grow(size, component)
            if larger is None:
                self._step(f"Ended: {why}; there is no larger size of {component}.")
                return "no larger size"
            lacking = self._spec.lacking(larger)
            if lacking:
                self._step(f"Ended: {why}; {self._space.name(larger)} {lacking}.")
                return "resources exhausted"
            self._step(f"{self._space.name(larger)} next: {why}; {self._spec.vcpus(larger):g} vCPUs.")
            size = larger

    def _reached(self, sized: MeasuredSize) -> str | None:
        """Reason why the search is complete; None while it has not."""
        workload, unit = self._workload.workload, self._workload.unit
        if sized.capacity is None:
            return None
        if workload is not None and sized.capacity >= workload:
            return f"{sized.name} carries {sized.capacity:g} {unit}, {workload:g} are required"
        if sized.at_top:
            return f"{sized.name} carries {sized.capacity:g} {unit}, the highest load of the range"
        return None

    def _why(self, sized: MeasuredSize) -> tuple[str, str | None]:
        """Capacity of a size in words, and the component that needs more; None where that is unknown."""
        unit = self._workload.unit
        point = at_capacity(sized.offered, sized.capacity)
        use = utilization(point, self._spec.watch) if point else {}
        carries = (
            f"{sized.name} carries {sized.capacity:g} {unit}"
            if sized.capacity is not None
            else f"{sized.name} does not carry {self._workload.range.min:g} {unit}"
        )
        if sized.bottleneck is None:
            return f"{carries}, but its {self._spec.watch.value} use is unknown", None
        shares = ", ".join(f"{name} {used(use[name], self._spec.watch)}" for name in sorted(use, key=lambda n: -use[n]))
        return f"{carries}, where {sized.bottleneck} is busiest ({self._spec.watch.value}: {shares})", sized.bottleneck

    def _measure(self, size: Size) -> MeasuredSize:
        name = self._space.name(size)
        before = self._done.get(name)
        if before is not None and not before.failed:
            sized = before.model_copy(update={"carried_over": True})
            self._tell(len(self._sizes) + 1, 0)
            self._report(f"{name} was measured before: {outcome(sized, self._workload.unit)}")
        else:
            sized = self._measured_with_retry(size, name)
            self._keep(sized)
            self._tell(len(self._sizes) + 1, 0)
            self._report(f"{name}: {outcome(sized, self._workload.unit)}")
        self._sizes.append(sized)
        return sized

    def _measured_with_retry(self, size: Size, name: str) -> MeasuredSize:
        """Measure a size; where that breaks the service or loses a node, once more."""
        try:
            return self._measured(size, name)
        except _BREAKS as error:
            self._report(f"{name}: {error}; trying again")
        return self._measured(size, name, last=True)

    def _measured(self, size: Size, name: str, *, last: bool = False) -> MeasuredSize:
        offered: list[Offered] = []
        deploy_s = failed = None
        with ExitStack() as held:
            try:
                deployed = held.enter_context(self._deploy(size))
                deploy_s = deployed.deploy_s
                for load in self._workload.loads():
                    row = offered_load(load, self._workload.repeat, deployed.offer)
                    offered.append(row)
                    self._tell(len(self._sizes), len(offered))
                    self._report(f"{name} at {load:g} {self._workload.unit}: {row.mean:g}, {100 * row.ratio:.1f} %")
                    if ends(self._workload.stop, offered):
                        break
            except _NOT_OF_A_SIZE:
                raise
            except CsitError as error:
                if isinstance(error, _BREAKS) and not last:
                    raise
                failed = str(error)
        capacity = None if failed else capacity_of(offered, self._workload.threshold)
        point = None if failed else at_capacity(offered, capacity)
        return MeasuredSize(
            size=size,
            name=name,
            vcpus=self._spec.vcpus(size),
            memory_mb=self._spec.memory_mb(size),
            offered=with_few_traces(offered, capacity),
            capacity=capacity,
            at_top=is_top(self._workload, capacity),
            bottleneck=busiest(utilization(point, self._spec.watch)) if point else None,
            overload_from=overload_from(offered),
            failed=failed,
            deploy_s=deploy_s,
        )

    def _step(self, sentence: str) -> None:
        self._steps.append(sentence)
        self._report(sentence)


def best_of(sizes: Sequence[MeasuredSize]) -> str | None:
    """Name of the size with the highest capacity, of several the one with the fewest vCPUs; None where none has one."""
    known = [(row.capacity, -row.vcpus, row.name) for row in sizes if row.capacity is not None]
    return max(known, key=lambda row: row[:2])[2] if known else None


def outcome(sized: MeasuredSize, unit: str) -> str:
    """Return the result of a size, without its name."""
    if sized.failed:
        return f"could not be measured: {sized.failed}"
    if sized.capacity is None:
        return "does not carry the lowest load"
    more = " or more" if sized.at_top else ""
    bottleneck = f", {sized.bottleneck} is busiest" if sized.bottleneck else ""
    return f"capacity {sized.capacity:g} {unit}{more}{bottleneck}"


def used(value: float, watch: WatchedResource) -> str:
    """Use of the watched resource by an instance."""
    return f"{value / 1e6:.1f} Mbit/s" if watch is WatchedResource.NETWORK else f"{100 * value:.0f} %"


def notes(spec: DeploymentSpec, workload: WorkloadSpec, sizes: Sequence[MeasuredSize]) -> tuple[str, ...]:
    """Return comparisons of the measured sizes, a sentence each."""
    whole = [row for row in sizes if not row.failed]
    return (
        *not_scaling(spec, workload, whole),
        *scale_out_costs(spec, workload, whole),
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
