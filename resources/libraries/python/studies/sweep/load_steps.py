"""Loads of a sweep, and how a deployed service is sampled at one.

That is Algorithm 1 of "Performance Characterization and Profiling of Chained CPU-bound Virtual Network Functions"
(Troia et al.). Constant loads go from the lowest to the highest; each gives one sample per second and a point, the
means of its samples. Bursts are one load that comes and goes; they give samples only. All rates are of one way.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from resources.libraries.python.errors import CsitError, NoTraffic
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.traffic import Departures, Protocol
from resources.libraries.python.model.result import l2_bps
from resources.libraries.python.quantities import rate, rates
from resources.libraries.python.studies.sweep.analysis.seconds import (
    SamplerReading,
    busiest,
    probes_pps,
    second_of,
    seconds_of,
    sender_pps,
    work,
)
from resources.libraries.python.studies.sweep.model import (
    GIGA,
    BreakPoint,
    Bursts,
    CpuUse,
    Rates,
    SweepPoint,
    SweepSample,
    SweepSpec,
)
from resources.libraries.python.studies.sweep.planning import AUTOMATIC_LOADS
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.roles.service import RealTime

BEYOND = 1.6
"""Highest automatic load, relative to the throughput of the service in a short test."""
_APART = 1e-3
"""Of the break-point: a load so close to another one says nothing new about its place."""
_WAYS = 2
_GLANCE_S = 0.2
_LOOK_S = 0.25
_MIN_PPS = 1000.0
"""Aggregate: a service that forwards less needs explicit rates."""
STOP_AFTER = 3
"""So many loads in a row must lose too much before a sweep that may stop early does."""


@dataclass(frozen=True, slots=True)
class LoadStep:
    """A load of the sweep, its begin and duration."""

    rate_pps: float
    """Rate of each flow, one way; 0 between bursts."""
    begin_s: int
    """Number of its first sample."""
    duration_s: int
    """One sample for each second."""


class MeasuredLoad(Frozen):
    """Samples at a load."""

    samples: tuple[SweepSample, ...]
    """One for each second, at least one."""
    sender_pps: float | None = None
    """Packets counted by the sender's network interface, all flows, one way; None where it cannot be read."""
    note: str | None = None
    """Notes of the generator."""


MAX_REFINING = 4
"""Further loads around a break-point at most."""


def steps_of(
    spec: SweepSpec, refine: Callable[[], float | None] = lambda: None, *, whole_bursts: bool = False
) -> Iterator[Sequence[LoadStep]]:
    """Yield all loads, then further ones, each when those before are measured.

    `refine`: a further load by what was measured; None for no more. At most `MAX_REFINING`.
    `whole_bursts`: all bursts are one load: the generator makes them itself.
    """
    yield loads(spec, whole_bursts=whole_bursts)
    for _ in range(MAX_REFINING):
        if (rate_pps := refine()) is None:
            return
        yield (LoadStep(rate_pps, 0, spec.duration_s),)


def is_lossy(points: Sequence[SweepPoint], most_ratio: float) -> bool:
    """Whether the last `STOP_AFTER` loads lost more than a share, in [0, 1): then a sweep may leave the others out."""
    last = points[-STOP_AFTER:]
    return len(last) == STOP_AFTER and all((each.loss_ratio or 0.0) > most_ratio for each in last)


def loads(spec: SweepSpec, *, whole_bursts: bool = False) -> tuple[LoadStep, ...]:
    """Loads in order; bursts begin with one and may end in the middle of one."""
    if spec.rates is not None:
        return tuple(LoadStep(rate_pps, 0, spec.duration_s) for rate_pps in spec.rates.each())
    assert spec.bursts is not None  # noqa: S101 - the spec has one or the other
    if whole_bursts:
        return (LoadStep(spec.bursts.rate_pps, 0, spec.duration_s),)
    return tuple(_bursts(spec.bursts, spec.duration_s))


def _bursts(bursts: Bursts, duration_s: int) -> Iterator[LoadStep]:
    begin_s, on = 0, True
    while begin_s < duration_s:
        length_s = min(bursts.on_s if on else bursts.off_s, duration_s - begin_s)
        yield LoadStep(bursts.rate_pps if on else 0.0, begin_s, length_s)
        begin_s, on = begin_s + length_s, not on


def duration_s(spec: SweepSpec) -> float:
    """Return the seconds of all loads."""
    return sum(load.duration_s for load in loads(spec))


