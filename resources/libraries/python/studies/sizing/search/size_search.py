"""The search over deployment sizes, given functions that deploy a size and offer a load to it.

Custom, exhaustive and component-aware directed search after "NFV-VITAL: A Framework for Characterizing the Performance
of Virtual Network Functions" (Cao et al., section III-A).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Literal, Protocol

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
    NEAR_LIMIT,
    OfferedLoad,
    at_capacity,
    busiest,
    capacities_of,
    ends,
    is_near_limit,
    is_top,
    most_used,
    offered_load,
    overload_from,
    utilization,
    with_few_traces,
)
from resources.libraries.python.studies.sizing.search.flavor_scaling import IDLE
from resources.libraries.python.studies.sizing.search.size_gains import best_of, gain, overheads
from resources.libraries.python.studies.sizing.search.size_notes import NOT_A_CPU, notes, one_thread

MOST_FAILURES = 3
"""So many sizes in a row that could not be measured: it is not the sizes."""
_NOT_OF_A_SIZE = (ConfigError, InUse, RunStopped, Unsupported)
"""Errors that the next size would meet as well."""
_BREAKS = (ConnectionFailed, SystemBroken)
"""Errors after which a size is measured once more: a node was lost, or a part of the service has died."""
Reached = Callable[[int, int], None]
Stopped = Literal["workload reached", "resources exhausted", "no larger size", "no gain", "all measured", "failed"]


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
            best=best_of(self._sizes, self._workload.workload),
            stopped=stopped,
            planned=None if planned is None else len(planned),
            notes=notes(self._spec, self._workload, self._sizes),
            overheads=tuple(overheads(self._spec, [row for row in self._sizes if not row.failed])),
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
        base: MeasuredSize | None = None
        tried: list[str] = []
        while True:
            sized = self._measure(size)
            if sized.failed:
                self._step(f"Ended: {sized.name} could not be measured, so the component that needs more is unknown.")
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
                self._step(f"Ended: {why}.")
                return self._back("failed", base, sized)
            if more is not None and more.is_nothing:
                why = f"{why}; that gains nothing over {base.name} ({more})"
            costs = more is not None and more.high < 0
            component = None if costs else self._next(sized, use, tried)
            if component is None:
                self._step(f"Ended: {why}{self._reason(sized)}.")
                return self._back("no gain", base, sized)
            larger = self._space.grow(size, component)
            if larger is None:
                self._step(f"Ended: {why}; there is no larger size of {component}.")
                return self._back("no larger size", base, sized)
            lacking = self._spec.lacking(larger)
            if lacking:
                self._step(f"Ended: {why}; {self._space.name(larger)} {lacking}.")
                return self._back("resources exhausted", base, sized)
            self._step(f"{self._space.name(larger)} next: {why}; {self._spec.vcpus(larger):g} vCPUs.")
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
            added = round(last.vcpus - base.vcpus, 6)
            self._step(f"Taken back to {base.name}: {last.name} has {added:g} vCPUs more and carries no more.")
        return stopped

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

    def _why(self, sized: MeasuredSize) -> tuple[str, Mapping[str, float]]:
        """Capacity of a size in words, and the use of its components; empty where that is unknown."""
        point = at_capacity(sized.offered, sized.capacity)
        use = utilization(point, self._spec.watch) if point else {}
        carries = (
            f"{sized.name} carries {carried(sized, self._workload.unit)}"
            if sized.capacity is not None
            else f"{sized.name} does not carry {self._workload.range.min:g} {self._workload.unit}"
        )
        if not use:
            return f"{carries}, but its {self._spec.watch.value} use is unknown", use
        shares = ", ".join(f"{name} {used(use[name], self._spec.watch)}" for name in sorted(use, key=lambda n: -use[n]))
        limit = f"{sized.bottleneck} is busiest" if sized.bottleneck else "no component is near its limit"
        return f"{carries}, where {limit} ({self._spec.watch.value}: {shares})", use

    def _measure(self, size: Size) -> MeasuredSize:
        name = self._space.name(size)
        before = self._done.get(name)
        if before is not None and not before.failed:
            sized = before.model_copy(update={**self._judged(before.offered), "carried_over": True})
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
        judged = {} if failed else self._judged(offered)
        return MeasuredSize(
            size=size,
            name=name,
            vcpus=self._spec.vcpus(size),
            memory_mb=self._spec.memory_mb(size),
            offered=with_few_traces(offered, judged.get("capacity")),
            overload_from=overload_from(offered),
            failed=failed,
            deploy_s=deploy_s,
            **{"capacity": None, **judged},
        )

    def _judged(self, offered: Sequence[Offered]) -> dict[str, Any]:
        """What follows from the loads on a size."""
        capacities = capacities_of(offered, self._workload.all_thresholds)
        capacity = capacities[0].carried
        top = is_top(self._workload, capacity)
        near = None if top else is_near_limit(self._spec, offered)
        point = at_capacity(offered, capacity)
        return {
            "capacity": capacity,
            "capacities": capacities,
            "at_top": top,
            "near_limit": near,
            "bottleneck": busiest(utilization(point, self._spec.watch)) if point and near is not False else None,
        }

    def _step(self, sentence: str) -> None:
        self._steps.append(sentence)
        self._report(sentence)


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
    if at is None or at.estimate is None:
        return f"{sized.capacity:g} {unit}"
    return f"{sized.capacity:g} {unit} (estimate {at.estimate:.4g}, {at.interval})"


def used(value: float, watch: WatchedResource) -> str:
    """Use of the watched resource by an instance."""
    return f"{value / 1e6:.1f} Mbit/s" if watch is WatchedResource.NETWORK else f"{100 * value:.0f} %"
