"""Formatted quantities of pages; those of messages are in `quantities`."""

import math
from collections.abc import Sequence
from functools import lru_cache

from csit_utils.analysis.grouping import Series
from csit_utils.dataset.measures import OF_WORKLOAD, PPS, Measure
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.quantities import (
    DASH,
    DECIMAL,
    KEPT_TEXTS,
    MINUS,
    TIMES_NS,
    bandwidth,
    count,
    digits3,
    latency,
    percent,
    rate,
    scaled,
)

__all__ = [
    "DASH", "MINUS", "amount", "bandwidth", "common_unit", "count", "digits3", "joules", "latency", "memory", "percent",
    "rate", "seconds", "unit",
]  # fmt: skip

_ENERGY = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"))


@lru_cache(KEPT_TEXTS)
def joules(value: float | None) -> str:
    """Return an energy: `16.4 µJ`."""
    return scaled(value, _ENERGY)


@lru_cache(KEPT_TEXTS)
def seconds(value_s: float | None) -> str:
    """Return a duration: `350 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`."""
    if value_s is None or not math.isfinite(value_s):
        return DASH
    if not value_s or 1 <= value_s < 120:
        return f"{value_s:.3g} s"
    if value_s < 1:
        return scaled(value_s * 1e9, TIMES_NS)
    minutes, rest = divmod(round(value_s), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def memory(value_bytes: int | None) -> str:
    """Return an amount of memory: `7.75 GiB`."""
    return DASH if value_bytes is None else f"{digits3(value_bytes / 2**30)} GiB"


def common_unit(values_pps: Sequence[float]) -> tuple[float, str]:
    """Return a common divisor and unit for rates shown side by side."""
    largest = max(values_pps, default=0.0)
    for factor, prefix in DECIMAL:
        if largest / factor >= 0.9995:
            return factor, f"{prefix}pps"
    return 1.0, "pps"


def unit(metric: Measure, of: Series | TestRow) -> str:
    """Return the unit of a figure, empty for a ratio. Workloads have their own."""
    return of.frame or "" if metric.unit == OF_WORKLOAD else metric.unit


def amount(metric: Measure, of: Series | TestRow, value: float | None) -> str:
    """Return a figure with its unit: `212 kpps`, `600 calls/s`."""
    text = unit(metric, of)
    return rate(value) if text == PPS else DASH if value is None else f"{digits3(value)} {text}".rstrip()
