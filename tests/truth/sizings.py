"""Sizings of simulated services against the known truth: intervals, bottlenecks, limits beside the CPUs, scaling out.

Services are newly drawn for each study: components, CPU costs, flavors, drift, load step and repetitions. The
simulation counts the calls of each second; the true capacity is what it carries on average over many more repetitions
than a study has, found by bisection. What limits a size, and how much it carries, is known from the simulation, too.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any

from resources.libraries.python.drivers.sim.sizing import SimOrchestrator, SimulatedService, VirtualTime
from resources.libraries.python.model.service.spec import DeploymentSpec, Scaling, Size, Sizing
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.planning import next_size
from resources.libraries.python.studies.sizing.search.capacity_estimate import lasting_drift
from tests.truth.known_truth import BoundedQuantity, each_of, print_table, share
from tests.unit.studies.sizing.sizing_runs import run_simulated, service
from tests.unit.studies.sizing.sizing_runs import workload as workload_of

DROP, WASTE, CONTROL, LASTING = "calls dropped", "refused calls cost", "load control", "drift lasts"
CPU, LOCK, THREAD, OUTSIDE = "CPUs", "a lock", "a single thread", "a part outside"
OUT_COSTS, OUT_GAINS = "out-scaling costs", "out-scaling gains"
_OUTSIDE, _OVERHEAD = "capacity outside its interval", "overhead of scaling out outside its interval"
_UNSAID, _NO_DRIFT = f"{_OUTSIDE} without a remark, {LASTING}", "repetitions said to drift together that do not"
_BOUNDS = {f"{_OUTSIDE}, {kind}": most for kind, most in ((DROP, 7), (WASTE, 7), (CONTROL, 7), (LASTING, 10))} | {
    _UNSAID: 7,
    _OVERHEAD: 10,
}
_WRONG = 5
"""Promised bounds in percent of intervals, and of sizes or studies."""
_INTERVALS = 5
"""Times as many studies as of other kinds: a share of 5 % is to be known well."""
_TRUE_REPETITIONS, _FEW_REPETITIONS = 2000, 200
_BISECTIONS = 5
"""To about 1 % of the capacity; a straight line leads on from there."""
_CLOSE = 1.05
"""Limits of a size within this factor are both right."""
_REACHED = 0.93
"""Share of the capacity that a search with knowledge of the truth reaches: a step that gains less may be left."""
_FLAVORS = (1, 2, 4)
_NAMES = ("edge", "core", "store")


Outcomes = Iterator[tuple[str, bool]]
"""What was judged, and whether it was wrong."""


def table(studies: int) -> list[BoundedQuantity]:
    """Return wrong intervals and verdicts of so many studies of each kind, five times as many of intervals."""
    asked = [
        (kind, seed)
        for kind, judge in STUDIES.items()
        for seed in range(studies * (_INTERVALS if judge is _interval else 1))
    ]
    found = defaultdict[str, list[bool]](list)
    for outcomes in each_of(_study, asked):
        for what, wrong in outcomes:
            found[what].append(wrong)
    return [share(what, wrong, _BOUNDS.get(what, _WRONG), "outcomes") for what, wrong in found.items()]


def _study(asked: tuple[str, int]) -> list[tuple[str, bool]]:
    kind, seed = asked
    rng = Random(f"{kind}/{seed}")
    return list(STUDIES[kind](kind, rng))


def _interval(kind: str, rng: Random) -> Outcomes:
    """One size, and its capacity at two thresholds."""
    capacity = rng.uniform(200, 3000)
    truth: dict[str, Any] = {"components": {"edge": {"cpu_ms": 970 / capacity}}, **_noise(rng)}
    if kind == WASTE:
        truth["waste"] = rng.uniform(0.1, 0.5)
    if kind == CONTROL:
        truth["control"] = {}
    if kind == LASTING:
        truth["drift_lasts"] = 0.7
    spec, workload = _spec(("edge",), _FLAVORS[:1]), _workload(rng, capacity, thresholds=(0.8,))
    (sized,) = run_simulated(spec, workload, truth).sizes
    drifts = lasting_drift(sized.offered, workload.threshold) is not None
    if kind != LASTING:
        yield _NO_DRIFT, drifts
    for at in sized.capacities:
        if at.low is not None and at.high is not None:
            holds = at.low <= _true_capacity(spec, workload, truth, at.threshold, capacity) <= at.high
            yield f"{_OUTSIDE}, {kind}", not holds
            if kind == LASTING:
                yield _UNSAID, not holds and not drifts


def _noise(rng: Random) -> dict[str, Any]:
    return {"seed": rng.randrange(10**9), "drift": 0.005 * 10 ** rng.random(), "noise": 0.005}


def _true_capacity(
    spec: DeploymentSpec, workload: WorkloadSpec, truth: Mapping[str, Any], threshold: float, around: float
) -> float:
    """Load of which the simulation carries the threshold's share on average."""
    simulated = SimulatedService.model_validate({**truth, "seed": -1, "drift_lasts": 0.0})
    service = SimOrchestrator(simulated, spec, workload, VirtualTime()).service(spec.smallest())
    low, high = 0.8 * around, 1.05 * around / threshold
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        carried = _carried(service.offer, middle, _FEW_REPETITIONS) >= threshold
        low, high = (middle, high) if carried else (low, middle)
    shares = [_carried(service.offer, load, _TRUE_REPETITIONS) for load in (low, high)]
    return low + (high - low) * (shares[0] - threshold) / (shares[0] - shares[1])


