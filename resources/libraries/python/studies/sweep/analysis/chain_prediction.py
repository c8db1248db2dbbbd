"""A chain predicted from the profiles of its VNFs alone, and compared with the real one.

Troia et al. found: throughput and loss of a chain are those of its CPU-hungriest VNF, the one that saturates first; its
delay is the sum of the delays. That holds where every VNF has CPUs of its own.

A VNF alone is measured with all that is around it: a delay D_i that holds the path from the generator to it and back,
P. Where the path was measured without any VNF, a VNF's own delay at a rate is D_i - P there, and the chain's is
P + sum(D_i - P): the path counts once. Where it was not, the plain sum counts it once for each VNF.

Where VNFs share a CPU, a packet takes the time of each of them from it, one after the other. A VNF that saturates alone
at the rate C_i, using the share u_i of its CPUs there, takes u_i/C_i of them. The rest, (1-u_i)/C_i, goes to what else
runs on them (a vSwitch), and goes there once however many VNFs there are. So together they saturate at

    1/C = sum(u_i/C_i) + max((1-u_i)/C_i)

which is 1/C = 1/C_1 + 1/C_2 + ... for VNFs that use all of their CPUs alone. A VNF of them behaves at the rate r as
alone at the rate r*C_i/C, where it uses the same share of the CPUs.

The load up to which a prediction may be trusted is judged by the chain that was measured, not by means of all loads: a
mean over all loads hides that a prediction is good below saturation and poor above it, or the other way round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from resources.libraries.python.studies.sweep.analysis.points import LoadObservation, observe
from resources.libraries.python.studies.sweep.analysis.profile import measured_rates, value_at
from resources.libraries.python.studies.sweep.model import (
    PredictedPoint,
    Prediction,
    Profile,
    ProfileMetric,
    SweepPoint,
    Vnf,
)

Model = Literal["hungriest", "shared_cpus"]


@dataclass(frozen=True)
class MeasuredVnf:
    """Baseline profile of a VNF of a chain."""

    profile: Profile
    share: float = 1.0
    """Share of the chain's rate that goes through it: 0.5 in either of two branches, 1 before and behind them."""
    cpus: str | None = None
    """Parts with the same word here share their CPUs; None for a part with CPUs of its own."""


@dataclass(frozen=True)
class _PredictedMember:
    """A part as it is inside of the chain."""

    part: MeasuredVnf
    stretch: float
    """Rate at which it behaves alone as it does in the chain, over the rate of the chain."""
    capacity: float | None
    """Rate of the chain at which it saturates, Gbit/s; None where that is unknown."""


def sharing(vnfs: Sequence[Vnf]) -> Mapping[str, str | None]:
    """Return `MeasuredVnf.cpus` of every VNF of a chain: one word for all that share CPUs, also indirectly."""
    names = [vnf.name for vnf in vnfs]
    word = {name: name for name in names}
    for vnf in vnfs:
        for other in vnf.shares_cpus_with:
            if other in word and word[other] != word[vnf.name]:
                old, new = word[other], word[vnf.name]
                word = {name: new if each == old else each for name, each in word.items()}
    counts = list(word.values())
    return {name: each if counts.count(each) > 1 else None for name, each in word.items()}


WITHOUT_PATH = (
    "the path without VNFs was not measured: the delay is the sum of the delays of the parts, each of which "
    "contains the whole path from the generator and back"
)


@dataclass(frozen=True)
class MeasuredPath:
    """Its delay between points, on straight lines: no function is looked for, since it is only taken off again.

    Below the lowest and above the highest of its loads it is as there.
    """

    name: str
    rates: tuple[float, ...]
    """Gbit/s, rising; at least one."""
    delays: tuple[float, ...]
    """Milliseconds, one way."""

    @classmethod
    def of(cls, name: str, points: Sequence[SweepPoint]) -> Self | None:
        """The path from the points of its sweep; None where none of them has a delay."""
        observed, _ = observe(points)
        known = [(each.rate, delay) for each in observed if (delay := each.values[ProfileMetric.DELAY]) is not None]
        return cls(name, *map(tuple, zip(*known, strict=True))) if known else None

    def delay_ms(self, rate: float) -> float:
        """Its delay at a rate in Gbit/s."""
        return float(np.interp(rate, self.rates, self.delays))

    def remarks(self, rates: Sequence[float]) -> list[str]:
        """Remarks on its use at some rates."""
        beyond = sum(rate > self.rates[-1] * (1 + 1e-9) for rate in rates)
        if not beyond:
            return []
        return [f"at {beyond} of {len(rates)} rates the path {self.name} was not measured: its delay is as at its last"]


