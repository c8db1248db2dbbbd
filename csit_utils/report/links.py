"""Addresses within the report. Links are written as within one page; the site resolves them to files."""

import re
from functools import lru_cache
from hashlib import sha256

from csit_utils.analysis.grouping import Series
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import TestRow


def test_href(row: TestRow) -> str:
    """Return the link to the page of a test."""
    return f"#{row.anchor}"


def cell_anchor(series: Series, metric: Measure, place: tuple[int, int] | None = None) -> str:
    """Return the id of a cell of a heat map: `csc-4x2-ndr-64b-1c-vs1-sim-3f2a`, equal in all reports of the series.

    `place`: number of services, and NFs per service; None omits them.
    """
    words = (
        series.service_type,
        *([f"{place[0]}x{place[1]}"] if place else []),
        metric,
        series.frame.split(" ", 1)[0],
        series.nf_size,
        f"vs{series.vs_dtc}",
        series.system.testbed,
        _digest(series),
    )
    return re.sub(r"[^a-z0-9.]+", "-", "-".join(words).lower())


@lru_cache(maxsize=1024)
def _digest(series: Series) -> str:
    return sha256(repr(series).encode()).hexdigest()[:4]


def cell_href(series: Series, metric: Measure, place: tuple[int, int]) -> str:
    """Return the link to a cell of a heat map on the density page."""
    return f"#{cell_anchor(series, metric, place)}"
