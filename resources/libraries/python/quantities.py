"""Quantities as texts: three significant digits and a unit. Records, CSV and JSON have raw values."""

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

DASH = "\N{EN DASH}"
"""An unknown value."""
MINUS = "\N{MINUS SIGN}"

KEPT_TEXTS = 8192
"""Texts of each unit: the same loads and times are on many pages, and several times on each."""
DECIMAL = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
"""Factors and prefixes of units."""
TIMES_NS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def digits3(value: float) -> str:
    """Return three significant digits without an exponent: `0.0312`, `1.24`, `212`, `4120`."""
    if value == 0:
        return "0"
    # Rounding may reach the next decade: 9.996 is 10.0, not 10.00.
    rounded = f"{value:.2e}"
    decimals = 2 - int(rounded[rounded.index("e") + 1 :])
    text = f"{value:.{decimals}f}" if decimals > 0 else f"{float(rounded):.0f}"
    return text.replace("-", MINUS) if value < 0 else text


def scaled(value: float | None, scales: Sequence[tuple[float, str]], unit: str = "") -> str:
    """Return three significant digits with the largest prefix that leaves at least 1.

    `value`: In the unit; None where it is unknown.
    """
    if value is None or not math.isfinite(value):
        return DASH
    for factor, prefix in scales:
        # Choose the prefix after rounding: 999,600 is 1.00 M, not 1000 k.
        if abs(value) / factor >= 0.9995:
            return f"{digits3(value / factor)} {prefix}{unit}"
    return f"{digits3(value)} {scales[-1][1]}{unit}"


def signed(value: float, decimals: int = 0) -> str:
    """Return a change with its sign: `+3`, `+12.5`."""
    return f"{value:+.{decimals}f}".replace("-", MINUS)


def count(value: float | None) -> str:
    """Return a number of packets, frames or connections, whole: `10,899`."""
    return DASH if value is None else f"{value:,.0f}"


def counted(number: int, noun: str) -> str:
    """Return a number with what is counted: `1 cell`, `12 cells`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def grouped(value: float, digits: int = 10) -> str:
    """Return so many significant digits without an exponent, grouped: `62,500`, `0.35`."""
    return f"{float(f'{value:.{digits}g}'):,.10f}".rstrip("0").rstrip(".").replace("-", MINUS)


@lru_cache(KEPT_TEXTS)
def rate(value_pps: float | None) -> str:
    """Return a packet rate: `212 kpps`."""
    return scaled(value_pps, DECIMAL, "pps")


def rates(*values_pps: float) -> tuple[str, ...]:
    """Return packet rates that are compared: in full where three digits do not tell them apart, `211,950 pps`."""
    texts = tuple(map(rate, values_pps))
    for decimals in range(4):
        if len(set(texts)) == len(set(values_pps)):
            break
        texts = tuple(f"{value:,.{decimals}f} pps" for value in values_pps)
    return texts


@lru_cache(KEPT_TEXTS)
def latency(value_ns: float | None) -> str:
    """Return a time from nanoseconds: `36.0 µs`."""
    return scaled(value_ns, TIMES_NS)


@lru_cache(KEPT_TEXTS)
def bandwidth(value_bps: float | None) -> str:
    """Return a bandwidth: `1.43 Gbit/s`."""
    return scaled(value_bps, DECIMAL, "bit/s")


@lru_cache(KEPT_TEXTS)
def percent(ratio: float | None, *, signed: bool = False) -> str:
    """Return a ratio in percent: `85 %`, `0.5 %`; with `signed`, `+15 %`."""
    if ratio is None or not math.isfinite(ratio):
        return DASH
    value = ratio * 100
    size = abs(value)
    digits = 0 if size >= 9.95 or size == 0 else 1 if size >= 0.995 else None
    text = f"{Decimal(f'{size:.2g}'):f}" if digits is None else f"{size:.{digits}f}"
    sign = MINUS if value < 0 and float(text) else "+" if signed and float(text) else ""
    return f"{sign}{text} %"
