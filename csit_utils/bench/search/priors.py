"""Search time with right, wrong and no earlier results, and on systems with other parameters than the tuned ones.

The systems are those of `search_time`, and so are times and errors. A wrong earlier result is a right one
times a factor.
"""

from collections.abc import Mapping
from random import Random
from statistics import fmean
from typing import Any

from csit_utils.bench.search.search_time import (
    MakeSystem,
    Search,
    SearchRun,
    cold,
    figures,
    plain_mlrsearch,
    prior_of,
    warm,
    with_prior,
)
from resources.libraries.python.drivers.sim.simulation import ModelName

SEEDS = 60
"""Searches of each kind on each system."""
_FACTORS = {
    "right": 1.0,
    "1 % too high": 1.01,
    "1 % too low": 0.99,
    "5 % too high": 1.05,
    "5 % too low": 0.95,
    "twice": 2.0,
    "half": 0.5,
}
_OTHERS: Mapping[str, tuple[ModelName, Mapping[str, float]]] = {
    "noisy, 1 %": (ModelName.NOISY, {"noise": 0.01}),
    "noisy, 3 %": (ModelName.NOISY, {"noise": 0.03}),
    "two_band, low band in 0.1 of trials": (ModelName.TWO_BAND, {"low_band_share": 0.1}),
    "two_band, low band in 0.4 of trials": (ModelName.TWO_BAND, {"low_band_share": 0.4}),
    "two_band, low band at 0.98": (ModelName.TWO_BAND, {"low_band": 0.98}),
    "stall, 0.3 per second": (ModelName.STALL, {"stall_hz": 0.3}),
    "knee at 0.95": (ModelName.KNEE, {"knee": 0.95}),
    "knee at 0.5, 0.4 % loss": (ModelName.KNEE, {"knee": 0.5, "knee_loss": 0.004}),
    "sag 0.5": (ModelName.SAG, {"sag": 0.5}),
}
"""Systems that were not used to choose constants of the search."""
_HEADS = ("case", "warm s", "cold s", "MLRsearch s", "rms error of NDR %", "of PDR %")


def measure(seeds: int = SEEDS, others: bool = True) -> dict[str, Any]:
    """Compare mean search times; errors are those of warm searches, relative to the truth.

    Args:
        seeds: Searches of each kind on each system.
        others: Systems with other parameters, too.
    """
    peer = _mean_s(plain_mlrsearch, seeds)
    times = {name: _mean_s(_distorted(factor), seeds) for name, factor in _FACTORS.items()}
    lines: list[tuple[object, ...]] = [
        (f"earlier result: {name}", time_s, None, None, None, None) for name, time_s in times.items()
    ]
    lines.append(("earlier result: none", None, _mean_s(cold, seeds), peer, None, None))
    for name, (model, parameters) in _OTHERS.items() if others else ():
        ours, first, theirs = (figures(search, model, seeds, **parameters) for search in (warm, cold, plain_mlrsearch))
        errors = (ours["ndr_rms_error_percent"], ours["pdr_rms_error_percent"])
        lines.append((name, ours["mean_s"], first["mean_s"], theirs["mean_s"], *errors))
    return {
        "name": "search_priors",
        "ours": times["right"],
        "peer": peer,
        "ratio": times["right"] / peer,
        "unit": "s",
        "seeds": seeds,
        "detail": times,
        "note": f"mean of the six systems; worst earlier result {max(times, key=times.__getitem__)}",
        "table": (_HEADS, lines),
    }


def _mean_s(search: Search, seeds: int) -> float:
    return fmean(figures(search, name, seeds)["mean_s"] for name in ModelName)


def _distorted(factor: float) -> Search:
    """A search whose earlier result is another search's, times a factor."""

    def search(make: MakeSystem, rng: Random, earlier: Random) -> SearchRun:
        return with_prior(make, rng, prior_of(with_prior(make, earlier, None), factor))

    return search
