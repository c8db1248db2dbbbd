"""Formatted quantities: three significant digits and a unit. CSV and JSON have raw values."""

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.measures import OF_WORKLOAD, Measure

DASH = "\N{EN DASH}"
"""An unknown value."""
MINUS = "\N{MINUS SIGN}"

_KEPT = 8192
"""Texts of each unit: the same loads and times are on many pages, and several times on each."""
_DECIMAL = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_ENERGY = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"))
_TIME = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def digits3(value: float) -> str:
    """Return three significant digits without an exponent: `0.0312`, `1.24`, `212`, `4120`."""
    if value == 0:
        return "0"
    # Rounding may reach the next decade: 9.996 is 10.0, not 10.00.
    rounded = f"{value:.2e}"
    decimals = 2 - int(rounded[rounded.index("e") + 1 :])
    text = f"{value:.{decimals}f}" if decimals > 0 else f"{float(rounded):.0f}"
    return text.replace("-", MINUS) if value < 0 else text


def _scaled(value: float | None, scales: Sequence[tuple[float, str]], unit: str) -> str:
    if value is None or not math.isfinite(value):
        return DASH
    for factor, prefix in scales:
        # Choose the prefix after rounding: 999,600 is 1.00 M, not 1000 k.
        if abs(value) / factor >= 0.9995:
            return f"{digits3(value / factor)} {prefix}{unit}"
    return f"{digits3(value)} {scales[-1][1]}{unit}"


@lru_cache(_KEPT)
def rate(value_pps: float | None) -> str:
    """Return a packet rate: `212 kpps`."""
    return _scaled(value_pps, _DECIMAL, "pps")


@lru_cache(_KEPT)
def bandwidth(value_bps: float | None) -> str:
    """Return a bandwidth: `1.43 Gbit/s`."""
    return _scaled(value_bps, _DECIMAL, "bit/s")


@lru_cache(_KEPT)
def joules(value: float | None) -> str:
    """Return an energy: `16.4 µJ`."""
    return _scaled(value, _ENERGY, "")


@lru_cache(_KEPT)
def latency(value_ns: float | None) -> str:
    """Return a time from nanoseconds: `36.0 µs`."""
    return _scaled(value_ns, _TIME, "")


@lru_cache(_KEPT)
def seconds(value_s: float | None) -> str:
    """Return a duration: `350 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`."""
    if value_s is None or not math.isfinite(value_s):
        return DASH
    if value_s >= 1 and value_s < 120:
        return f"{value_s:.3g} s"
    if value_s < 1:
        return _scaled(value_s * 1e9, _TIME, "")
    minutes, rest = divmod(round(value_s), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def memory(value_bytes: int | None) -> str:
    """Return an amount of memory: `7.75 GiB`."""
    return DASH if value_bytes is None else f"{digits3(value_bytes / 2**30)} GiB"


@lru_cache(_KEPT)
def percent(ratio: float | None, *, signed: bool = False) -> str:
    """Return a ratio in percent: `85 %`, `0.5 %`; with `signed`, `+15 %`."""
    if ratio is None or not math.isfinite(ratio):
        return DASH
    value = ratio * 100
    size = abs(value)
    text = f"{size:.0f}" if size >= 10 or size == 0 else f"{size:.1f}" if size >= 1 else f"{Decimal(f'{size:.2g}'):f}"
    sign = MINUS if value < 0 and float(text) else "+" if signed and float(text) else ""
    return f"{sign}{text} %"


def common_unit(values_pps: Sequence[float]) -> tuple[float, str]:
    """Return a common divisor and unit for rates shown side by side."""
    largest = max(values_pps, default=0.0)
    for factor, prefix in _DECIMAL:
        if largest / factor >= 0.9995:
            return factor, f"{prefix}pps"
    return 1.0, "pps"


def unit(metric: Metric | Measure, series: Series) -> str | None:
    """Return the unit of a figure: that of its workload, empty for a ratio, None for packets per second."""
    if isinstance(metric, Metric):
        return None
    return series.frame if metric.unit == OF_WORKLOAD else metric.unit


def amount(metric: Metric | Measure, series: Series, value: float) -> str:
    """Return a figure with its unit: `212 kpps`, `600 calls/s`."""
    of = unit(metric, series)
    return rate(value) if of is None else f"{digits3(value)} {of}".rstrip()
