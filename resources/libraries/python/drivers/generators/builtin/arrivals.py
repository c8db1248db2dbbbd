"""Times of arrival of frames at a port by the kernel's time stamps, and what follows: gaps, delays, bins of time."""

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import kernel
from resources.libraries.python.drivers.generators.builtin.wire import GapReport, LatencyReport, TimelineReport
from resources.libraries.python.drivers.generators.losses import departures, loss_periods
from resources.libraries.python.drivers.host.sockets.packet_ring import PacketRing

MAX_FRAMES = 1 << 17
"""Slots of a ring, 16 MB: frames beyond have no time stamp."""
_SLOT_BYTES = 128


class ArrivalRing(PacketRing):
    """Keeps the time of arrival of each frame of IPv4 at a port, until it is closed.

    The frames are received by whatever serves the port: as they are in a trial, plus the writing of the time.
    """

    def __init__(self, interface: str, frames: int = MAX_FRAMES, program: bytes | None = None) -> None:
        """Open the ring in the present network namespace.

        `frames`: How many can come, at most `MAX_FRAMES`.
        `program`: Classic BPF that chooses frames; None for all.

        Raises:
            CsitError: The kernel refused.
        """
        super().__init__(interface, min(frames, MAX_FRAMES), kernel.ETH_P_IP, _SLOT_BYTES, program)

    def stamps_ns(self) -> NDArray[np.int64]:
        """Return times of arrival so far, ascending, in nanoseconds since the epoch."""
        return np.sort(self.read().stamps_ns)


def gap_report(stamps_ns: NDArray[np.int64]) -> GapReport | None:
    """Return percentiles of the gaps between ascending times of arrival; None for fewer than two."""
    if len(stamps_ns) < 2:
        return None
    p50, p99, p999 = np.percentile(np.diff(stamps_ns), (50, 99, 99.9))
    return GapReport(len(stamps_ns), round(p50), round(p99), round(p999))


_MAX_GAPS = 1000
"""Gaps that a timeline lists."""


def timeline(
    arrived_ns: NDArray[np.int64],
    sent_ns: NDArray[np.int64],
    due_ns: tuple[int, float],
    bin_ns: int,
    *,
    sent: int,
    frames: int,
) -> TimelineReport:
    """Put the frames of a flow into bins by the time at which they left.

    `arrived_ns`: When each frame came, by number, 0 where it did not.
    `sent_ns`: When each left, 0 where that is not known.
    `due_ns`: When the first one was due, and the time between two: for flows of which nothing arrived.
    `frames`: Frames that came, duplicates included.
    """
    arrived_ns, sent_ns = arrived_ns[:sent], sent_ns[:sent]
    stamped = np.flatnonzero(sent_ns > 0)
    left_ns = departures(np.arange(sent), stamped, sent_ns[stamped], due_ns)
    came = arrived_ns > 0
    begin_ns = int(left_ns[0]) if sent else due_ns[0]
    places = np.maximum(0, (left_ns - begin_ns) // bin_ns)
    bins = int(places.max()) + 1 if sent else 0
    received = np.bincount(places[came], minlength=bins)
    delays_ns = np.maximum(0, arrived_ns - left_ns)
    total_ns = np.bincount(places[came], weights=delays_ns[came], minlength=bins)
    worst_ns = np.zeros(bins, dtype=np.int64)
    np.maximum.at(worst_ns, places[came], delays_ns[came])
    arrivals_ns = arrived_ns[came]
    order = np.argsort(arrivals_ns, kind="stable")
    silence_ns = np.zeros(bins, dtype=np.int64)
    np.maximum.at(silence_ns, places[came][order], np.diff(arrivals_ns[order], prepend=begin_ns))
    mean_ns = np.rint(total_ns / np.maximum(1, received)).astype(np.int64)
    counts: list[int] = received.tolist()
    gaps, more = _gaps(came, arrived_ns, left_ns)
    unique = int(came.sum())
    return TimelineReport(
        begin_ns=begin_ns,
        sent=np.bincount(places, minlength=bins).tolist(),
        received=counts,
        delay_ns=[mean if count else None for mean, count in zip(mean_ns.tolist(), counts, strict=True)],
        worst_ns=[worst if count else None for worst, count in zip(worst_ns.tolist(), counts, strict=True)],
        silence_ns=[silence if count else None for silence, count in zip(silence_ns.tolist(), counts, strict=True)],
        gaps=gaps,
        more_gaps=more,
        duplicates=max(0, frames - unique),
        arrivals_ns=(int(arrivals_ns.min()), int(arrivals_ns.max())) if unique else None,
    )


def _gaps(
    came: NDArray[np.bool_], arrived_ns: NDArray[np.int64], left_ns: NDArray[np.int64]
) -> tuple[list[tuple[int, int, int, int | None]], int]:
    """Runs of lost frames in order, the largest ones, and the number of all others."""
    firsts, lengths = loss_periods(came)
    kept = np.sort(np.argsort(-lengths, kind="stable")[:_MAX_GAPS])
    gaps = [
        (
            int(first),
            int(packets),
            int(arrived_ns[first - 1] if first else left_ns[0]),
            int(arrived_ns[first + packets]) if first + packets < len(came) else None,
        )
        for first, packets in zip(firsts[kept], lengths[kept], strict=True)
    ]
    return gaps, len(firsts) - len(kept)


_LONGEST_NS = 60_000_000_000
_DIGITS = 3


def latencies_ns(sent_ns: NDArray[np.int64], received_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Latency of the probes that have both stamps, sorted.

    A negative one (the clock was set in between) is left out.

    `sent_ns`: By probe number, 0 where the kernel gave no stamp, shape (probes,).
    """
    difference = received_ns - sent_ns
    return np.sort(difference[(sent_ns > 0) & (received_ns > 0) & (difference >= 0)])


def latency_report(values_ns: NDArray[np.int64]) -> LatencyReport | None:
    """Percentiles and histogram of sorted latencies; None when there are none.

    Percentiles are samples, not bucket bounds: the smallest sample that the share of samples does not exceed.
    """
    if not len(values_ns):
        return None
    histogram = HdrHistogram(1, _LONGEST_NS, _DIGITS)
    values, counts = np.unique(np.clip(values_ns, 1, _LONGEST_NS), return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record_value(value, count)

    def percentile(per_mille: int) -> int:
        return int(values_ns[-(-per_mille * len(values_ns) // 1000) - 1])

    return LatencyReport(
        min_ns=int(values_ns[0]),
        mean_ns=float(values_ns.mean()),
        p50_ns=percentile(500),
        p90_ns=percentile(900),
        p99_ns=percentile(990),
        p999_ns=percentile(999),
        max_ns=int(values_ns[-1]),
        histogram=histogram.encode().decode(),
    )
