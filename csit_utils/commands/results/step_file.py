"""Cells that became worse, with the versions of the figures beside the step, as `./csit bisect --step` reads them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from resources.libraries.python.whole_files import write_whole

if TYPE_CHECKING:
    from csit_utils.analysis.cells import CellMetric
    from csit_utils.dataset.rows import TestRow


def write_steps(path: Path, steps: Iterable[tuple["CellMetric", float, "TestRow", "TestRow"]]) -> None:
    """Write a JSON file of `bisection.spec.CalledStep`, the largest change for the worse first.

    Args:
        path: The file.
        steps: The cell, the relative change, and the tests with the last figure before and the first one after it.

    Raises:
        CsitError: It cannot be written.
    """
    ordered = sorted(steps, key=lambda step: -step[0].metric.worsening(step[1]))
    rows = [
        {
            "cell": f"{cell.series.service_type} {cell.dimensions} {cell.series.nf_size} vswitch-{cell.series.vs_dtc}c",
            "frame": cell.series.frame.split(" ")[0],
            "metric": str(cell.metric),
            "change": change,
            "good": before.version or "",
            "bad": after.version or "",
        }
        for cell, change, before, after in ordered
    ]
    write_whole(path, json.dumps(rows, indent=1) + "\n")
