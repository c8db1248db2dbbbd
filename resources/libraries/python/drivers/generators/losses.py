"""Loss, reordering and duplicates of the numbered packets of a flow: from what arrived to figures. Pure.

Reordering as defined by RFC 4737 (reordered ratio, extent, n-reordering) and RFC 5236 (reorder density, reorder
buffer-occupancy density); loss periods and distances as by RFC 3357; bursts by the gap criterion of RFC 3611.
"""

import math
import sys
from dataclasses import dataclass, field
from functools import cache, partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_MAX_PERIODS = 500
"""Loss periods that the report of a flow lists."""
_BURST_GAP = 16
"""Fewer packets than this between two losses belong to one burst: Gmin of RFC 3611."""
_EXACT_BITS = 6
_MAX_DEGREE = 64
"""Higher degrees of n-reordering count as this one."""
_TIME_BINS = 1 << 20
_PACKETS_PER_BIN = 4
"""Shorter periods than two bins belong to one burst, see `_BURST_GAP`."""
_FEWEST_PERIODS = 5
"""A period is reported that fits into the trial this often."""
_FEWEST_LOSSES = 10
_MAX_EXACT = 200_000
"""Loss periods up to which their distribution is computed; that of more is normal, and computing it takes long."""
_FALSE_ALARM = 1e-4
_PEAK = 0.4
"""A harmonic series begins with the first peak of this share of the highest one."""
_WINDOWS, _FEWEST_WINDOWS, _LOSSES_PER_WINDOW = 256, 8, 5

Histogram = list[tuple[int, int]]
"""Values and how often each occurs, ascending. Values beyond 64 are lower edges of bins, 32 to a doubling."""


@dataclass(frozen=True, slots=True)
class NumberedArrivals:
    """Arrivals of the numbered packets of one flow."""

    came: NDArray[np.bool_]
    """Whether each packet arrived, by number."""
    stamped: NDArray[np.int64]
    """Numbers of packets whose departure is known, ascending."""
    stamps_ns: NDArray[np.int64]
    """When these left, since the epoch."""
    duplicates: int
    late_numbers: NDArray[np.int64]
    """Packets that arrived after one with a higher number, in order of arrival; possibly not all."""
    late_orders: NDArray[np.int64]
    """Packets that had arrived before each of them, duplicates not counted."""
    late: int
    """All such packets."""
    elsewhere: int = 0
    """Packets of other receive queues than the first one: their order is unknown."""
    foreign: int = 0
    """Packets of other flows or earlier trials."""


@dataclass(frozen=True, slots=True)
class OrderReport:
    """See `model.measurements.trial.Reordering`."""

    reordered: int | None
    extents: Histogram = field(default_factory=list)
    degrees: Histogram = field(default_factory=list)
    displacements: Histogram = field(default_factory=list)
    buffer_occupancy: Histogram = field(default_factory=list)
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class LossReport:
    """See `model.measurements.trial.FlowLosses`."""

    sent: int
    received: int
    duplicates: int
    duration_s: float
    loss_periods: int
    longest: int
    run_lengths: Histogram
    distances: Histogram
    listed: list[tuple[int, int, int]]
    longest_s: float
    runs_z: float | None
    dispersion: float | None
    dispersion_z: float | None
    bursts: int
    burst_packets: tuple[int, int, int] | None
    burst_s: float | None
    burst_interval_s: tuple[float, float, float] | None
    period_s: float | None
    period_share: float | None
    order: OrderReport
    foreign: int = 0


