"""Loss trials at NDR, at PDR and in overload, and what their losses look like, in a sentence. Pure."""

from collections.abc import Mapping
from enum import StrEnum

from resources.libraries.python.model.measurements.trial import FlowLosses, Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.result import LossesAtLoad

OVERLOAD_LABEL = "OVERLOAD"
_OVERLOAD = 1.2
"""Times PDR."""
_FEW = 10
_SIGMA = 4.0
_EVEN, _UNEVEN = 0.5, 2.0
"""Indexes of dispersion beyond which losses are no longer called random, where they are significant as well."""
_FOLLOWED = 0.3
"""Least share of losses that follow a period."""
_OWN = 0.05
"""Share of losses at the generator's own ports that is remarked on."""
_LOCATED = 1.1
"""Losses by counters of hops over those by numbers: more are not of these packets."""
_REGULAR = 0.1
"""Intervals between bursts are regular where their 10th and 90th percentile differ by no more than this share."""


class LossPattern(StrEnum):
    """How losses are distributed over the packets of a flow."""

    NONE = "none"
    FEW = "few"
    """Too few losses to tell."""
    RANDOM = "random"
    """Independent of each other: as many loss periods as of random losses, and as evenly spread."""
    PERIODIC = "periodic"
    """At regular times."""
    EVEN = "even"
    """More evenly spread than random losses: a queue that is always full."""
    BURSTS = "bursts"
    """In groups, at irregular times."""


def loss_loads(ndr_pps: float | None, pdr_pps: float | None, max_load_pps: float) -> tuple[tuple[str, float], ...]:
    """Loads of loss trials by label: NDR and PDR where they were found, and an overload."""
    found = [(label, pps) for label, pps in (("NDR", ndr_pps), ("PDR", pdr_pps)) if pps]
    most_pps = max((pps for _, pps in found), default=0.0)
    overload_pps = min(max_load_pps, _OVERLOAD * most_pps) if most_pps else max_load_pps
    return (*found, *([(OVERLOAD_LABEL, overload_pps)] if overload_pps > most_pps else []))


def loss_trial(load_pps: float, duration_s: float, frame: Frame) -> Trial:
    """Return the trial that counts losses at a load."""
    return Trial(load_pps=load_pps, duration_s=duration_s, frame=frame, purpose="losses", count_losses=True)


def losses_of(label: str, result: TrialResult, lost_at: Mapping[str, int], generator: str) -> LossesAtLoad:
    """Return the losses of a loss trial.

    `lost_at`: Packets lost by owner, as counters of hops locate them.
    """
    lost = sum(flow.lost for flow in result.losses)
    if sum(lost_at.values()) > _LOCATED * lost:  # counters have other packets too
        lost_at = {}
    remarks = [result.note or "the generator did not offer the load"] if result.generator_limited else []
    own = lost_at.get(generator, 0)
    if own > _OWN * lost:
        remarks.append(f"{own:,} of {lost:,} lost packets were dropped at the generator's own ports")
    return LossesAtLoad(
        label=label,
        load_pps=result.trial.load_pps,
        flows=result.losses,
        lost_at=dict(lost_at),
        remarks=tuple(remarks),
    )


def pattern_of(flow: FlowLosses) -> LossPattern:
    """Return how losses of a flow are distributed."""
    if not flow.lost:
        return LossPattern.NONE
    if min(flow.lost, flow.received) < _FEW or flow.runs_z is None:
        return LossPattern.FEW
    if _period_s(flow) is not None:
        return LossPattern.PERIODIC
    dispersion, dispersion_z = flow.dispersion, flow.dispersion_z or 0.0
    clustered = flow.runs_z < -_SIGMA or (dispersion is not None and dispersion > _UNEVEN and dispersion_z > _SIGMA)
    if clustered:
        return LossPattern.BURSTS
    even = flow.runs_z > _SIGMA or (dispersion is not None and dispersion < _EVEN and dispersion_z < -_SIGMA)
    return LossPattern.EVEN if even else LossPattern.RANDOM


