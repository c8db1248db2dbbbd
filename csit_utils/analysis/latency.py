"""Latency histograms: decoding, merging, and latency by percentile."""

import base64
import binascii
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from resources.libraries.python.unpacking import UnpackError, inflate

Counts = npt.NDArray[np.int64]
_LARGEST_BYTES = 16 * 1024 * 1024
"""Upper bound of an unpacked histogram, against archive bombs; real ones have about 10 kB."""
_MAX_RATIO = 1032
"""The most bytes that zlib unpacks from one."""
_KEPT = 256
"""Decoded histograms, of some kB each, as many as a test with 16 service instances has: each is in several tables and
figures."""
_KEPT_SUMS = 32
"""Merged histograms, as many as a page of a test has of loads and directions, in its table and its figure. A key holds
the encoded histograms of all instances, of up to some 10 kB: all keys have 5 MB for 16 instances, in each process."""
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


@dataclass(frozen=True, eq=False)
class Histogram:
    """The counts of an HDR histogram that are not 0, a few hundred of some 20,000."""

    half_bits: int
    """Binary logarithm of the number of counts per doubling of the value."""
    unit_bits: int
    """Binary logarithm of the resolution of the smallest values."""
    places: Counts
    """Indexes of the counts, ascending."""
    counts: Counts

    @property
    def total(self) -> int:
        """Number of samples."""
        return int(self.cumulated[-1]) if len(self.cumulated) else 0

    @cached_property
    def cumulated(self) -> Counts:
        """Number of samples up to each of the places."""
        return np.cumsum(self.counts)

    @cached_property
    def lasts(self) -> Counts:
        """The largest values that are counted at the places: a count covers all up to the first value of the next."""
        return self.firsts(self.places + 1) - 1

    def firsts(self, places: Counts) -> Counts:
        """Return the smallest values that are counted at indexes."""
        doublings = np.maximum((places >> self.half_bits) - 1, 0)
        values: Counts = (places - (doublings << self.half_bits)) << (doublings + self.unit_bits)
        return values

    def place(self, value: int) -> int:
        """Return the index at which a value is counted."""
        return _place(value, self.half_bits, self.unit_bits)


def _place(value: int, half_bits: int, unit_bits: int) -> int:
    doublings = max(0, value.bit_length() - unit_bits - half_bits - 1)
    return (doublings << half_bits) + (value >> (doublings + unit_bits))


def histogram_of(counted: HdrHistogram) -> Histogram:
    """Return the counts of a histogram of the library."""
    half_bits, unit_bits = int(counted.sub_bucket_half_count_magnitude), int(counted.unit_magnitude)
    # The range of a histogram is far wider than its values.
    largest = _place(int(counted.max_value), half_bits, unit_bits)
    every = np.ctypeslib.as_array(counted.counts)[: largest + 1]
    places = np.flatnonzero(every != 0)  # of booleans, which takes a fifth of the time
    return Histogram(half_bits, unit_bits, places, every[places].astype(np.int64))


def merge(encoded: Iterable[str]) -> Histogram | None:
    """Return the sum of all decodable histograms; None if there is none, or all are empty."""
    texts = tuple(encoded)
    # Those of single instances are kept by `_decode`, and would displace the sums.
    merged = _decode(texts[0]) if len(texts) == 1 else _merged(texts)
    return merged if merged is not None and merged.total > 0 else None


@lru_cache(_KEPT_SUMS)
def _merged(encoded: tuple[str, ...]) -> Histogram | None:
    found = [decoded for text in encoded if (decoded := _decode(text)) is not None]
    return _sum(found) if found else None


def _sum(histograms: Sequence[Histogram]) -> Histogram:
    """Sum in the resolution of the first."""
    first = histograms[0]
    places, where = np.unique(np.concatenate([_places_in(first, each) for each in histograms]), return_inverse=True)
    counts = np.zeros(len(places), np.int64)
    np.add.at(counts, where, np.concatenate([each.counts for each in histograms]))
    return Histogram(first.half_bits, first.unit_bits, places, counts)


def _places_in(other: Histogram, each: Histogram) -> Counts:
    if (each.half_bits, each.unit_bits) == (other.half_bits, other.unit_bits):
        return each.places
    return np.array([other.place(value) for value in each.firsts(each.places).tolist()], np.int64)


@lru_cache(_KEPT)
def _decode(text: str) -> Histogram | None:
    try:
        packed = base64.b64decode(text, validate=True)
        if len(packed) > _LARGEST_BYTES // _MAX_RATIO:
            inflate(packed[8:], _LARGEST_BYTES)
        decoded = HdrHistogram.decode(text)
        # Each refers to the other, with its 200 kB of counts, until the next collection of garbage.
        decoded.encoder = None
        return histogram_of(decoded)
    except (
        binascii.Error,
        UnpackError,
        zlib.error,
        HdrCookieException,
        HdrHistogramSettingsException,
        HdrLengthException,
        IndexError,
        OverflowError,
        ValueError,
    ):
        return None


def rescaled(histogram: Histogram, value_of: Callable[[int], int], longest: int) -> HdrHistogram | None:
    """Return a histogram with converted values, as in another unit; None if one exceeds `longest`."""
    made = HdrHistogram(1, longest, _DIGITS)
    for value, count in zip(histogram.lasts.tolist(), histogram.counts.tolist(), strict=True):
        if not made.record_value(value_of(value), count):
            return None
    return made


def curve(histogram: Histogram, per_decade: int = POINTS_PER_DECADE) -> LatencyCurve:
    """Return latency at quantiles spaced evenly on the axis 1 / (1 - q), as far as the number of samples permits.

    With 1,000 samples there is no 99.99th percentile: the curve ends at the largest value.
    """
    total = histogram.total
    quantiles = _quantiles(total, per_decade)
    return LatencyCurve(total, quantiles, tuple(_at(histogram, quantiles)))


@lru_cache(_KEPT)
def _quantiles(total: int, per_decade: int) -> tuple[float, ...]:
    """Quantiles of a curve of so many samples; curves of one report have few numbers of them."""
    reach = np.arange(0, np.log10(max(total, 2)), 1 / per_decade)
    return (*(1 - 10.0**-reach).tolist(), 1.0)


def percentiles(histogram: Histogram) -> Percentiles:
    """Return the percentiles of the latency tables."""
    p50, p90, p99, p999, largest = _at(histogram, (0.5, 0.9, 0.99, 0.999, 1.0))
    lowest = int(histogram.firsts(histogram.places[:1])[0])
    return Percentiles(histogram.total, lowest, p50, p90, p99, p999, largest)


def _at(histogram: Histogram, quantiles: tuple[float, ...]) -> list[int]:
    """For each share `q` the smallest value that at least this share of samples does not exceed.

    The library counts from the start for every percentile; here counts are accumulated once.
    """
    wanted = _ranks(histogram.total, quantiles)
    found: list[int] = histogram.lasts[np.searchsorted(histogram.cumulated, wanted)].tolist()
    return found


@lru_cache(_KEPT)
def _ranks(total: int, quantiles: tuple[float, ...]) -> npt.NDArray[np.float64]:
    """Numbers of the samples at quantiles of so many, counted from 1."""
    # The tolerance keeps a product such as 0.9 * 10 = 9.000000000000002 from selecting the tenth sample.
    return np.maximum(1, np.ceil(np.asarray(quantiles) * total - 1e-9))
