"""From the server's histograms of microseconds to a latency in nanoseconds. Pure.

A server's HDR histogram holds whole microseconds, rounded down, with three significant digits. Each count is taken for
the middle of its microsecond: so a value is right within 0.5 us or 0.1 %, whichever is more, on top of what the time
stamps of the server are worth. Where it has none, there are its buckets of one digit (10, 20, … 90, 100, …; 0 is all
below 10 us): a percentile is then given as the upper end of its bucket where that is at most twice the lower end, else
not at all, and neither minimum, mean nor maximum is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from resources.libraries.python.drivers.generators.trex.wire import ProbeLatency
from resources.libraries.python.errors import CsitError

_LONGEST_NS = 60_000_000_000
_DIGITS = 3
_NS_PER_US = 1000
_FIRST_BOUND_US = 10
_PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_UNREADABLE = (HdrCookieException, HdrHistogramSettingsException, HdrLengthException, ValueError)
BUCKETS = "latency by buckets of one digit"


@dataclass(frozen=True, slots=True)
class Values:
    """Latency of one flow in nanoseconds; None where it is not known."""

    count: int
    min_ns: int | None
    mean_ns: float | None
    percentiles_ns: tuple[int | None, int | None, int | None, int | None]
    """50, 90, 99, 99.9."""
    max_ns: int | None
    histogram: str
    """HDR histogram of nanoseconds, V2 compressed, base64."""


def merge(groups: Sequence[ProbeLatency]) -> Values | None:
    """Latency of all probes of a flow, of any size; None when none came back.

    Raises:
        CsitError: A histogram cannot be read.
    """
    if all(group.histogram is not None for group in groups):
        return _of_histograms([group.histogram or "" for group in groups])
    return _of_buckets(groups)


def _of_histograms(encoded: Iterable[str]) -> Values | None:
    ours = HdrHistogram(1, _LONGEST_NS, _DIGITS)
    for text in encoded:
        try:
            theirs = HdrHistogram.decode(text)
        except _UNREADABLE as error:
            raise CsitError(f"TRex gave a latency histogram that cannot be read: {text[:60]}") from error
        if not theirs.get_total_count():
            continue
        for item in theirs.get_recorded_iterator():
            middle_ns = item.value_iterated_to * _NS_PER_US + _NS_PER_US // 2
            ours.record_value(min(middle_ns, _LONGEST_NS), item.count_added_in_this_iter_step)
    if not ours.get_total_count():
        return None
    p50, p90, p99, p999 = (int(ours.get_value_at_percentile(each)) for each in _PERCENTILES)
    return Values(
        count=ours.get_total_count(),
        min_ns=int(ours.get_min_value()),
        mean_ns=float(ours.get_mean_value()),
        percentiles_ns=(p50, p90, p99, p999),
        max_ns=int(ours.get_max_value()),
        histogram=ours.encode().decode(),
    )


def _of_buckets(groups: Iterable[ProbeLatency]) -> Values | None:
    counts: dict[int, int] = {}
    for group in groups:
        for bound, count in group.buckets.items():
            counts[bound] = counts.get(bound, 0) + count
    total = sum(counts.values())
    if not total:
        return None
    ours = HdrHistogram(1, _LONGEST_NS, 1)
    for bound, count in counts.items():
        if count:
            ours.record_value(_upper_us(bound) * _NS_PER_US, count)
    p50, p90, p99, p999 = (_percentile_ns(counts, total, each) for each in _PERCENTILES)
    return Values(total, None, None, (p50, p90, p99, p999), None, ours.encode().decode())


def _percentile_ns(counts: Mapping[int, int], total: int, percentile: float) -> int | None:
    below = 0
    for bound in sorted(counts):
        below += counts[bound]
        if below * 100 >= percentile * total:
            return _upper_us(bound) * _NS_PER_US if _upper_us(bound) <= 2 * bound else None
    return None


def _upper_us(bound: int) -> int:
    """The upper end of the bucket with this lower end."""
    width = _FIRST_BOUND_US
    while bound >= 10 * width:
        width *= 10
    return bound + width