def point(measured: MeasuredLoad, spec: SweepSpec) -> SweepPoint:
    """The means of a load's samples.

    Loss is of all packets of the load, so a second with few of them counts little.
    """
    samples, rate_pps = measured.samples, measured.samples[0].rate_pps
    input_pps = fmean(sample.input_pps for sample in samples)
    output_pps = fmean(sample.output_pps for sample in samples)
    delays = [sample.delay_s for sample in samples if sample.delay_s is not None]
    available = [sample.available_mib for sample in samples if sample.available_mib is not None]
    return SweepPoint(
        rate_pps=rate_pps,
        samples=len(samples),
        input_pps=input_pps,
        sender_pps=measured.sender_pps,
        output_pps=output_pps,
        input_bps=l2_bps(input_pps, spec.frame),
        output_bps=l2_bps(output_pps, spec.frame),
        loss_ratio=max(0.0, 1 - output_pps / input_pps) if input_pps else None,
        delay_s=fmean(delays) if delays else None,
        cpu=mean_use([sample.cpu for sample in samples]),
        busy=mean_use([sample.busy for sample in samples]),
        memory_mib=_mean_memory(samples),
        available_mib=fmean(available) if available else None,
        flagged=_flag(rate_pps * spec.flows, input_pps, measured, spec.tolerance),
    )


def mean_use(rows: Sequence[CpuUse]) -> dict[str, tuple[float, ...]]:
    """Mean of each data thread over the samples that know it."""
    known: dict[str, list[tuple[float, ...]]] = {}
    for row in rows:
        for vnf, shares in row.items():
            known.setdefault(vnf, []).append(shares)
    return {vnf: tuple(fmean(each) for each in zip(*shares, strict=True)) for vnf, shares in known.items()}


def _mean_memory(samples: Sequence[SweepSample]) -> dict[str, float]:
    """Mean of each VNF over the samples that know it."""
    known: dict[str, list[float]] = {}
    for sample in samples:
        for vnf, used in sample.memory_mib.items():
            known.setdefault(vnf, []).append(used)
    return {vnf: fmean(used) for vnf, used in known.items()}


def _flag(asked_pps: float, counted_pps: float, measured: MeasuredLoad, tolerance: float) -> str | None:
    sender_pps = measured.sender_pps
    reasons = []
    if abs(counted_pps - asked_pps) > tolerance * asked_pps:
        reasons.append(f"the generator offered {' of '.join(rates(counted_pps, asked_pps))}")
    if sender_pps is not None and abs(sender_pps - counted_pps) > tolerance * max(sender_pps, counted_pps):
        reasons.append(f"its interface saw {', and it counted '.join(rates(sender_pps, counted_pps))}")
    return "; ".join([*reasons, *([measured.note] if reasons and measured.note else [])]) or None


def capacity(offer: Callable[[float], tuple[float, float]], most_pps: float, least_pps: float) -> float:
    """A quick look at what a service can forward, for the loads of a sweep whose user named none.

    The load is halved from the highest on until nine tenths of it arrive; the most that ever arrived counts, since a
    service in overload may forward less than it can.

    `offer`: Offers a load for a moment; what was really offered, and what arrived.
    """
    best_pps, load_pps = 0.0, most_pps
    while load_pps >= least_pps:
        offered_pps, arrived_pps = offer(load_pps)
        best_pps = max(best_pps, arrived_pps)
        if arrived_pps >= 0.9 * offered_pps:
            break
        load_pps /= 2
    return best_pps


def rates_around(capacity_pps: float, beyond: float = BEYOND) -> Rates:
    """Loads in equal steps up to `beyond` times a capacity, the step rounded to two digits.

    `capacity_pps`: of each flow, one way; above 0.
    """
    step_pps = float(f"{beyond * capacity_pps / AUTOMATIC_LOADS:.1e}")
    return Rates(start_pps=step_pps, stop_pps=AUTOMATIC_LOADS * step_pps, step_pps=step_pps)


def next_load(break_point: BreakPoint | None, points: Sequence[SweepPoint], width: float) -> float | None:
    """Return a further load that narrows the interval of a break-point: the end of it that is farther from any load.

    Lines on both sides need loads close to where they meet. An interval between two loads of a VNF that shares its CPUs
    ends at both of them, so that its middle is the place.

    `width`: relative width of the interval that is narrow enough.

    Returns:
        Packets per second of each flow; None where no load is needed, or none is known that helps.
    """
    if break_point is None or break_point.width is None or break_point.width <= width:
        return None
    low, high = break_point.low or break_point.rate, break_point.high or break_point.rate
    known = sorted((each.input_bps / GIGA, each.rate_pps) for each in points if each.input_bps > 0)
    places = (low, break_point.rate, high)
    distance, rate = max((min(abs(place - there) for there, _ in known), place) for place in places)
    if distance <= _APART * break_point.rate:
        return None
    offered, asked = min(known, key=lambda row: abs(row[0] - rate))
    return asked * rate / offered


