"""Search time against plain MLRsearch, on six simulated systems, in virtual time.

The promise is the *warm* ratio: mean search time of our search from the result of an earlier one of the same system,
over the mean of MLRsearch 1.2.1 with FD.io CSIT's settings. The earlier search is a cold one of ours with other random
numbers, mistakes included. A cold search is reported beside it, and must not be slower than MLRsearch.
"""

from collections.abc import Iterable, Mapping
from math import exp, log
from random import Random
from statistics import fmean, quantiles, stdev
from typing import Any

from csit_utils.bench.searches import LINE_PPS, OVERHEAD_S, Search, SearchRun, cold, plain_mlrsearch, warm
from resources.libraries.python.drivers.sim.models import Model, make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation

SEEDS = 100
"""Searches of each kind per model: as many at random capacities as at a fixed one."""
_CAPACITY_RANGE = (0.05, 0.95)
_FIXED_CAPACITY = 0.4
_NOISE_RANGE = (0.01, 0.03)

MOST_WARM, MOST_COLD = 0.80, 1.00
"""Mean search time over MLRsearch's: what is promised."""
MOST_SPREAD_PERCENT = {
    ModelName.NOISY: 0.60,
    ModelName.TWO_BAND: 0.20,
    ModelName.STALL: 0.15,
    ModelName.SHARP: 0.15,
    ModelName.KNEE: 0.15,
}
"""Standard deviation over mean of the bounds found by warm searches. `sag` is held against MLRsearch."""

_SEARCHES: Mapping[str, Search] = {"ours": warm, "cold": cold, "peer": plain_mlrsearch}


def measure(seeds: int = SEEDS) -> dict[str, Any]:
    """Compare mean search times; the detail has figures by model for warm (`ours`), cold and MLRsearch (`peer`).

    Times are virtual seconds at random capacities. Spreads are standard deviation over mean at a fixed capacity, and
    errors relative to the truth, both in percent. A broken promise is told under `failed`; fewer searches than `SEEDS`
    tell too little of spreads to hold it against them.
    """
    detail = {
        name.value: {who: figures(search, name, seeds) for who, search in _SEARCHES.items()} for name in ModelName
    }
    ours, cold_s, peer = (fmean(row[who]["mean_s"] for row in detail.values()) for who in _SEARCHES)
    row: dict[str, Any] = {
        "name": "search_time",
        "ours": ours,
        "peer": peer,
        "ratio": ours / peer,
        "cold": cold_s,
        "cold_ratio": cold_s / peer,
        "unit": "s",
        "overhead_s": OVERHEAD_S,
        "seeds": seeds,
        "detail": detail,
    }
    row["note"] = _note(row)
    broken = broken_promises(row) if seeds >= SEEDS else []
    return {**row, "failed": "; ".join(broken)} if broken else row


def broken_promises(row: Mapping[str, Any]) -> list[str]:
    """Gates that the figures break, in sentences."""
    found = [
        f"a {how} search takes {row[key]:.3f} of MLRsearch's time, more than {most:g}"
        for how, key, most in (("warm", "ratio", MOST_WARM), ("cold", "cold_ratio", MOST_COLD))
        if row[key] > most
    ]
    for name, figures_of in row["detail"].items():
        for goal in ("ndr", "pdr"):
            key = f"{goal}_spread_percent"
            most = MOST_SPREAD_PERCENT.get(ModelName(name), figures_of["peer"][key])
            if figures_of["ours"][key] > most:
                found.append(
                    f"{goal.upper()} on {name} spreads by {figures_of['ours'][key]:.2f} %, more than {most:g} %"
                )
    sag = row["detail"][ModelName.SAG.value]
    if sag["ours"]["mean_s"] > sag["peer"]["mean_s"]:
        found.append(f"sag takes {sag['ours']['mean_s']:.1f} s, MLRsearch {sag['peer']['mean_s']:.1f} s")
    return found


def _note(row: Mapping[str, Any]) -> str:
    """What a reader of the table wants to see: warm, cold and MLRsearch for each system."""
    lines = []
    for name, figures_of in row["detail"].items():
        times = "/".join(f"{figures_of[who]['mean_s']:.1f}" for who in _SEARCHES)
        p95 = "/".join(f"{figures_of[who]['p95_s']:.0f}" for who in _SEARCHES)
        ours = figures_of["ours"]
        spread = f"{ours['ndr_spread_percent']:.2f}/{ours['pdr_spread_percent']:.2f} %"
        bias = f"{ours['ndr_error_percent']:+.2f}/{ours['pdr_error_percent']:+.2f} %"
        lines.append(f"{name} {times} s, p95 {p95} s, spread {spread}, bias {bias}")
    return (
        f"ours is warm; cold {row['cold']:.1f} s, ratio {row['cold_ratio']:.3f}. "
        f"By system, times of warm/cold/MLRsearch, spread and bias of NDR/PDR when warm: {'; '.join(lines)}"
    )


def figures(search: Search, name: ModelName, seeds: int, **parameters: float) -> dict[str, float]:
    """Figures of one search on one kind of system; parameters change the system."""
    random = [_run(search, name, seed, None, parameters) for seed in range(seeds)]
    fixed = [_run(search, name, seed, _FIXED_CAPACITY, parameters) for seed in range(seeds)]
    times = [run.elapsed_s for run, _ in random]
    errors = {
        "ndr": [100 * (run.ndr_pps / model.truth_pps(0.0) - 1) for run, model in random],
        "pdr": [100 * (run.pdr_pps / model.truth_pps(0.005) - 1) for run, model in random],
    }
    return {
        "mean_s": fmean(times),
        "p95_s": quantiles(times, n=20, method="inclusive")[-1],
        "trials": fmean(run.trials for run, _ in random),
        "ndr_spread_percent": _spread(run.ndr_pps for run, _ in fixed),
        "pdr_spread_percent": _spread(run.pdr_pps for run, _ in fixed),
        **{f"{goal}_error_percent": fmean(row) for goal, row in errors.items()},
        **{f"{goal}_rms_error_percent": fmean(each**2 for each in row) ** 0.5 for goal, row in errors.items()},
    }


def _run(
    search: Search, name: ModelName, seed: int, capacity: float | None, parameters: Mapping[str, float]
) -> tuple[SearchRun, Model]:
    """One search; the same seed gives every search the same system and the same random numbers."""
    rng = Random(f"{name}/{seed}/{capacity}")  # noqa: S311 (reproducible, not secret)
    low, high = _CAPACITY_RANGE
    share = exp(rng.uniform(log(low), log(high))) if capacity is None else capacity
    noise = rng.uniform(*_NOISE_RANGE) if capacity is None else fmean(_NOISE_RANGE)
    simulation = Simulation.model_validate({"model": name, "noise": noise, **parameters})
    model = make_model(simulation, share * LINE_PPS)
    earlier = Random(f"earlier/{name}/{seed}/{capacity}")  # noqa: S311 (as above)
    return search(model, rng, earlier), model


def _spread(values: Iterable[float]) -> float:
    """Standard deviation over mean in percent."""
    row = list(values)
    return 100 * stdev(row) / fmean(row)
