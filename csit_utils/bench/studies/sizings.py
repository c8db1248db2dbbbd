"""Sizings of simulated services against the known truth: intervals, bottlenecks, limits beside the CPUs, scaling out.

Services are newly drawn for each study: components, CPU costs, flavors, drift, load step and repetitions. The
simulation counts the calls of each second; the true capacity is what it carries on average over many more repetitions
than a study has, found by bisection. What limits a size, and how much it carries, is known from the simulation, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

from scipy.stats import binomtest

from csit_utils.bench.studies.known_truth import BoundedQuantity
from resources.libraries.python.drivers.sim.sizing import SimOrchestrator, SimulatedService, VirtualTime
from resources.libraries.python.studies.sizing.model.spec import DeploymentSpec, Scaling, Size, Sizing
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.planning.sizes import next_size
from resources.libraries.python.studies.sizing.size_trials import run_sizing

MISSES = 0.05
"""Share of 95 % intervals without the true capacity, as it should be."""
MISSES_BOUND = 0.03
"""Promised bound: how far that share is from 5 %, where refused calls cost a fixed share of a call or nothing."""
CONTROL_BOUND = 0.25
"""Promised bound: the same share where load control lets the indicator fall at once."""
WRONG = 0.05
"""Promised bound: share of sizes or studies with a wrong verdict, of each kind."""

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


class _Asked(NamedTuple):
    kind: str
    seed: int


class Verdicts(NamedTuple):
    """Counts of a study."""

    kind: str
    outcomes: tuple[tuple[str, bool], ...]
    """What was judged, and whether it was right."""


def table(studies: int) -> list[BoundedQuantity]:
    """Return shares of wrong intervals and verdicts.

    Args:
        studies: Of each kind; five times as many of those whose intervals are judged.
    """
    asked = [
        _Asked(kind, seed)
        for kind in STUDIES
        for seed in range(studies * (_INTERVALS if STUDIES[kind] is _interval else 1))
    ]
    with ProcessPoolExecutor() as executor:
        found = list(executor.map(_study, asked, chunksize=4))
    return list(_lines(found))


def _study(asked: _Asked) -> Verdicts:
    rng = Random(f"{asked.kind}/{asked.seed}")  # noqa: S311 (reproducible, not secret)
    return Verdicts(asked.kind, tuple(STUDIES[asked.kind](asked.kind, rng)))


def _interval(kind: str, rng: Random) -> Iterator[tuple[str, bool]]:
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
    (sized,) = _sizing(spec, workload, truth).sizes
    for at in sized.capacities:
        what = kind if at.low is not None else NO_INTERVAL
        if at.low is None or at.high is None:
            yield what, False
        else:
            yield what, at.low <= _true_capacity(spec, workload, truth, at.threshold, capacity) <= at.high


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


def _cpu_limits(_kind: str, rng: Random) -> Iterator[tuple[str, bool]]:
    """Directed search over components that their CPUs limit."""
    names = _NAMES[: rng.choice((2, 3))]
    spec = _spec(names, (*_FLAVORS, 8)[: rng.choice((3, 4))])
    costs = {name: {"cpu_ms": rng.uniform(1, 4)} for name in names}
    truth: dict[str, Any] = {"components": costs, **_noise(rng), "full_falls": rng.uniform(0, 0.11)}
    truth["control"] = rng.choice((None, {}))
    simulated = SimulatedService.model_validate(truth)
    sizing = _sizing(spec, _workload(rng, _capacity(simulated, spec, spec.smallest())), truth)
    for sized in sizing.sizes:
        limits = _limits(simulated, spec, sized.size)
        yield "not near a limit", sized.near_limit is not False
        if sized.bottleneck is not None:
            yield "bottleneck", limits[sized.bottleneck] <= _CLOSE * min(limits.values())
    yield "stopped early", _reaches(simulated, spec, sizing)


def _beside_cpus(kind: str, rng: Random) -> Iterator[tuple[str, bool]]:
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
    sizing = _sizing(spec, _workload(rng, capacity), truth)
    said = any("no component is near its limit: a lock, a single thread" in step for step in sizing.steps)
    yield "recognized", sizing.stopped == "no gain" and said
    yield "bottleneck named", sizing.sizes[0].bottleneck is None
    yield "taken back", sizing.best == sizing.sizes[0].name


def _scaling_out(kind: str, rng: Random) -> Iterator[tuple[str, bool]]:
    """Directed search by more instances of one component."""
    sync = rng.uniform(1.0, 2.0) if kind == OUT_COSTS else rng.uniform(0, 0.25)
    spec = _spec(("edge",), _FLAVORS[:1], most=4, scaling=Scaling.OUT)
    truth = {"components": {"edge": {"cpu_ms": rng.uniform(0.5, 4), "sync": sync}}, **_noise(rng)}
    simulated = SimulatedService.model_validate(truth)
    sizing = _sizing(spec, _workload(rng, _capacity(simulated, spec, spec.smallest())), truth)
    if kind == OUT_COSTS:
        yield "stopped and taken back", (sizing.stopped, sizing.best) == ("no gain", sizing.sizes[0].name)
    else:
        yield "stopped early", _reaches(simulated, spec, sizing)
    for row in sizing.overheads:
        sizes = sizing.named()
        ratio = _capacity(simulated, spec, sizes[row.size].size) / _capacity(simulated, spec, sizes[row.base].size)
        yield "overhead", row.low <= 1 - ratio / row.vcpus_ratio <= row.high


DROP, WASTE, CONTROL, LASTING = "calls dropped", "refused calls cost", "load control", "drift lasts"
CPU, LOCK, THREAD, OUTSIDE = "CPU", "lock", "single thread", "outside"
OUT_COSTS, OUT_GAINS = "out-scaling costs", "out-scaling gains"
NO_INTERVAL = "no interval"
STUDIES: Mapping[str, Callable[[str, Random], Iterator[tuple[str, bool]]]] = {
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
    components = [{"name": name, "short": name[:2], "flavors": list(flavors), "most_instances": most} for name in names]
    return DeploymentSpec.model_validate(
        {"vnf_name": "benchmark", "components": components, "flavors": flavors, "install": "install.sh"}
        | {"mode": "directed", "scaling": scaling}
    )


def _workload(rng: Random, capacity: float, thresholds: Sequence[float] = ()) -> WorkloadSpec:
    """Loads from about half of a capacity on, 1 to 10 % of it apart (of several sizes 3 to 10 %), until two fail."""
    begin, step = rng.uniform(0.4, 0.6) * capacity, capacity * 10 ** rng.uniform(-2 if thresholds else -1.5, -1)
    return WorkloadSpec.model_validate(
        {
            "range": {"min": begin, "max": 20 * capacity},
            "increase": step,
            "repeat": rng.choice((2, 3, 5, 10) if len(thresholds) else (2, 3)),
            "stop": {"below": 0.8, "loads": 2},
            "generator": "load.sh",
            "duration_s": 3,
            "thresholds": thresholds,
        }
    )


def _sizing(spec: DeploymentSpec, workload: WorkloadSpec, truth: Mapping[str, Any]) -> Sizing:
    time = VirtualTime()
    orchestrator = SimOrchestrator(SimulatedService.model_validate(truth), spec, workload, time)
    return run_sizing(spec, workload, orchestrator, time=time)


def _limits(simulated: SimulatedService, spec: DeploymentSpec, size: Size) -> dict[str, float]:
    return {
        name: simulated.limit(name, share, spec.flavors[share.flavor], 1.0) for name, share in size.components.items()
    }


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


_QUANTITIES: Mapping[tuple[str, str], tuple[str, float]] = {
    (CPU, "bottleneck"): ("sizing: wrong bottleneck named, limited by CPUs", WRONG),
    (CPU, "not near a limit"): ("sizing: no component said near its limit, limited by CPUs", WRONG),
    (CPU, "stopped early"): ("sizing: stopped while more CPUs gain, limited by CPUs", WRONG),
    **{
        (kind, what): (f"sizing: {words}, limited by {of}", WRONG)
        for kind, of in ((LOCK, "a lock"), (THREAD, "a single thread"), (OUTSIDE, "a part outside"))
        for what, words in (
            ("recognized", "not recognized"),
            ("bottleneck named", "a component named as the bottleneck"),
            ("taken back", "vCPUs that gain nothing not taken back"),
        )
    },
    (OUT_COSTS, "stopped and taken back"): ("sizing: more instances that gain nothing not taken back", WRONG),
    (OUT_GAINS, "stopped early"): ("sizing: stopped while more instances gain", WRONG),
}


def _lines(found: Sequence[Verdicts]) -> Iterator[BoundedQuantity]:
    def outcomes(kinds: Sequence[str], what: str | None = None) -> list[bool]:
        rows = (row for each in found if each.kind in kinds for row in each.outcomes)
        return [right for each, right in rows if each == what or (what is None and each in kinds)]

    for kind, bound in ((DROP, MISSES_BOUND), (WASTE, MISSES_BOUND)):
        note, missed = _share(outcomes((kind,)))
        what = f"sizing: coverage of capacity intervals off 95 %, {kind}"
        yield BoundedQuantity(what, abs(missed - MISSES), bound, "of intervals", f"without the truth: {note}")
    for kind, bound in ((CONTROL, CONTROL_BOUND), (LASTING, 1.0)):
        note, missed = _share(outcomes((kind,)))
        yield BoundedQuantity(f"sizing: capacity outside its interval, {kind}", missed, bound, "of intervals", note)
    note, missed = _share(outcomes((OUT_COSTS, OUT_GAINS), "overhead"))
    what = "sizing: coverage of overhead intervals off 95 %"
    yield BoundedQuantity(what, abs(missed - MISSES), WRONG, "of intervals", f"without the truth: {note}")
    for (kind, judged), (what, bound) in _QUANTITIES.items():
        note, wrong = _share(outcomes((kind,), judged))
        yield BoundedQuantity(what, wrong, bound, "of sizes or studies", note)


def _share(outcomes: Sequence[bool]) -> tuple[str, float]:
    """The share that is wrong, with its Wilson interval in words."""
    wrong, count = outcomes.count(False), max(1, len(outcomes))
    interval = binomtest(wrong, count).proportion_ci(method="wilson")
    words = f"{wrong} of {count}, 95 % interval {100 * interval.low:.1f} to {100 * interval.high:.1f} %"
    return words, wrong / count