def _carried(offer: Callable[[float], Any], load: float, repetitions: int) -> float:
    return fmean(offer(load).indicator for _ in range(repetitions)) / load


def _cpu_limits(kind: str, rng: Random) -> Outcomes:
    """Directed search over components that their CPUs limit."""
    names = _NAMES[: rng.choice((2, 3))]
    spec = _spec(names, (*_FLAVORS, 8)[: rng.choice((3, 4))])
    costs = {name: {"cpu_ms": rng.uniform(1, 4)} for name in names}
    truth: dict[str, Any] = {"components": costs, **_noise(rng), "full_falls": rng.uniform(0, 0.11)}
    truth["control"] = rng.choice((None, {}))
    simulated = SimulatedService.model_validate(truth)
    sizing = run_simulated(spec, _workload(rng, _capacity(simulated, spec, spec.smallest())), truth)
    for sized in sizing.sizes:
        limits = _limits(simulated, spec, sized.size)
        yield f"limited by {kind}: no component said to be near its limit", sized.near_limit is False
        if sized.bottleneck is not None:
            wrong = limits[sized.bottleneck] > _CLOSE * min(limits.values())
            yield f"limited by {kind}: wrong bottleneck named", wrong
    yield f"limited by {kind}: ended while more CPUs gain", not _reaches(simulated, spec, sizing)


def _beside_cpus(kind: str, rng: Random) -> Outcomes:
    """Directed search over a service that a lock, a single thread or a part outside limits, other CPUs 30 to 73 %."""
    names = _NAMES[: rng.choice((2, 3))]
    flavors = _FLAVORS[1:] if kind == THREAD else _FLAVORS
    spec = _spec(names, flavors)
    capacity = rng.uniform(200, 1500)
    parts: dict[str, dict[str, float]] = {
        name: {"cpu_ms": 1000 * flavors[0] * rng.uniform(0.3, 0.73) / capacity} for name in names
    }
    limiting = rng.choice(names)
    truth: dict[str, Any] = {"components": parts, **_noise(rng)}
    if kind == LOCK:
        parts[limiting]["lock_ms"] = 1000 / capacity
    elif kind == THREAD:
        parts[limiting] |= {"threads": 1, "cpu_ms": 970 / capacity}
    else:
        truth["outside"] = capacity
    sizing = run_simulated(spec, _workload(rng, capacity), truth)
    said = any("no component is near its limit: a lock, a single thread" in step for step in sizing.steps)
    yield f"limited by {kind}: not recognized", not (sizing.stopped == "no gain" and said)
    yield f"limited by {kind}: a component named as the bottleneck", sizing.sizes[0].bottleneck is not None
    yield f"limited by {kind}: vCPUs that gain nothing not taken back", sizing.best != sizing.sizes[0].name