def predict(
    chain: str,
    parts: Sequence[MeasuredVnf],
    points: Sequence[SweepPoint],
    model: Model,
    path: MeasuredPath | None = None,
) -> Prediction:
    """Predict a chain at the rates at which it was measured.

    Args:
        chain: Its name.
        parts: Its VNFs in the order of the chain, branches one after the other.
        points: What was measured of it.
        model: `hungriest` leaves `MeasuredVnf.cpus` alone, `shared_cpus` uses it.
        path: The service without VNFs; None where it was not measured.

    Raises:
        ValueError: There are no parts.
    """
    observed, notes = observe(points)
    return _prediction(chain, parts, observed, notes, model, path=path)


def predict_rates(
    chain: str, parts: Sequence[MeasuredVnf], rates: Sequence[float], model: Model, path: MeasuredPath | None = None
) -> Prediction:
    """Predict a chain at rates in Gbit/s, beside nothing that was measured.

    Raises:
        ValueError: There are no parts.
    """
    return _prediction(chain, parts, [LoadObservation(rate, {}, {}) for rate in rates], (), model, path=path)


def _prediction(
    chain: str,
    parts: Sequence[MeasuredVnf],
    observed: Sequence[LoadObservation],
    notes: Sequence[str],
    model: Model,
    *,
    path: MeasuredPath | None,
) -> Prediction:
    if not parts:
        raise ValueError("a chain has at least one VNF")
    members, unknown = _members(parts, shared=model == "shared_cpus")
    rows = tuple(_point(members, each, path) for each in observed)
    guessed = sum(any(_beyond(member, each.rate) for member in members) for each in observed)
    if guessed:
        what = "a VNF was not measured alone at the rate it has in the chain: its functions are extrapolated"
        unknown.append(f"at {guessed} of {len(rows)} rates {what}")
    unknown += [WITHOUT_PATH] if path is None else path.remarks([each.rate for each in observed])
    return Prediction(
        chain=chain,
        parts=tuple(part.profile.name for part in parts),
        model=model,
        points=rows,
        errors=errors(rows),
        notes=(*notes, *unknown),
        path=None if path is None else path.name,
        summed_delay_error=_mean(
            [
                abs(row.summed_delay - delay) / delay
                for row in rows
                if row.summed_delay is not None and (delay := row.measured.get(ProfileMetric.DELAY))
            ]
        ),
    )


def errors(points: Sequence[PredictedPoint]) -> dict[ProfileMetric, float]:
    """Mean absolute error relative to the measured value, for loss in percentage points."""
    found = {}
    for metric in ProfileMetric:
        off = [
            abs(point.predicted[metric] - point.measured[metric])
            / (1.0 if metric is ProfileMetric.LOSS else point.measured[metric])
            for point in points
            if metric in point.predicted
            and metric in point.measured
            and (metric is ProfileMetric.LOSS or point.measured[metric])
        ]
        if (mean := _mean(off)) is not None:
            found[metric] = mean
    return found


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _members(parts: Sequence[MeasuredVnf], *, shared: bool) -> tuple[list[_PredictedMember], list[str]]:
    notes = []
    members = []
    for part in parts:
        group = [
            other for other in parts if other is part or (shared and part.cpus is not None and other.cpus == part.cpus)
        ]
        at = part.profile.break_point
        if at is not None and at.is_upper_bound:
            notes.append(
                f"{part.profile.name} saturates at {at.rate:.4g} Gbit/s or below: the chain may saturate earlier"
            )
        alone, together = _capacity(part), _together(group) if len(group) > 1 else _capacity(part)
        if alone is None or together is None:
            what = "shared CPUs count as its own" if len(group) > 1 else "it is assumed never to saturate first"
            notes.append(f"{part.profile.name}: where it or a VNF on its CPUs saturates is not known; {what}")
            members.append(_PredictedMember(part, part.share, alone))
        else:
            members.append(_PredictedMember(part, part.share * alone / together, together))
    if not any(member.capacity for member in members):
        notes.append("no VNF is known to saturate: throughput and loss are those of the one with the lowest throughput")
    return members, notes


