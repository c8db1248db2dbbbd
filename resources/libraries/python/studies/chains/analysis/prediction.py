"""Chains that are worse than their VNFs alone predict: the first of the questions that a study answers.

Prediction for a chain under a workload, from its VNFs alone under the same one:

    throughput  that of the slowest VNF, or what the busiest CPU leaves: an owner of a CPU needs as much of it as alone,
                the vSwitch (n + 1) / 2 times as much for n inline VNFs
    loss        1 - (1 - l1) (1 - l2) ..., l being the loss of a VNF alone; of one part, its loss alone
    latency     the sum of all VNFs, less the path between the testbed's ports for all but one of them
    waiting     that alone, and twice the CPU time of the parts of the chain on the same CPUs
    other       as alone: delay at a VNF, time throttled, read from storage, CPU time per packet; the vSwitch's delay as
                latency

A chain is *limited* where the prediction leaves less than a tenth of a CPU or of the throughput: there only throughput,
losses inside a part and what the VNF's accounts say are judged, as queues overflow and latency is that of full queues.

An excess counts if it is more than what matters (the constants below) and if, by Student's t, its mean is above zero at
`ALPHA` over the number of comparisons (Bonferroni). The standard deviation is that of repeated runs, pooled over all
chains and VNFs of the study, relative for throughput, latency and CPU time per packet. So `ALPHA` bounds the share of
fault-free studies in which any chain is reported by this rule, where noise is Gaussian and predictions hold.

Chains with more than what matters in their first run are measured again, with their VNFs alone, and only the repeated
runs decide: the first one was selected for its value.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, prod, sqrt
from statistics import fmean
from typing import NamedTuple

from resources.libraries.python import special_functions
from resources.libraries.python.model.measurements.features import CHAIN, VSWITCH
from resources.libraries.python.studies.chains.analysis.distances import BUSY, SATURATED
from resources.libraries.python.studies.chains.analysis.features import (
    CPU,
    IDLE_LATENCY,
    LATENCY,
    LOSS,
    READ,
    THROTTLED,
    THROUGHPUT,
    WAITING,
    ordinary,
)
from resources.libraries.python.studies.chains.model import ChainRun, Excess
from resources.libraries.python.studies.chains.model.spec import PATH, Chain, Member, Workload

ALPHA = 0.01
"""Of all comparisons of a study together."""
INTERVAL = 0.95
"""Confidence of the intervals of an excess."""
CPU_PER_PACKET, DELAY = "cpu_per_packet_s", "delay_s"
"""The latter by time stamps at all hops, without load."""
_RECEIVED = "rx_pps"
LATENCIES = frozenset({LATENCY, IDLE_LATENCY, DELAY})
_RELATIVE = frozenset({THROUGHPUT, CPU_PER_PACKET})
_MIN_LOSS = 0.001
_MIN_RATE, _MIN_SHARED_RATE = 0.1, 0.25
_MIN_UNLIMITED_RATE = 0.02
_MIN_LATENCY = 0.05, 2e-6
_MIN_SHARED_LATENCY = 0.3, 20e-6
"""Relative and in seconds, the larger counts. Where parts of the chain share CPUs, they wait for each other."""
_MIN_DELAY, _MIN_SHARED_DELAY = (0.25, 10e-6), (0.5, 20e-6)
_MIN_PERCENT, _MIN_WAITING, _MIN_WAITING_PERCENT = 5.0, 0.2, 1.0
"""Of time throttled; of waiting, a fifth of the CPU time of the VNF suffices, from 1 % on."""
_MIN_READ = float(2**20)
_MIN_CPU_PER_PACKET, _MIN_CPU_PERCENT = 0.25, 2.0
_SAME_RATE = 0.05
"""CPU time per packet is compared at equal rates: batches are larger at higher ones."""
_INSIDE = "inside_loss_ratio"

_Where = tuple[Chain, Workload]
_What = tuple[str, str]
"""Owner and feature."""
_Row = Mapping[_What, float]
"""Values of a run."""


class Judged(NamedTuple):
    """Comparison of a study's chains with their VNFs alone."""

    worse: tuple[Excess, ...]
    """In the order of the runs."""
    compared: Mapping[_What, Mapping[_Where, float]]
    """Ratio of an excess to the smallest that counts, by chain and workload, of all that were compared."""
    unknown: tuple[Chain, ...]
    """Chains with a VNF that was not measured alone under the same workload."""
    tested: int
    """Comparisons that the error is divided by."""
    repeated: bool
    """Whether the spread of repeated runs is known."""


class PartComparison(NamedTuple):
    """Delay or loss of a part of a chain, beside its prediction."""

    owner: str
    """A VNF, or VSWITCH."""
    feature: str
    """DELAY or LOSS."""
    measured: float
    """Mean of the runs that decide."""
    expected: float
    half: float | None
    """Half of the 95 % interval of measured less expected; None where nothing was repeated."""


