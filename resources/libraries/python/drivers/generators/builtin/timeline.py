"""What became of the numbered frames of a flow: counts and delays in bins of time, and gaps. Pure."""

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin.wire import TimelineReport
from resources.libraries.python.drivers.generators.losses import departures, loss_periods

_MOST_GAPS = 1000
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

    Args:
        arrived_ns: When each frame came, by number, 0 where it did not.
        sent_ns: When each left, 0 where that is not known.
        due_ns: When the first one was due, and the time between two: for flows of which nothing arrived.
        bin_ns: Length of a bin.
        sent: Frames that were sent.
        frames: Frames that came, duplicates included.
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
    gaps, more = _gaps(came, arrived_ns, left_ns)
    unique = int(came.sum())
    return TimelineReport(
        begin_ns=begin_ns,
        sent=np.bincount(places, minlength=bins).tolist(),
        received=received.tolist(),
        delay_ns=[round(total / count) if count else None for total, count in zip(total_ns, received, strict=True)],
        worst_ns=[int(worst) if count else None for worst, count in zip(worst_ns, received, strict=True)],
        gaps=gaps,
        more_gaps=more,
        duplicates=max(0, frames - unique),
        arrivals_ns=(int(arrived_ns[came].min()), int(arrived_ns[came].max())) if unique else None,
    )


def _gaps(
    came: NDArray[np.bool_], arrived_ns: NDArray[np.int64], left_ns: NDArray[np.int64]
) -> tuple[list[tuple[int, int, int, int | None]], int]:
    """Runs of lost frames in order, the largest ones, and the number of all others."""
    firsts, lengths = loss_periods(came)
    kept = np.sort(np.argsort(-lengths, kind="stable")[:_MOST_GAPS])
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