def count_losses(arrivals: NumberedArrivals, due_ns: tuple[int, float], listed: int = _MAX_PERIODS) -> LossReport:
    """Compute the figures of a flow.

    `arrivals`: Of the packets that were sent.
    `due_ns`: When the first packet was due, and the time between two.
    `listed`: Maximum number of loss periods that are listed.
    """
    came, sent = arrivals.came, len(arrivals.came)
    left_ns = partial(departures, stamped=arrivals.stamped, stamps_ns=arrivals.stamps_ns, due_ns=due_ns)
    begin_ns, last_ns = left_ns(np.array((0, max(0, sent - 1)))).tolist()
    firsts, lengths = loss_periods(came)
    received = int(came.sum())
    offsets_ns = left_ns(firsts) - begin_ns
    # a loss period ends when the next packet leaves, or would have left after the last one
    durations_ns = left_ns(firsts + lengths) - begin_ns - offsets_ns
    duration_ns = float(last_ns - begin_ns + due_ns[1]) if sent else 0.0
    distances = firsts[1:] - (firsts + lengths)[:-1]
    bursts, burst_packets, burst_s, burst_interval_s = _bursts(firsts, lengths, offsets_ns, durations_ns)
    period_s, period_share = _period(left_ns(np.flatnonzero(~came)) - begin_ns, sent, duration_ns) or (None, None)
    dispersion, dispersion_z = _dispersion(came) or (None, None)
    return LossReport(
        sent=sent,
        received=received,
        duplicates=arrivals.duplicates,
        duration_s=duration_ns / 1e9,
        loss_periods=len(firsts),
        longest=int(lengths.max(initial=0)),
        run_lengths=histogram(lengths),
        distances=histogram(distances),
        listed=list(zip(*(column[:listed].tolist() for column in (offsets_ns, firsts, lengths)), strict=True)),
        longest_s=int(durations_ns.max(initial=0)) / 1e9,
        runs_z=runs_z(came),
        dispersion=dispersion,
        dispersion_z=dispersion_z,
        bursts=bursts,
        burst_packets=burst_packets,
        burst_s=burst_s,
        burst_interval_s=burst_interval_s,
        period_s=period_s,
        period_share=period_share,
        order=_order(arrivals),
        foreign=arrivals.foreign,
    )


def departures(
    numbers: NDArray[np.int64], stamped: NDArray[np.int64], stamps_ns: NDArray[np.int64], due_ns: tuple[int, float]
) -> NDArray[np.int64]:
    """When packets left: by their time stamps; between two stamped packets by the schedule and the lags of these.

    `numbers`: Of the packets, shape (n,).
    `stamped`: Numbers of those with time stamps, ascending.
    `stamps_ns`: Their departures, since the epoch.
    `due_ns`: When the first packet was due, and the time between two.
    """

    def scheduled(those: NDArray[np.int64]) -> NDArray[np.int64]:
        due: NDArray[np.int64] = due_ns[0] + np.rint(those * due_ns[1]).astype(np.int64)
        return due

    if not len(stamped):
        return scheduled(numbers)
    # Lags against the schedule are small numbers, which floating point has exactly.
    lags = (stamps_ns - scheduled(stamped)).astype(np.float64)
    return scheduled(numbers) + np.rint(np.interp(numbers, stamped, lags)).astype(np.int64)