@dataclass(frozen=True)
class Sampling:
    """Measures loads on a cell that is deployed.

    `by_log`: the generator keeps a log of every second, so that a load is one trial.
    """

    cell: CellUnderTest
    frame: Frame
    protocol: Protocol
    departures: Departures = Departures.CONSTANT
    by_log: bool = field(kw_only=True)

    def measure(self, spec: SweepSpec, load: LoadStep) -> MeasuredLoad:
        """Offer a load and sample it.

        Raises:
            SystemBroken: A part died.
        """
        return self._one_long(spec, load) if self.by_log else self._many_short(spec, load)

    def capacity_pps(self, flows: int) -> float:
        """Return the service's throughput in a short trial, per flow, one way.

        Raises:
            NoTraffic: Next to nothing comes back.
        """
        duration_s = 1.0 if self.by_log else _GLANCE_S

        def offer(load_pps: float) -> tuple[float, float]:
            result = self.cell.measure(self._trial(load_pps / _WAYS, duration_s, 0.0))
            return result.offered_pps, result.forwarded_pps

        found_pps = capacity(offer, self.cell.highest_loads().search_pps, _MIN_PPS)
        if not found_pps:
            raise NoTraffic(f"no load from {rate(_MIN_PPS)} was received: choose rates, or check the service")
        return found_pps / _WAYS / flows

    def _many_short(self, spec: SweepSpec, load: LoadStep) -> MeasuredLoad:
        """A trial for each second. Between two of them queues run empty and counters are read."""
        deployment, plan = self.cell.deployment, self.cell.deployment.plan
        one_way_pps = load.rate_pps * spec.flows
        trial = self._trial(one_way_pps, 1.0, probes_pps(plan, one_way_pps))
        ports, before = deployment.parts.generator.counters(), deployment.sample()
        results, samples = [], []
        for second in range(load.begin_s, load.begin_s + load.duration_s):
            result = self.cell.measure(trial)
            after = deployment.sample()
            cost = work(plan, before, after, result.offered_duration_s or trial.duration_s)
            samples.append(second_of(result, load.rate_pps, second, cost))
            results.append(result)
            before = after
        notes = dict.fromkeys(result.note for result in results if result.note)
        left_pps = sender_pps(plan, results, ports, deployment.parts.generator.counters()) if one_way_pps else None
        return MeasuredLoad(samples=tuple(samples), sender_pps=left_pps, note="; ".join(notes) or None)

    def _one_long(self, spec: SweepSpec, load: LoadStep) -> MeasuredLoad:
        """A single trial, whose generator reports every second; the CPUs are sampled meanwhile.

        Raises:
            CsitError: The generator reported nothing.
        """
        deployment, plan = self.cell.deployment, self.cell.deployment.plan
        ports = deployment.parts.generator.counters()
        trial = self._trial(load.rate_pps * spec.flows, float(load.duration_s), 0.0)
        if spec.bursts is not None:
            trial = trial.model_copy(update={"on_off_s": (float(spec.bursts.on_s), float(spec.bursts.off_s))})
        time, readings = RealTime(), list[SamplerReading]()
        with time.every(_LOOK_S, lambda: readings.append(SamplerReading(time.now(), deployment.sample()))):
            result = self.cell.measure(trial)
        costs = busiest(plan, readings, load.duration_s)
        samples = seconds_of(result, load.rate_pps, costs)
        if not samples:
            raise CsitError(f"the generator reported no second of {load.duration_s} s at {rate(load.rate_pps)}")
        left_pps = sender_pps(plan, [result], ports, deployment.parts.generator.counters())
        return MeasuredLoad(samples=samples, sender_pps=left_pps, note=result.note)

    def _trial(self, one_way_pps: float, duration_s: float, probe_pps: float) -> Trial:
        return Trial(
            load_pps=_WAYS * one_way_pps,
            duration_s=duration_s,
            frame=self.frame,
            probe_pps=probe_pps,
            purpose="sweep",
            protocol=None if self.protocol is Protocol.IP else self.protocol,
            departures=self.departures,
        )