@dataclass(frozen=True, slots=True)
class _Point:
    """One quantity of a chain under a workload."""

    chain: Chain
    workload: Workload
    owner: str
    feature: str
    measured: tuple[float, ...]
    """By run."""
    expected: float
    least: float
    alone_runs: int
    """Runs of each VNF alone from which the prediction follows."""
    is_limited: bool
    parts: int = 1
    """VNFs whose values the prediction adds up."""

    def excess(self, measured: float) -> float:
        if self.feature == THROUGHPUT:
            return 1 - measured / self.expected
        return measured / self.expected - 1 if self.feature in _RELATIVE | LATENCIES else measured - self.expected

    @property
    def mean(self) -> float:
        return fmean(map(self.excess, self.measured))

    def error(self, known: "_Spread") -> float:
        """Standard error of the mean excess."""
        return known.sigma * sqrt(1 / len(self.measured) + self.parts / self.alone_runs)

    @property
    def alike(self) -> tuple[bool, str, bool]:
        """Quantities with the same spread."""
        return self.owner == CHAIN, self.feature, self.is_limited


def to_repeat(runs: Sequence[ChainRun], most: int) -> tuple[Chain, ...]:
    """Chains whose runs deviate by more than what matters, their VNFs alone, and the path.

    `most`: Chains at most, those that deviate most.
    """
    found: dict[Chain, float] = {}
    for point in _Observed(runs).points():
        if (strength := point.mean / point.least) > 1:
            found[point.chain] = max(strength, found.get(point.chain, 0.0))
    chains = sorted(found, key=lambda chain: -found[chain])[:most]
    alone = dict.fromkeys(Chain(members=(member,)) for chain in chains for member in chain.members)
    return (*chains, *alone, *([PATH] if chains else []))


def judge(runs: Sequence[ChainRun]) -> Judged:
    """Compare all chains of two and more VNFs with what their VNFs alone predict.

    `runs`: All of a study, repeated ones after the first ones.
    """
    observed = _Observed(runs)
    points = list(observed.points())
    screened = [point for point in points if point.mean > point.least]
    spread = _spread(points)
    worse = [found for point in screened if (found := _excess(point, spread, len(screened))) is not None]
    compared: dict[_What, dict[_Where, float]] = defaultdict(dict)
    for point in (each for each in points if len(each.chain.members) > 1):
        compared[point.owner, point.feature][point.chain, point.workload] = point.mean / point.least
    return Judged(tuple(worse), compared, observed.unknown, len(screened), bool(spread))


def compare_parts(
    runs: Sequence[ChainRun], where: Collection[tuple[Chain, Workload]]
) -> dict[tuple[Chain, Workload], list[PartComparison]]:
    """Compare the delay and the loss of each part of chains with what the VNFs alone predict.

    `runs`: as of `judge`.
    """
    points = list(_Observed(runs).points())
    spread = _spread(points)
    found: dict[tuple[Chain, Workload], list[PartComparison]] = defaultdict(list)
    for point in points:
        if (at := (point.chain, point.workload)) in where and point.owner != CHAIN and point.feature in {DELAY, LOSS}:
            known = spread.get(point.alike)
            half = None if known is None else point.error(known) * _student(known.freedom, (1 - INTERVAL) / 2)
            unit = point.expected if point.feature == DELAY else 1.0
            measured = fmean(point.measured)
            scaled = None if half is None else half * unit
            found[at].append(PartComparison(point.owner, point.feature, measured, point.expected, scaled))
    return found


class _Spread(NamedTuple):
    """Standard deviation of single runs, and its degrees of freedom."""

    sigma: float
    freedom: int


_Spreads = Mapping[tuple[bool, str, bool], _Spread]


def _spread(points: Sequence[_Point]) -> _Spreads:
    """Pooled standard deviation of repeated runs, of quantities that are alike; empty where nothing was repeated."""
    squares: dict[tuple[bool, str, bool], float] = defaultdict(float)
    freedom: dict[tuple[bool, str, bool], int] = defaultdict(int)
    for point in points:
        if len(point.measured) > 1:
            values = [point.excess(value) for value in point.measured]
            squares[point.alike] += fsum((value - point.mean) ** 2 for value in values)
            freedom[point.alike] += len(values) - 1
    return {alike: _Spread(sqrt(squares[alike] / count), count) for alike, count in freedom.items()}


