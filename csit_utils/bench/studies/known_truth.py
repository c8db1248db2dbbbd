"""Results of studies on simulated systems against the known truth: a table with a bound for each line."""

import importlib
from typing import Any, NamedTuple


class BoundedQuantity(NamedTuple):
    """A quantity, its worst or mean value over simulated studies, and its promised upper bound."""

    what: str
    value: float
    bound: float
    unit: str
    note: str


_PARTS = ("chains", "density", "interference", "profiles", "sizings", "sweeps", "trends")
"""Modules of this package, each with a function `table`."""
STUDIES = 100
"""Of each kind; see `table` of each part for how many simulations that makes."""


FEWEST = 20
"""With fewer studies chance decides which line is above its bound."""


def measure(studies: int = STUDIES) -> dict[str, Any]:
    """Return all lines and the ratio of the worst one to its bound.

    From `FEWEST` studies on, `failed` lists the lines above their bounds.
    """
    lines: list[BoundedQuantity] = []
    for part in _PARTS:
        lines += importlib.import_module(f"csit_utils.bench.studies.{part}").table(studies)
    worst = max(lines, key=lambda line: line.value / line.bound)
    row: dict[str, Any] = {
        "name": "studies",
        "ours": worst.value,
        "peer": worst.bound,
        "ratio": worst.value / worst.bound,
        "unit": worst.unit,
        "detail": [line._asdict() for line in lines],
        "table": (("quantity", "found", "bound", "unit", "note"), lines),
        "note": f"peer is the bound; worst of {len(lines)} lines: {worst.what}",
    }
    beyond = [f"{line.what}: {line.value:.3g}, bound {line.bound:g}" for line in lines if line.value > line.bound]
    return {**row, "failed": "; ".join(beyond)} if beyond and studies >= FEWEST else row
