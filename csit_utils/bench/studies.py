"""What studies say of simulated systems, against the truth that is known of them: a table, each line with its bound."""

import importlib
from typing import Any

from csit_utils.bench.study_lines import BoundedQuantity

_PARTS = ("chains", "interference", "profiles")
"""`studies_<part>` has the lines."""
STUDIES = 100
"""With a fault of each kind; twice as many without one at four volumes, and at one volume."""


def measure(studies: int = STUDIES) -> dict[str, Any]:
    """All lines, and how close the worst one comes to its bound; under `failed` those that exceed it."""
    lines: list[BoundedQuantity] = []
    for part in _PARTS:
        lines += importlib.import_module(f"csit_utils.bench.studies_{part}").table(studies)
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
    beyond = [f"{line.what} is {line.value:.3g}, above {line.bound:g}" for line in lines if line.value > line.bound]
    return {**row, "failed": "; ".join(beyond)} if beyond else row
