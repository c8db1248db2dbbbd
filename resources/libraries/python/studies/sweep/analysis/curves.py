"""The catalogue of monotonic curves.

Forms after Sit, Poulin-Costello and Bergerud, "Catalogue of Curves for Curve Fitting" (1994), and those that Troia et
al. found for VNFs. Every curve is linear in all of its coefficients but one, its *shape* (a growth, an exponent, a
pole): so it is fitted by a search over one number with linear least squares inside, which needs no starting values
(variable projection: Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973) 413).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from resources.libraries.python.studies.sweep.analysis.points import Array
from resources.libraries.python.studies.sweep.model import ProfileMetric

Coefficients = Mapping[str, float]

_BIGGEST_EXPONENT = 600.0
"""Of e; the largest double has 709."""


@dataclass(frozen=True)
class Curve:
    """A family of functions of the rate r > 0."""

    name: str
    formula: str
    parameters: int
    value: Callable[[Coefficients, Array], Array]
    """At rates."""
    columns: Callable[[Array, Array], tuple[Array, ...]]
    """Basis functions, each an array of shapes (rows) by rates; given the rates, and the shapes as a column."""
    coefficients: Callable[[Array, float, Array], Coefficients]
    """From what multiplies the basis functions, the shape, and the rates."""
    shapes: Callable[[Array], tuple[Array, ...]] = lambda _: (np.zeros(1),)
    """Rising candidates for the shape; between two neighbours of a row any shape is allowed."""
    sign: int = 0
    """Sign of what multiplies the last basis function; 0 where both are members of the family."""
    fixed: float = 0.0
    """A part of the function that is not fitted."""
    pole: str | None = None
    """The coefficient that is a rate which the function never crosses."""
    only: ProfileMetric | None = None
    """The metric of which it makes sense; None for any."""
    rival: str = ""
    """Another curve, which a few noisy points do not exclude where they suggest this one, or the other way round."""


def _growths(rates: Array) -> tuple[Array, ...]:
    """Exponents per Gbit/s, falling and rising, from nearly straight over the region to a cliff at its edge."""
    steepest = min(300.0 / np.ptp(rates), _BIGGEST_EXPONENT / rates.max())
    row = np.geomspace(0.1 / np.ptp(rates), max(steepest, 0.2 / np.ptp(rates)), 60)
    return -row[::-1], row


def _powers(_: Array) -> tuple[Array, ...]:
    row = np.geomspace(0.1, 30, 50)
    return -row[::-1], row


def _poles_below(rates: Array) -> tuple[Array, ...]:
    return (rates.min() - np.ptp(rates) * np.geomspace(1e-3, 100, 80)[::-1],)


def _poles(rates: Array) -> tuple[Array, ...]:
    return *_poles_below(rates), rates.max() + np.ptp(rates) * np.geomspace(1e-3, 100, 80)


def _grown(rates: Array, growths: Array) -> Array:
    """An exponential that is 1 at its higher end: its height there is a number of ordinary size, that at 0 is not."""
    return np.asarray(np.exp(growths * (rates - np.where(growths > 0, rates.max(), rates.min()))))


def _edge(rates: Array, growth: float) -> float:
    return float(rates.max() if growth > 0 else rates.min())


def _named(*names: str) -> Callable[[Array, float, Array], Coefficients]:
    """The multipliers are the coefficients, in this order."""
    return lambda linear, _shape, _rates: dict(zip(names, map(float, linear), strict=True))


def _shaped(*names: str) -> Callable[[Array, float, Array], Coefficients]:
    """As `_named`, with the shape as the last coefficient."""
    return lambda linear, shape, _: dict(zip(names, (*map(float, linear), shape), strict=True))


def _exponential(linear: Array, shape: float, rates: Array) -> Coefficients:
    return {"a": float(linear[0] * np.exp(-shape * _edge(rates, shape))), "b": shape}


def _over_base(linear: Array, shape: float, rates: Array) -> Coefficients:
    height = abs(float(linear[1]))
    return {"a": float(linear[0]), "b": shape, "c": float(_edge(rates, shape) - np.log(height) / shape)}


def _power(linear: Array, shape: float, rates: Array) -> Coefficients:
    return {"a": float(linear[0] * rates.max() ** -shape), "b": shape}


def _power_over_base(linear: Array, shape: float, rates: Array) -> Coefficients:
    return {"a": float(linear[0]), "b": float(linear[1] * rates.max() ** -shape), "c": shape}


CURVES: tuple[Curve, ...] = (
    # What is lost, in percent, by something that lets d through, whatever the load. Before the constant, which has as
    # many coefficients: few noisy loads exclude neither, and loss beyond a capacity grows.
    Curve(
        "fixed capacity", "100*(1-d/r)", 1,
        value=lambda c, r: 100 * (1 - c["d"] / r),
        columns=lambda r, _: (-100 / r,),
        coefficients=_named("d"),
        sign=1,
        fixed=100.0,
        only=ProfileMetric.LOSS,
        rival="excess",
    ),
    Curve(
        "constant", "a", 1,
        value=lambda c, r: np.full_like(r, c["a"]),
        columns=lambda r, _: (np.ones_like(r),),
        coefficients=_named("a"),
    ),
    # What is lost, in percent, by something that lets d*r/(r-g) of r through; zero at r = d+g.
    Curve(
        "excess", "100*(1-d/(r-g))", 2,
        value=lambda c, r: 100 * (1 - c["d"] / (r - c["g"])),
        columns=lambda r, poles: (-100 / (r - poles),),
        coefficients=_shaped("d", "g"),
        shapes=_poles_below,
        sign=1,
        fixed=100.0,
        pole="g",
        only=ProfileMetric.LOSS,
        rival="fixed capacity",
    ),
    Curve(
        "linear", "a*r+b", 2,
        value=lambda c, r: c["a"] * r + c["b"],
        columns=lambda r, _: (r, np.ones_like(r)),
        coefficients=_named("a", "b"),
    ),
    # Troia et al. write a*exp(b*(r-c)). Only a*exp(-b*c) can be identified from points, never a and c: so c is 0, as in
    # their tables.
    Curve(
        "exponential", "a*exp(b*r)", 2,
        value=lambda c, r: c["a"] * np.exp(c["b"] * r),
        columns=lambda r, growths: (_grown(r, growths),),
        coefficients=_exponential,
        shapes=_growths,
    ),
    Curve(
        "logarithm", "a+b*ln(r)", 2,
        value=lambda c, r: c["a"] + c["b"] * np.log(r),
        columns=lambda r, _: (np.ones_like(r), np.log(r)),
        coefficients=_named("a", "b"),
    ),
    Curve(
        "power", "a*r^b", 2,
        value=lambda c, r: c["a"] * r ** c["b"],
        columns=lambda r, powers: ((r / r.max()) ** powers,),
        coefficients=_power,
        shapes=_powers,
    ),
    Curve(
        "hyperbola", "a+b/r", 2,
        value=lambda c, r: c["a"] + c["b"] / r,
        columns=lambda r, _: (np.ones_like(r), 1 / r),
        coefficients=_named("a", "b"),
    ),
    Curve(
        "exponential over a base", "a+exp(b*(r-c))", 3,
        value=lambda c, r: c["a"] + np.exp(c["b"] * (r - c["c"])),
        columns=lambda r, growths: (np.ones_like(r), _grown(r, growths)),
        coefficients=_over_base,
        shapes=_growths,
        sign=1,
    ),
    Curve(
        "exponential below a base", "a-exp(b*(r-c))", 3,
        value=lambda c, r: c["a"] - np.exp(c["b"] * (r - c["c"])),
        columns=lambda r, growths: (np.ones_like(r), _grown(r, growths)),
        coefficients=_over_base,
        shapes=_growths,
        sign=-1,
    ),
    Curve(
        "quadratic", "a*r^2+b*r+c", 3,
        value=lambda c, r: (c["a"] * r + c["b"]) * r + c["c"],
        columns=lambda r, _: (r * r, r, np.ones_like(r)),
        coefficients=_named("a", "b", "c"),
    ),
    Curve(
        "power over a base", "a+b*r^c", 3,
        value=lambda c, r: c["a"] + c["b"] * r ** c["c"],
        columns=lambda r, powers: (np.ones_like(r), (r / r.max()) ** powers),
        coefficients=_power_over_base,
        shapes=_powers,
    ),
    # The delay of a queue in front of something of capacity c is of this form.
    Curve(
        "hyperbola with a pole", "a+b/(c-r)", 3,
        value=lambda c, r: c["a"] + c["b"] / (c["c"] - r),
        columns=lambda r, poles: (np.ones_like(r), 1 / (poles - r)),
        coefficients=_shaped("a", "b", "c"),
        shapes=_poles,
        pole="c",
    ),
)  # fmt: skip
"""Simplest first: fewer coefficients; of as many, the one with a meaning, then those that Troia et al. found."""

BY_NAME: Mapping[str, Curve] = MappingProxyType({curve.name: curve for curve in CURVES})