def loss_periods(came: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First numbers and lengths of the runs of lost packets."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], ~came, [False])).astype(np.int8)))
    firsts, ends = edges[::2], edges[1::2]
    return firsts, ends - firsts


def histogram(values: NDArray[np.int64]) -> Histogram:
    """Count values by bins as `Histogram` has them; negative ones by their magnitude."""
    if not len(values):
        return []
    sizes = np.abs(values).astype(np.int64)
    shift = np.maximum(0, np.frexp(sizes.astype(np.float64))[1] - _EXACT_BITS)
    edges = np.where(sizes > 1 << _EXACT_BITS, sizes >> shift << shift, sizes) * np.sign(values)
    found, counts = np.unique(edges, return_counts=True)
    return list(zip(found.tolist(), counts.tolist(), strict=True))


def runs_z(came: NDArray[np.bool_]) -> float | None:
    """By how much loss periods are more than of independent losses; < 0: fewer. See `FlowLosses.runs_z`.

    Of so many lost and arrived packets in random order the number of loss periods is hypergeometric (Wald and
    Wolfowitz 1940): the lost ones choose among the gaps before, between and after those that arrived. A normal
    approximation of it calls one in 400 flows with few losses clustered at four standard deviations.

    None where fewer than 10 packets were lost or arrived.
    """
    arrived, lost = int(came.sum()), int((~came).sum())
    if min(arrived, lost) < _FEWEST_LOSSES:
        return None
    periods = int(np.count_nonzero(came[1:] < came[:-1])) + int(not came[0])
    most = min(lost, arrived + 1)
    if most > _MAX_EXACT:
        mean = lost * (arrived + 1) / len(came)
        return (periods - mean) / math.sqrt(mean * arrived * (lost - 1) / len(came) / (len(came) - 1))
    counts = np.arange(1.0, most)
    ratios = np.log((arrived + 1 - counts) / (counts + 1)) + np.log((lost - counts) / counts)
    logarithms = np.concatenate(((0.0,), np.cumsum(ratios)))
    shares = np.exp(logarithms - logarithms.max())
    fewer, more = (float(tail.sum() / shares.sum()) for tail in (shares[:periods], shares[periods - 1 :]))
    return _deviate(fewer) if fewer < more else -_deviate(more)


def _deviate(probability: float) -> float:
    """The normal deviate that as few are below; -37.5 at least."""
    return NormalDist().inv_cdf(min(max(probability, sys.float_info.min), 0.5))


def _dispersion(came: NDArray[np.bool_]) -> tuple[float, float] | None:
    """Index of dispersion of losses in windows of packets, 1 of independent ones; its standard deviations from 1."""
    lost = int((~came).sum())
    windows = min(_WINDOWS, lost // _LOSSES_PER_WINDOW)
    if windows < _FEWEST_WINDOWS or lost == len(came):
        return None
    size = len(came) // windows
    counts = np.count_nonzero(~came[: windows * size].reshape(windows, size), axis=1)
    mean = float(counts.mean())
    expected = mean * (1 - mean / size)
    if expected <= 0:
        return None
    index = float(counts.var(ddof=1)) / expected
    # Chi-squared over its degrees of freedom, whose cube root is nearly normal (Wilson and Hilferty 1931).
    variance = 2 / (9 * (windows - 1))
    return index, (math.cbrt(index) - 1 + variance) / math.sqrt(variance)


def _bursts(
    firsts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    offsets_ns: NDArray[np.int64],
    durations_ns: NDArray[np.int64],
) -> tuple[int, tuple[int, int, int] | None, float | None, tuple[float, float, float] | None]:
    """Number of bursts; percentiles of their lost packets; median duration; percentiles of times between their starts.

    The percentiles are the 10th, 50th and 90th; those of lost packets are over lost packets, not over bursts.
    """
    if not len(firsts):
        return 0, None, None, None
    begins = np.flatnonzero(np.concatenate(([True], firsts[1:] - (firsts + lengths)[:-1] >= _BURST_GAP)))
    packets = np.add.reduceat(lengths, begins)
    lasts = np.concatenate((begins[1:], [len(firsts)])) - 1
    spans_ns = offsets_ns[lasts] + durations_ns[lasts] - offsets_ns[begins]
    between = np.diff(offsets_ns[begins]) / 1e9
    ordered = np.sort(packets)
    # of the bursts that lost packets were in: a few large ones count by what they lose
    low, median, high = ordered[np.searchsorted(np.cumsum(ordered), packets.sum() * np.array((0.1, 0.5, 0.9)))]
    return (
        len(begins),
        (int(low), int(median), int(high)),
        float(np.median(spans_ns)) / 1e9,
        tuple(np.percentile(between, (10, 50, 90), method="nearest").tolist()) if len(between) else None,
    )


def _period(offsets_ns: NDArray[np.int64], sent: int, duration_ns: float) -> tuple[float, float] | None:
    """Period of losses over time, and which share of them follows it, in [0, 1].

    A peak of the periodogram stands out from the median of its surroundings, one octave to either side, by more than
    noise does in all frequencies together with a probability of 1e-4. The share is the length of the mean phasor of the
    losses, from their exact times: shorter periods than two bins alias, and have none.

    `offsets_ns`: when each lost packet left, after the first packet.
    """
    lost = len(offsets_ns)
    if lost < _FEWEST_LOSSES or duration_ns <= 0 or lost == sent:
        return None
    bins = max(16, min(_TIME_BINS, sent // _PACKETS_PER_BIN))
    places = np.minimum(bins - 1, (offsets_ns * (bins / duration_ns)).astype(np.int64))
    counts = np.bincount(np.maximum(0, places), minlength=bins).astype(np.float64)
    if counts.max() == counts.min():
        return None
    spectrum = np.abs(np.fft.rfft(counts - counts.mean()))
    power = spectrum**2
    power[:_FEWEST_PERIODS] = 0.0
    limit = math.log(len(power) / _FALSE_ALARM)

    @cache
    def noise(half_octave: int) -> float:
        centre = 2 ** (half_octave / 2)
        around = power[max(_FEWEST_PERIODS, int(centre / 2)) : int(2 * centre) + 1]
        return max(float(np.median(around)) / math.log(2), 1e-12)

    for k in np.flatnonzero(power >= _PEAK * power.max()).tolist():
        if power[k] != max(power[k - 1 : k + 2]) or power[k] <= limit * noise(round(2 * math.log2(k))):
            continue
        near = power[k - 1 : k + 2]
        frequency = float(np.dot(near, np.arange(k - 1, k - 1 + len(near))) / near.sum())
        phases = offsets_ns * (2 * math.pi * frequency / duration_ns)
        return duration_ns / 1e9 / frequency, math.hypot(float(np.cos(phases).mean()), float(np.sin(phases).mean()))
    return None


def _order(arrivals: NumberedArrivals) -> OrderReport:
    if arrivals.elsewhere:
        text = f"{arrivals.elsewhere} packets arrived in other receive queues than the first one"
        return OrderReport(None, unknown=text)
    if not arrivals.late:
        received = int(arrivals.came.sum())
        same = [(0, received)] if received else []
        return OrderReport(0, displacements=same, buffer_occupancy=same)
    if arrivals.late > len(arrivals.late_numbers):
        text = f"the order of {len(arrivals.late_numbers)} of {arrivals.late} reordered packets was kept"
        return OrderReport(arrivals.late, unknown=text)
    numbers = arrival_sequence(arrivals)
    highest = np.maximum.accumulate(numbers)
    late = arrivals.late_orders
    return OrderReport(
        reordered=arrivals.late,
        extents=histogram(late - np.searchsorted(highest, numbers[late], side="right")),
        degrees=histogram(_degrees(numbers, late)),
        displacements=histogram(_displacements(numbers)),
        buffer_occupancy=histogram(_buffer_occupancy(numbers)),
    )


def arrival_sequence(arrivals: NumberedArrivals) -> NDArray[np.int64]:
    """Numbers of the packets in the order in which they arrived, duplicates left out."""
    in_order = arrivals.came.copy()
    in_order[arrivals.late_numbers] = False
    places = np.ones(int(arrivals.came.sum()), dtype=np.bool_)
    places[arrivals.late_orders] = False
    numbers = np.empty(len(places), dtype=np.int64)
    numbers[places] = np.flatnonzero(in_order)
    numbers[arrivals.late_orders] = arrivals.late_numbers
    return numbers


def _degrees(numbers: NDArray[np.int64], late: NDArray[np.int64]) -> NDArray[np.int64]:
    """Consecutive packets directly before each late one with higher numbers: n-reordering, to a limit."""
    degrees = np.zeros(len(late), dtype=np.int64)
    going = np.arange(len(late))
    for degree in range(1, _MAX_DEGREE + 1):
        going = going[late[going] >= degree]
        going = going[numbers[late[going] - degree] > numbers[late[going]]]
        if not len(going):
            break
        degrees[going] = degree
    return degrees[degrees > 0]


def _displacements(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places by which each packet arrived later (> 0) or earlier than in order, lost packets left out."""
    ranks = np.empty(len(numbers), dtype=np.int64)
    ranks[np.argsort(numbers, kind="stable")] = np.arange(len(numbers))
    return np.arange(len(numbers)) - ranks


def _buffer_occupancy(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Packets that a buffer restoring the order holds after each arrival, lost packets left out."""
    complete = np.maximum.accumulate(np.argsort(numbers, kind="stable"))
    places = np.arange(len(numbers))
    return places + 1 - np.searchsorted(complete, places, side="right")