def _excess(point: _Point, spread: _Spreads, comparisons: int) -> Excess | None:
    """What is reported of a point; None where noise would explain it."""
    mean, half = point.mean, 0.0
    if known := spread.get(point.alike):
        error = point.error(known)
        if mean <= error * _student(known.freedom, ALPHA / comparisons):
            return None
        half = error * _student(known.freedom, (1 - INTERVAL) / 2)
    unit = point.expected if point.feature in LATENCIES else 1.0
    return Excess(
        chain=point.chain,
        owner=point.owner,
        workload=point.workload,
        feature=point.feature,
        measured=fmean(point.measured),
        expected=point.expected,
        excess=mean * unit,
        low=(mean - half) * unit,
        high=(mean + half) * unit,
        least=point.least * unit,
        runs=len(point.measured),
    )


def _student(freedom: int, tail: float) -> float:
    return -float(special_functions.stdtrit(freedom, tail))


class _Observed:
    """Values of runs, and predictions from those of VNFs alone."""

    def __init__(self, runs: Sequence[ChainRun]) -> None:
        self._runs: dict[_Where, list[ChainRun]] = defaultdict(list)
        for run in runs:
            if run.failed is None:
                self._runs[run.chain, run.workload].append(run)
        self._values = {where: [_values(run) for run in rows[1:] or rows] for where, rows in self._runs.items()}
        self.unknown = tuple(
            dict.fromkeys(
                chain
                for chain, workload in self._runs
                if len(chain.members) > 1 and any(not self._alone(member, workload) for member in chain.members)
            )
        )

    def points(self) -> Iterator[_Point]:
        """All that can be compared, VNFs alone with themselves: their runs have the same spread."""
        for (chain, workload), rows in self._values.items():
            if chain.members and chain not in self.unknown:
                yield from self._of(chain, workload, rows)

    def _of(self, chain: Chain, workload: Workload, rows: Sequence[_Row]) -> Iterator[_Point]:
        alone = {member: self._alone(member, workload) for member in chain.members}
        alone_runs = min(map(len, alone.values()))
        placed = self._runs[chain, workload][0].placed
        shared = len({cpu for cpus in placed.values() for cpu in cpus}) < sum(map(len, placed.values()))
        load = self._load(chain, workload, placed)
        is_limited = load >= BUSY or any(self._is_saturated(member, workload) for member in alone)

        def points(
            owner: str, feature: str, expected: float, least: float, *, key: str = "", parts: int = 1
        ) -> Iterator[_Point]:
            measured = tuple(row[owner, key or feature] for row in rows if (owner, key or feature) in row)
            if measured and (expected > 0 or feature not in _RELATIVE | LATENCIES):
                yield _Point(chain, workload, owner, feature, measured, expected, least, alone_runs, is_limited, parts)

        def all_alone(feature: str, owner: str = CHAIN) -> list[float]:
            found = [_mean(each, owner, feature) for each in alone.values()]
            values = [value for value in found if value is not None]
            return values if len(values) == len(found) else []

        rates, losses = all_alone(THROUGHPUT), all_alone(LOSS)
        if rates and (is_limited or not losses):
            least = (_MIN_SHARED_RATE if shared else _MIN_RATE) if is_limited else _MIN_UNLIMITED_RATE
            yield from points(CHAIN, THROUGHPUT, min(*rates, workload.volume_bps / max(1.0, load)), least)
        elif losses:
            expected = 1 - prod(1 - loss for loss in losses)
            yield from points(CHAIN, LOSS, expected, _MIN_LOSS, parts=len(losses))
        path = self._values.get((PATH, workload), [])
        for owner, feature in (
            (CHAIN, IDLE_LATENCY), *([] if is_limited or shared else [(CHAIN, LATENCY)]), (VSWITCH, DELAY),
        ):  # fmt: skip
            times_s, path_s = all_alone(feature, owner), _mean(path, owner, feature)
            expected_s = fsum(times_s) - (len(times_s) - 1) * (path_s or 0.0)
            if times_s and path_s is not None and expected_s > 0:
                yield from points(owner, feature, expected_s, _least_time(feature, expected_s, shared=shared))
        yield from points(VSWITCH, LOSS, 0.0, _MIN_LOSS, key=_INSIDE if is_limited else LOSS)
        for member, before in alone.items():
            # What is saturated lets its queue overflow; so do parts that share its CPU.
            is_full = is_limited and (shared or self._is_saturated(member, workload))
            key = _INSIDE if is_full else LOSS
            yield from points(member.name, LOSS, _mean(before, member.name, key) or 0.0, _MIN_LOSS, key=key)
            if delay_s := _mean(before, member.name, DELAY):
                yield from points(member.name, DELAY, delay_s, _least_time(DELAY, delay_s, shared=shared))
            yield from self._of_accounts(member.name, before, rows, placed, points, is_exclusive=not shared)

    def _of_accounts(
        self,
        name: str,
        alone: Sequence[_Row],
        rows: Sequence[_Row],
        placed: Mapping[str, tuple[int, ...]],
        points: Callable[[str, str, float, float], Iterator[_Point]],
        *,
        is_exclusive: bool,
    ) -> Iterator[_Point]:
        if (before := _mean(alone, name, THROTTLED)) is not None:
            yield from points(name, THROTTLED, before, _MIN_PERCENT)
        if (before := _mean(alone, name, READ)) is not None:
            yield from points(name, READ, before, _MIN_READ)
        used = _mean(rows, name, CPU) or 0.0
        if (before := _mean(alone, name, WAITING)) is not None:
            beside = (other for other, cpus in placed.items() if other != name and {*cpus} & {*placed.get(name, ())})
            others = fsum(_mean(rows, other, CPU) or 0.0 for other in beside)
            least = max(_MIN_WAITING_PERCENT, min(_MIN_PERCENT, _MIN_WAITING * used))
            yield from points(name, WAITING, before + 2 * others, least)
        before, rate, rate_before = (
            _mean(alone, name, CPU_PER_PACKET), _mean(rows, name, _RECEIVED), _mean(alone, name, _RECEIVED),
        )  # fmt: skip
        is_same = rate and rate_before and abs(rate / rate_before - 1) <= _SAME_RATE
        if before and is_same and is_exclusive and used >= _MIN_CPU_PERCENT:
            yield from points(name, CPU_PER_PACKET, before, _MIN_CPU_PER_PACKET)

    def _alone(self, member: Member, workload: Workload) -> list[_Row]:
        return self._values.get((Chain(members=(member,)), workload), [])

    def _load(self, chain: Chain, workload: Workload, placed: Mapping[str, tuple[int, ...]]) -> float:
        """Share of its time that the busiest CPU of a chain needs."""
        cpus: dict[int, float] = defaultdict(float)
        vswitch = []
        for member in chain.members:
            rows = self._alone(member, workload)
            used = (_mean(rows, member.name, CPU) or 0.0) / 100
            vswitch += [found for row in rows if (found := row.get((VSWITCH, CPU))) is not None]
            for cpu in (own := placed.get(member.name, ())):
                cpus[cpu] += used / len(own)
        for cpu in (own := placed.get(VSWITCH, ())):
            cpus[cpu] += fmean(vswitch or [0.0]) / 100 * (len(chain.members) + 1) / 2 / len(own)
        return max(cpus.values(), default=0.0)

    def _is_saturated(self, member: Member, workload: Workload) -> bool:
        """Whether a VNF alone loses what it is offered, or uses nearly all of its CPUs."""
        rows = self._alone(member, workload)
        usable = self._runs[Chain(members=(member,)), workload][0].cpus.get(member.name)
        used = (_mean(rows, member.name, CPU) or 0.0) / 100
        passed_bps = _mean(rows, CHAIN, THROUGHPUT)
        is_lossy = passed_bps is not None and passed_bps < (1 - SATURATED) * workload.volume_bps
        return is_lossy or (usable is not None and used >= BUSY * usable)