def _scaling_out(kind: str, rng: Random) -> Outcomes:
    """Directed search by more instances of one component."""
    sync = rng.uniform(1.0, 2.0) if kind == OUT_COSTS else rng.uniform(0, 0.25)
    spec = _spec(("edge",), _FLAVORS[:1], most=4, scaling=Scaling.OUT)
    truth = {"components": {"edge": {"cpu_ms": rng.uniform(0.5, 4), "sync": sync}}, **_noise(rng)}
    simulated = SimulatedService.model_validate(truth)
    sizing = run_simulated(spec, _workload(rng, _capacity(simulated, spec, spec.smallest())), truth)
    if kind == OUT_COSTS:
        ended = (sizing.stopped, sizing.best) == ("no gain", sizing.sizes[0].name)
        yield "more instances gain nothing: not ended and taken back", not ended
    else:
        yield "more instances gain: ended early", not _reaches(simulated, spec, sizing)
    for row in sizing.overheads:
        sizes = sizing.named()
        ratio = _capacity(simulated, spec, sizes[row.size].size) / _capacity(simulated, spec, sizes[row.base].size)
        yield _OVERHEAD, not row.low <= 1 - ratio / row.vcpus_ratio <= row.high


STUDIES: Mapping[str, Callable[[str, Random], Outcomes]] = {
    **dict.fromkeys((DROP, WASTE, CONTROL, LASTING), _interval),
    CPU: _cpu_limits,
    **dict.fromkeys((LOCK, THREAD, OUTSIDE), _beside_cpus),
    **dict.fromkeys((OUT_COSTS, OUT_GAINS), _scaling_out),
}
"""By kind."""


def _spec(
    names: Sequence[str], vcpus: Sequence[int], *, most: int = 1, scaling: Scaling = Scaling.UP
) -> DeploymentSpec:
    flavors = {f"f{count}": {"vcpus": count, "memory_mb": 1024 * count} for count in vcpus}
    shorts, row = [name[:2] for name in names], {"scaling": scaling, "resources": {}}
    return service(names, shorts, flavors=list(flavors), flavors_there=flavors, most=most, **row)


def _workload(rng: Random, capacity: float, thresholds: Sequence[float] = ()) -> WorkloadSpec:
    """Loads from about half of a capacity on, 1 to 10 % of it apart (of several sizes 3 to 10 %), until two fail."""
    begin, step = rng.uniform(0.4, 0.6) * capacity, capacity * 10 ** rng.uniform(-2 if thresholds else -1.5, -1)
    repeat = rng.choice((2, 3, 5, 10) if len(thresholds) else (2, 3))
    row = {"repeat": repeat, "stop": {"below": 0.8, "loads": 2}, "duration_s": 3, "thresholds": thresholds}
    return workload_of(begin, 20 * capacity, step, **row)


def _limits(simulated: SimulatedService, spec: DeploymentSpec, size: Size) -> dict[str, float]:
    return {name: simulated.limit(name, part, spec.flavors[part.flavor], 1.0) for name, part in size.components.items()}


def _capacity(simulated: SimulatedService, spec: DeploymentSpec, size: Size) -> float:
    return simulated.capacity(spec, size, 1.0)


def _reaches(simulated: SimulatedService, spec: DeploymentSpec, sizing: Sizing) -> bool:
    """Whether the best size carries as much as the last one of a search that knows what limits each size."""
    size: Size | None = spec.smallest()
    most = 0.0
    while size is not None:
        most = max(most, _capacity(simulated, spec, size))
        limits = _limits(simulated, spec, size)
        size = next_size(spec, size, min(limits, key=lambda name: limits[name]))
    return _capacity(simulated, spec, sizing.named()[sizing.best or ""].size) >= _REACHED * most


if __name__ == "__main__":
    print_table(table)