def _capacity(part: MeasuredVnf) -> float | None:
    """Rate of the chain at which a part saturates with its CPUs as they were alone."""
    return None if part.profile.break_point is None else part.profile.break_point.rate / part.share


def _together(group: Sequence[MeasuredVnf]) -> float | None:
    """Rate of the chain at which the CPUs of a group saturate; None where that of a part is unknown."""
    own, others = 0.0, 0.0
    for part in group:
        at, capacity = part.profile.break_point, _capacity(part)
        if at is None or capacity is None or at.cpus_used is None or at.cpus_there is None:
            return None
        share = min(1.0, at.cpus_used / at.cpus_there)
        own += share / capacity
        others = max(others, (1 - share) / capacity)
    return 1 / (own + others)


def _point(members: Sequence[_PredictedMember], each: LoadObservation, path: MeasuredPath | None) -> PredictedPoint:
    measured = {metric: value for metric, value in each.values.items() if value is not None}
    return PredictedPoint(
        rate=each.rate,
        predicted=_predicted(members, each.rate, path),
        measured=measured,
        summed_delay=None if path is None else _delay(members, each.rate, None),
    )


def _predicted(
    members: Sequence[_PredictedMember], rate: float, path: MeasuredPath | None
) -> dict[ProfileMetric, float]:
    values = {ProfileMetric.DELAY: _delay(members, rate, path)}
    known = [member for member in members if member.capacity is not None]
    # Of VNFs that share CPUs, all have the same capacity; the one that is the hungriest alone is stretched least.
    order = sorted(known, key=lambda member: (member.capacity or 0.0, member.stretch / member.part.share))
    candidates = order[:1] or members
    through = [
        value / member.stretch
        for member in candidates
        if (value := value_at(member.part.profile, ProfileMetric.THROUGHPUT, member.stretch * rate)) is not None
    ]
    losses = [value_at(member.part.profile, ProfileMetric.LOSS, member.stretch * rate) for member in candidates]
    values[ProfileMetric.THROUGHPUT] = min(through, default=None)
    values[ProfileMetric.LOSS] = max((value for value in losses if value is not None), default=None)
    return {metric: value for metric, value in values.items() if value is not None}


def _delay(members: Sequence[_PredictedMember], rate: float, path: MeasuredPath | None) -> float | None:
    """The mean over all packets: each meets the VNFs of one branch only."""
    total = 0.0 if path is None else path.delay_ms(rate)
    for member in members:
        own_rate = member.stretch * rate
        delay = value_at(member.part.profile, ProfileMetric.DELAY, own_rate)
        if delay is None:
            return None
        # No VNF is faster than none: less than the path's own delay is what measuring is worth.
        total += member.part.share * (delay if path is None else max(0.0, delay - path.delay_ms(own_rate)))
    return total


def _beyond(member: _PredictedMember, rate: float) -> bool:
    """Whether a member was not measured at what this rate of the chain means for it."""
    rates = measured_rates(member.part.profile)
    return rates is None or member.stretch * rate > rates[1] * (1 + 1e-9)


WITHIN: Mapping[ProfileMetric, float] = {
    ProfileMetric.THROUGHPUT: 0.1,
    ProfileMetric.DELAY: 0.25,
    ProfileMetric.LOSS: 5.0,
}
"""Accepted errors: shares of the measured value, for loss percentage points."""


@dataclass(frozen=True)
class Trust:
    """Of one metric."""

    metric: ProfileMetric
    rate: float | None
    """Gbit/s: the highest measured rate up to which all predictions are right; None where the first is wrong."""
    everywhere: bool
    """No prediction is wrong."""


def trust(prediction: Prediction) -> tuple[Trust, ...]:
    """Up to where each metric that was predicted and measured is right."""
    found = []
    for metric in ProfileMetric:
        known = sorted(
            (point for point in prediction.points if metric in point.predicted and metric in point.measured),
            key=lambda point: point.rate,
        )
        right = next((place for place, point in enumerate(known) if not _is_right(point, metric)), len(known))
        if known:
            rate = known[right - 1].rate if right else None
            found.append(Trust(metric, rate, everywhere=right == len(known)))
    return tuple(found)


def _is_right(point: PredictedPoint, metric: ProfileMetric) -> bool:
    off, measured = abs(point.predicted[metric] - point.measured[metric]), point.measured[metric]
    return off <= WITHIN[metric] * (1.0 if metric is ProfileMetric.LOSS else measured)