def _values(run: ChainRun) -> _Row:
    """What is compared of a run, by owner and feature."""
    of_chain = {
        THROUGHPUT: run.throughput_bps, LOSS: run.loss_ratio, LATENCY: run.latency_s, IDLE_LATENCY: run.idle_latency_s,
    }  # fmt: skip
    found = {(CHAIN, feature): value for feature, value in of_chain.items() if value is not None}
    for series in run.series:
        if kept := ordinary(series.values)[0]:
            found[series.owner, series.feature] = fmean(kept)
    for delay in run.delays or ():
        found[delay.owner, DELAY] = delay.median_s
    for name in run.chain.order:
        used, received = found.get((name, CPU)), found.get((name, _RECEIVED))
        if used is not None and received:
            found[name, CPU_PER_PACKET] = used / 100 / received
    for owner in (*run.chain.order, VSWITCH) if run.losses is not None else ():
        own = [loss for loss in run.losses or () if loss.owner == owner]
        found[owner, LOSS] = fsum(loss.ratio for loss in own)
        found[owner, _INSIDE] = fsum(loss.ratio for loss in own if loss.cause == "inside")
    return found


def _least_time(feature: str, expected_s: float, *, shared: bool) -> float:
    """Smallest excess that is reported, relative."""
    if feature == DELAY:
        share, least_s = _MIN_SHARED_DELAY if shared else _MIN_DELAY
    else:
        share, least_s = _MIN_SHARED_LATENCY if shared else _MIN_LATENCY
    return max(share, least_s / expected_s)


def _mean(rows: Sequence[_Row], owner: str, feature: str) -> float | None:
    found = [row[owner, feature] for row in rows if (owner, feature) in row]
    return fmean(found) if found else None
