"""Latency histograms: decoding, merging, and the curve of latency by percentile."""

import base64
import binascii
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

_LARGEST_BYTES = 16 * 1024 * 1024
"""A real histogram unpacks to some 10 kB; one that unpacks to more than this is an attack on memory."""
_DIGITS = 3
"""Significant ones of a histogram."""
HALF_LOADS = ("PDR50", "SOAK50")
"""Labels of half of the rate that latency loads are shares of."""
POINTS_PER_DECADE = 16
"""Of a curve, along the axis 1 / (1 - q)."""


@dataclass(frozen=True)
class Curve:
    """Latency by percentile."""

    count: int
    quantiles: tuple[float, ...]
    """Ascending, in [0, 1]; the last one is 1."""
    values_ns: tuple[int, ...]


@dataclass(frozen=True)
class Percentiles:
    """The usual figures of a histogram, in nanoseconds."""

    count: int
    min_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int


def merge(encoded: Iterable[str]) -> HdrHistogram | None:
    """One histogram of all that can be decoded; None where nothing can, or where nothing was counted."""
    merged: HdrHistogram | None = None
    for text in encoded:
        decoded = _decode(text)
        if decoded is None:
            continue
        if merged is None:
            merged = decoded
        else:
            merged.add(decoded)
    return merged if merged is not None and merged.get_total_count() > 0 else None


def _decode(text: str) -> HdrHistogram | None:
    try:
        packed = base64.b64decode(text, validate=True)[8:]
        unpacker = zlib.decompressobj()
        unpacker.decompress(packed, _LARGEST_BYTES)
        if unpacker.unconsumed_tail:
            return None
        return HdrHistogram.decode(text)
    except (
        binascii.Error,
        zlib.error,
        HdrCookieException,
        HdrHistogramSettingsException,
        HdrLengthException,
        IndexError,
        OverflowError,
        ValueError,
    ):
        return None


def rescaled(histogram: HdrHistogram, value_of: Callable[[int], int], longest: int) -> HdrHistogram | None:
    """The same counts at other values, as in another unit; None where one is beyond `longest`.

    The histogram's own iterator steps through all its empty buckets, which takes some seventy times as long.
    """
    made = HdrHistogram(1, longest, _DIGITS)
    counts = np.ctypeslib.as_array(histogram.counts)
    for place in np.flatnonzero(counts).tolist():
        value = histogram.get_highest_equivalent_value(histogram.get_value_from_index(place))
        if not made.record_value(value_of(value), int(counts[place])):
            return None
    return made


def curve(histogram: HdrHistogram, per_decade: int = POINTS_PER_DECADE) -> Curve:
    """Latency at quantiles that lie evenly on the axis 1 / (1 - q), as far as the number of samples carries.

    With 1,000 samples there is no 99.99th percentile: the curve ends at the largest value.
    """
    total = int(histogram.get_total_count())
    reach = np.arange(0, np.log10(max(total, 2)), 1 / per_decade)
    quantiles = [*(1 - 10.0**-reach).tolist(), 1.0]
    return Curve(total, tuple(quantiles), tuple(_at(histogram, quantiles)))


def percentiles(histogram: HdrHistogram) -> Percentiles:
    """The figures of the latency tables."""
    p50, p90, p99, p999, largest = _at(histogram, (0.5, 0.9, 0.99, 0.999, 1.0))
    lowest = int(histogram.get_min_value())
    return Percentiles(int(histogram.get_total_count()), lowest, p50, p90, p99, p999, largest)


def _at(histogram: HdrHistogram, quantiles: Sequence[float]) -> list[int]:
    """The smallest value that at least the share `q` of all samples does not exceed.

    The histogram's own look-up counts from the start for every percentile; here the counts are added up once.
    """
    cumulated = np.cumsum(np.ctypeslib.as_array(histogram.counts).astype(np.int64))
    # The tiny amount keeps a product such as 0.9 * 10 = 9.000000000000002 from asking for the tenth sample.
    wanted = np.maximum(1, np.ceil(np.asarray(quantiles) * cumulated[-1] - 1e-9))
    places = np.searchsorted(cumulated, wanted)
    # A count is of all values up to the first one of the next count.
    after = places + 1
    half = int(histogram.sub_bucket_half_count)
    doublings = np.maximum((after >> int(histogram.sub_bucket_half_count_magnitude)) - 1, 0)
    firsts = (after - doublings * half) << (doublings + int(histogram.unit_magnitude))
    return [int(value) - 1 for value in firsts]
