"""Latency histograms: decoding, merging, and latency by percentile."""

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from resources.libraries.python.unpacking import UnpackError, inflate

_LARGEST_BYTES = 16 * 1024 * 1024
"""Upper bound of an unpacked histogram, against archive bombs; real ones have about 10 kB."""
_KEPT = 16
"""Decoded histograms, as many as a test with two service instances has: each is in several tables and figures."""
_DIGITS = 3
"""Significant digits of a histogram."""
HALF_LOADS = ("PDR50", "SOAK50")
"""Labels of the latency load at 50 % of the rate."""
POINTS_PER_DECADE = 16
"""Points of a curve, on the axis 1 / (1 - q)."""


@dataclass(frozen=True)
class LatencyCurve:
    """Latency by percentile."""

    count: int
    quantiles: tuple[float, ...]
    """Ascending, in [0, 1]; the last one is 1."""
    values_ns: tuple[int, ...]


@dataclass(frozen=True)
class Percentiles:
    """Percentiles of a histogram in nanoseconds."""

    count: int
    min_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int


def merge(encoded: Iterable[str]) -> HdrHistogram | None:
    """Return the sum of all decodable histograms; None if there is none, or all are empty."""
    found = [decoded for text in encoded if (decoded := _decode(text)) is not None]
    if not found:
        return None
    merged = found[0]
    if len(found) > 1:
        merged = HdrHistogram(merged.lowest_trackable_value, merged.highest_trackable_value, merged.significant_figures)
        for each in found:
            merged.add(each)
    return merged if merged.get_total_count() > 0 else None


@lru_cache(_KEPT)
def _decode(text: str) -> HdrHistogram | None:
    try:
        inflate(base64.b64decode(text, validate=True)[8:], _LARGEST_BYTES)
        return HdrHistogram.decode(text)
    except (
        binascii.Error,
        UnpackError,
        HdrCookieException,
        HdrHistogramSettingsException,
        HdrLengthException,
        IndexError,
        OverflowError,
        ValueError,
    ):
        return None


def rescaled(histogram: HdrHistogram, value_of: Callable[[int], int], longest: int) -> HdrHistogram | None:
    """Return a histogram with converted values, as in another unit; None if one exceeds `longest`.

    The iterator of the library visits all empty buckets, which takes about 70 times as long.
    """
    made = HdrHistogram(1, longest, _DIGITS)
    counts = np.ctypeslib.as_array(histogram.counts)
    for place in np.flatnonzero(counts).tolist():
        value = histogram.get_highest_equivalent_value(histogram.get_value_from_index(place))
        if not made.record_value(value_of(value), int(counts[place])):
            return None
    return made


def curve(histogram: HdrHistogram, per_decade: int = POINTS_PER_DECADE) -> LatencyCurve:
    """Return latency at quantiles spaced evenly on the axis 1 / (1 - q), as far as the number of samples permits.

    With 1,000 samples there is no 99.99th percentile: the curve ends at the largest value.
    """
    total = int(histogram.get_total_count())
    reach = np.arange(0, np.log10(max(total, 2)), 1 / per_decade)
    quantiles = [*(1 - 10.0**-reach).tolist(), 1.0]
    return LatencyCurve(total, tuple(quantiles), tuple(_at(histogram, quantiles)))


def percentiles(histogram: HdrHistogram) -> Percentiles:
    """Return the percentiles of the latency tables."""
    p50, p90, p99, p999, largest = _at(histogram, (0.5, 0.9, 0.99, 0.999, 1.0))
    lowest = int(histogram.get_min_value())
    return Percentiles(int(histogram.get_total_count()), lowest, p50, p90, p99, p999, largest)


def _at(histogram: HdrHistogram, quantiles: Sequence[float]) -> list[int]:
    """For each share `q` the smallest value that at least this share of samples does not exceed.

    The library counts from the start for every percentile; here counts are accumulated once.
    """
    cumulated = np.cumsum(np.ctypeslib.as_array(histogram.counts).astype(np.int64))
    # The tolerance keeps a product such as 0.9 * 10 = 9.000000000000002 from selecting the tenth sample.
    wanted = np.maximum(1, np.ceil(np.asarray(quantiles) * cumulated[-1] - 1e-9))
    places = np.searchsorted(cumulated, wanted)
    # A count covers all values up to the first value of the next count.
    after = places + 1
    half = int(histogram.sub_bucket_half_count)
    doublings = np.maximum((after >> int(histogram.sub_bucket_half_count_magnitude)) - 1, 0)
    firsts = (after - doublings * half) << (doublings + int(histogram.unit_magnitude))
    return [int(value) - 1 for value in firsts]