def _period_s(flow: FlowLosses) -> float | None:
    """Return the time between regular losses."""
    if flow.burst_interval_s is not None and flow.bursts >= _FEW:
        low, median, high = flow.burst_interval_s
        if median > 0 and high - low <= _REGULAR * median:
            return median
    if flow.period_s is not None and (flow.period_share or 0.0) >= _FOLLOWED:
        return flow.period_s
    return None


def losses_in_words(flow: FlowLosses) -> str:
    """Return loss, order and duplicates of a flow in a sentence: "bursts of 32 every 4 ms (1 in 125 lost)"."""
    parts = [_loss_in_words(flow)]
    order = flow.order
    if order.reordered is None:
        parts.append(f"order unknown: {order.unknown}")
    elif order.reordered:
        text = f"{order.reordered:,} packets reordered ({_one_in(order.reordered, flow.received)})"
        if order.extents:
            text += f", by up to {order.extents[-1][0]:,} packets"
        parts.append(text)
    if flow.duplicates:
        parts.append(f"{flow.duplicates:,} duplicates")
    if flow.foreign:
        parts.append(f"{flow.foreign:,} packets of other flows or trials arrived")
    return "; ".join(parts)


def flow_in_words(flow: FlowLosses) -> str:
    """Return the sentence of a flow with its instance and direction."""
    return f"instance {flow.instance} {flow.direction}: {losses_in_words(flow)}"


def worst_flow(row: LossesAtLoad) -> FlowLosses:
    """Return the flow that lost most, or reordered most where none lost anything."""
    return max(row.flows, key=rank)


def rank(flow: FlowLosses) -> tuple[int, int, int]:
    """Return what flows are compared by: losses, reordered packets, duplicates."""
    return flow.lost, flow.order.reordered or 0, flow.duplicates


def _loss_in_words(flow: FlowLosses) -> str:
    lost, pattern = flow.lost, pattern_of(flow)
    share = _one_in(lost, flow.sent)
    if pattern is LossPattern.NONE:
        text = f"none of {flow.sent:,} packets lost"
    elif not flow.received:
        text = f"all {lost:,} packets lost"
    elif pattern is LossPattern.FEW:
        longest = "one at a time" if flow.longest == 1 else f"up to {flow.longest:,} in a row"
        text = f"{lost:,} of {flow.sent:,} packets lost, {longest}: too few for a pattern"
    elif pattern is LossPattern.PERIODIC and (flow.burst_s or 0.0) > (_period_s(flow) or 0.0) / 2:
        waves = f"waves every {_time(_period_s(flow) or 0.0)}"
        text = f"{share} lost, in {waves}, up to {flow.longest:,} packets in a row"
    elif pattern is LossPattern.PERIODIC:
        text = f"{_bursts(flow)} every {_time(_period_s(flow) or 0.0)} ({share} lost)"
    elif pattern is LossPattern.RANDOM:
        text = f"{share} at random"
    elif pattern is LossPattern.EVEN:
        text = f"{share}, more evenly spread than at random: a queue that stays full"
    elif flow.burst_interval_s is None and 2 * flow.longest < lost:
        text = f"{share} lost all the time, up to {flow.longest:,} packets in a row"
    elif flow.burst_interval_s is None:
        text = f"one burst of {lost:,} packets in {_time(flow.burst_s or 0.0)} ({share} lost)"
    else:
        text = f"{_bursts(flow)} at irregular times, {_time(flow.burst_interval_s[1])} apart (median; {share} lost)"
    return text


def _bursts(flow: FlowLosses) -> str:
    low, median, high = flow.burst_packets or (1, 1, 1)
    if high == 1:
        return "single packets"
    return (
        f"bursts of {median:,}" if low == high else f"bursts of {median:,} (10th to 90th percentile: {low:,}-{high:,})"
    )


def _one_in(part: int, whole: int) -> str:
    """Return a share as "1 in 1,000", or in percent where it is large."""
    if part * 10 > whole or not part:
        return f"{100 * part / max(1, whole):.1f} %"
    each = float(f"{whole / part:.3g}")
    return f"1 in {each:g}" if each < 1000 else f"1 in {each:,.0f}"


def _time(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
