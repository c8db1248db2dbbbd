"""The search over deployment sizes.

Custom, exhaustive and component-aware directed search after "NFV-VITAL: A Framework for Characterizing the Performance
of Virtual Network Functions" (Cao et al., section III-A).
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Literal

from resources.libraries.python.model.service.spec import (
    DeploymentSpec,
    MeasuredSize,
    Offered,
    Size,
    Sizing,
    WatchedResource,
    vcpus_text,
)
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.quantities import DASH, grouped
from resources.libraries.python.studies.sizing.search.capacity import (
    IDLE,
    NEAR_LIMIT,
    at_capacity,
    best_of,
    busiest,
    capacities_of,
    carried_again,
    gain,
    is_near_limit,
    most_used,
    not_scaling,
    overheads,
    overload_from,
    utilization,
    with_few_traces,
)
from resources.libraries.python.studies.sizing.search.capacity_estimate import lasting_drift

NOT_A_CPU = "a lock, a single thread or something outside the service"
"""Limits of a service in which no component is near the limit of its CPUs."""
_FEW = 3
"""Sizes that a sentence names."""
_ONE_THREAD = 0.9, 1.02
"""CPUs that a busy thread is seen to use."""


Stopped = Literal["workload reached", "resources exhausted", "no larger size", "no gain", "all measured", "failed"]


class SizingSearch:
    """Which size to measure next, and the answer.

    `planned`: all sizes in their order; None for directed search.
    `grow`: gives more to one component of a size; None where it has the most already.
    `report`: takes the events of the search in sentences.
    """

    def __init__(
        self,
        spec: DeploymentSpec,
        workload: WorkloadSpec,
        planned: tuple[Size, ...] | None,
        grow: Callable[[Size, str], Size | None],
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._spec = spec
        self._workload = workload
        self._planned, self._grow = planned, grow
        self._report = report
        self._sizes: list[MeasuredSize] = []
        self._steps: list[str] = []
        self._stopped: Stopped = "failed"

    def wanted(self) -> Iterator[Size]:
        """Yield one size after the other; `add` takes each when it was measured."""
        self._stopped = yield from self._directed() if self._planned is None else self._all(self._planned)

    def add(self, sized: MeasuredSize) -> None:
        """Take a size."""
        self._sizes.append(sized)

    def result(self) -> Sizing:
        """Answer by the sizes so far."""
        return Sizing(
            deployment=self._spec,
            workload=self._workload,
            sizes=tuple(self._sizes),
            steps=tuple(self._steps),
            best=best_of(self._sizes, self._workload.workload),
            stopped=self._stopped,
            planned=None if self._planned is None else len(self._planned),
            notes=notes(self._spec, self._workload, self._sizes),
            overheads=tuple(overheads(self._spec, [row for row in self._sizes if not row.failed])),
        )

    def _all(self, sizes: Sequence[Size]) -> Generator[Size, None, Stopped]:
        for number, size in enumerate(sizes, 1):
            yield size
            sized = self._sizes[-1]
            found = outcome(sized, self._workload.unit)
            self._steps.append(
                f"{sized.text}, size {number} of {len(sizes)}, {vcpus_text(self._spec.vcpus(size))}: {found}."
            )
        if all(row.failed for row in self._sizes):
            self._step("Ended: no size could be measured.")
            return "failed"
        self._step("Ended: all sizes are measured.")
        return "all measured"

    def _directed(self) -> Generator[Size, None, Stopped]:
        size = self._spec.smallest()
        self._step(f"First: {size.text}, the smallest size, {vcpus_text(self._spec.vcpus(size))}.")
        base: MeasuredSize | None = None
        tried: list[str] = []
        while True:
            yield size
            sized = self._sizes[-1]
            if sized.failed:
                self._step(f"Ended: {sized.text} could not be measured, so the component that needs more is unknown.")
                return self._back("failed", base, sized)
            more = gain(base, sized) if base else None
            if base is None or more is None or not more.is_nothing:
                base, tried = sized, []
            reached = self._reached(sized)
            if reached:
                self._step(f"Ended: {reached}.")
                return "workload reached"
            why, use = self._why(sized)
            if not use:
                self._step(f"Ended: it {why}.")
                return self._back("failed", base, sized)
            if more is not None and more.is_nothing:
                why = f"{why}; that gains nothing over {base.text} ({more})"
            costs = more is not None and more.high < 0
            component = None if costs else self._next(sized, use, tried)
            if component is None:
                self._step(f"Ended: it {why}{self._reason(sized)}.")
                return self._back("no gain", base, sized)
            larger = self._grow(size, component)
            if larger is None:
                self._step(f"Ended: it {why}; there is no larger size of {component}.")
                return self._back("no larger size", base, sized)
            lacking = self._spec.lacking(larger)
            if lacking:
                self._step(f"Ended: it {why}; {larger.text} {lacking}.")
                return self._back("resources exhausted", base, sized)
            self._step(f"It {why}. Next: {larger.text}, {vcpus_text(self._spec.vcpus(larger))}.")
            size = larger
            tried.append(component)

    def _next(self, sized: MeasuredSize, use: Mapping[str, float], tried: Sequence[str]) -> str | None:
        """The component to scale; None where more for none of them can be expected to help.

        After a step that gained something it is the busiest one: the next step shows whether that is the limit. After a
        step that gained nothing it is the busiest of those which may have become the limit by it.
        """
        if not tried:
            return busiest(use)
        if sized.near_limit is None:
            return busiest({name: value for name, value in use.items() if name not in tried})
        most = most_used(sized.offered)
        return busiest({name: most[name] for name in most if most[name] >= NEAR_LIMIT and name not in tried})

    def _reason(self, sized: MeasuredSize) -> str:
        """What limits a size over which more for its components gains nothing."""
        if sized.near_limit is not False:
            return ""
        threads = "".join(f"; {each}" for each in one_thread(self._spec, sized))
        return f", and no component is near its limit: {NOT_A_CPU} is the limit{threads}"

    def _back(self, stopped: Stopped, base: MeasuredSize | None, last: MeasuredSize) -> Stopped:
        """Take back what has gained nothing since `base`."""
        if base is None or base is last:
            return stopped
        if last.near_limit is False and max(most_used(base.offered).values(), default=1.0) < IDLE:
            # What was busiest had room left, and more of it was no help: it was not the bottleneck.
            at = self._sizes.index(base)
            self._sizes[at] = base.model_copy(update={"bottleneck": None, "near_limit": False})
        if not last.failed:
            added = vcpus_text(round(last.vcpus - base.vcpus, 6))
            self._step(f"Taken back to {base.text}: {last.text} has {added} more and carries no more.")
        return stopped

    def _reached(self, sized: MeasuredSize) -> str | None:
        """Reason why the search is complete; None while it has not."""
        workload, unit = self._workload.workload, self._workload.unit
        if sized.capacity is None:
            return None
        if workload is not None and sized.capacity >= workload:
            return f"{sized.text} carries {grouped(sized.capacity)} {unit}, {grouped(workload)} are required"
        if sized.at_top:
            return f"{sized.text} carries {grouped(sized.capacity)} {unit}, the highest load of the range"
        return None

    def _why(self, sized: MeasuredSize) -> tuple[str, Mapping[str, float]]:
        """Capacity of the size that the step before names, and the use of its components; empty where unknown."""
        point = at_capacity(sized.offered, sized.capacity)
        use = utilization(point, self._spec.watch) if point else {}
        carries = (
            f"carries {carried(sized, self._workload.unit)}"
            if sized.capacity is not None
            else f"does not carry {grouped(self._workload.range.min)} {self._workload.unit}"
        )
        if not use:
            return f"{carries}, but its {self._spec.watch.value} use is unknown", use
        shares = ", ".join(f"{name} {used(use[name], self._spec.watch)}" for name in sorted(use, key=lambda n: -use[n]))
        limit = f"{sized.bottleneck} is busiest" if sized.bottleneck else "no component is near its limit"
        return f"{carries}, where {limit} ({self._spec.watch.value}: {shares})", use

    def _step(self, sentence: str) -> None:
        self._steps.append(sentence)
        self._report(sentence)


def measured_size(
    spec: DeploymentSpec,
    workload: WorkloadSpec,
    size: tuple[Size, str],
    offered: Sequence[Offered],
    deploy_s: float | None,
    *,
    failed: str | None = None,
) -> MeasuredSize:
    """Return a size, given with its name, by the loads on it; with the reason of its failure it has no capacity."""
    judged = {} if failed else _judged(spec, workload, offered)
    return MeasuredSize(
        size=size[0],
        name=size[1],
        vcpus=spec.vcpus(size[0]),
        memory_mb=spec.memory_mb(size[0]),
        offered=with_few_traces(offered, judged.get("capacity")),
        overload_from=overload_from(offered),
        failed=failed,
        deploy_s=deploy_s,
        **{"capacity": None, **judged},
    )


def carried_over(spec: DeploymentSpec, workload: WorkloadSpec, sized: MeasuredSize) -> MeasuredSize:
    """Return a size that was measured before the run was resumed, judged anew."""
    return sized.model_copy(update={**_judged(spec, workload, sized.offered), "carried_over": True})


def _judged(spec: DeploymentSpec, workload: WorkloadSpec, offered: Sequence[Offered]) -> dict[str, Any]:
    capacities = capacities_of(offered, workload.all_thresholds)
    capacity = capacities[0].carried
    top = capacity == workload.loads()[-1]
    near = None if top else is_near_limit(spec, offered)
    point = at_capacity(offered, capacity)
    return {
        "capacity": capacity,
        "capacities": capacities,
        "at_top": top,
        "near_limit": near,
        "bottleneck": busiest(utilization(point, spec.watch)) if point and near is not False else None,
    }


def outcome(sized: MeasuredSize, unit: str) -> str:
    """Return the result of a size, without its name."""
    if sized.failed:
        return f"could not be measured: {sized.failed}"
    if sized.capacity is None:
        return "does not carry the lowest load"
    more = " or more" if sized.at_top else ""
    bottleneck = f", {sized.bottleneck} is busiest" if sized.bottleneck else ""
    if sized.near_limit is False:
        bottleneck = ", no component is near its limit"
    return f"capacity {carried(sized, unit)}{more}{bottleneck}"


def carried(sized: MeasuredSize, unit: str) -> str:
    """Highest load that a size carries, and the estimate of its capacity between the loads."""
    at = sized.capacities[0] if sized.capacities else None
    highest = f"{DASH if sized.capacity is None else grouped(sized.capacity)} {unit}"
    return highest if at is None or at.estimate is None else f"{highest} (estimate {at.estimate_in_words})"


def used(value: float, watch: WatchedResource) -> str:
    """Use of the watched resource by an instance."""
    return f"{value / 1e6:.1f} Mbit/s" if watch is WatchedResource.NETWORK else f"{100 * value:.0f} %"


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
        *_drifting(workload, whole),
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
        more = gain(base, size)
        if more is not None and more.low <= 0 <= more.high:
            verdict = f"more instances make no certain difference ({more})"
        elif cost >= 0:
            verdict = f"more instances cost {'at least ' if base.at_top else ''}{100 * cost:.0f} %"
        else:
            verdict = f"they bring {-100 * cost:.0f} %"
        yield (
            f"{size.text} carries {grouped(size.capacity)} {workload.unit}, {base.text} with the same vCPUs "
            f"{grouped(base.capacity)}: {verdict}."
        )


def _losses(spec: DeploymentSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
    """Sizes that surely carry less than one from which they differ by more for one component only."""
    for size in sizes:
        for base in sizes:
            more = gain(base, size)
            if more is not None and more.high < 0 and len(grown := _grown(spec, base, size)) == 1:
                yield f"{size.text} carries less than {base.text} ({more}): more for {grown[0]} costs capacity."


def _grown(spec: DeploymentSpec, base: MeasuredSize, size: MeasuredSize) -> list[str]:
    """Components that have more CPUs, if no other component differs."""
    differing = [name for name, share in size.size.components.items() if share != base.size.components[name]]
    return differing if all(_cpus(spec, size, name) > _cpus(spec, base, name) for name in differing) else []


def _not_near_limit(spec: DeploymentSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
    found = [row for row in sizes if row.near_limit is False and row.capacity is not None]
    if found:
        names = "; ".join(row.text for row in found[:_FEW])
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
        yield f"No measured size carries {grouped(wanted)} {workload.unit}."
    else:
        carries = f"{least.text} carries {grouped(wanted)} {workload.unit}"
        yield f"{carries} with the fewest vCPUs of all measured, {least.vcpus:g}."


def _carried_again(workload: WorkloadSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
    for size in sizes:
        again = carried_again(size.offered, workload.threshold)
        if again:
            loads = ", ".join(map(grouped, again))
            yield f"{size.text} carries {loads} {workload.unit} above one that it does not carry; these do not count."


def _drifting(workload: WorkloadSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
    found = [(row.text, lasting_drift(row.offered, workload.threshold)) for row in sizes]
    drifting = {name: correlation for name, correlation in found if correlation is not None}
    if drifting:
        names = "; ".join(f"{name} ({correlation:.2f})" for name, correlation in drifting.items())
        yield (
            f"The repetitions drift together in {names}: correlation of one with the next. The service or its host "
            "changes more slowly than it is measured, so that the true capacity may be outside the interval."
        )
