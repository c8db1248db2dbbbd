"""Throughput bounds of rows, and rows without a record in the series that they belong to."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from csit_utils.analysis.cells import figure
from csit_utils.analysis.comparisons.comparison import interval
from csit_utils.analysis.grouping import (
    ThroughputBounds,
    all_series,
    belongs,
    bounds,
    error_of,
    per_core,
    series_of,
    system_of,
)
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MEASURES, MRR, NDR, ORR, PDR, SOAK
from tests.unit.csit_utils.histories import row

SEARCHED = {NDR: "ndr", PDR: "pdr", SOAK: "soak"}


@pytest.mark.parametrize("metric", SEARCHED)
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((100.0, 110.0, True, 50.0), ThroughputBounds(100.0, 110.0, True)),
        ((100.0, 110.0, False, 50.0), ThroughputBounds(100.0, 110.0, False)),
        ((100.0, None, True, 50.0), ThroughputBounds(100.0, None, True)),  # nothing above could be offered
        ((100.0, None, None, None), ThroughputBounds(100.0, 100.0, True)),  # a tool that gives figures only
        ((100.0, 110.0, None, None), ThroughputBounds(100.0, 110.0, True)),
        ((None, 60.0, True, 50.0), ThroughputBounds(None, 60.0, True)),
        ((None, None, True, 50.0), ThroughputBounds(None, 50.0, True)),
        ((None, None, True, None), None),
    ],
)
def test_bounds_of_a_search(
    metric: Measure,
    found: tuple[float | None, float | None, bool | None, float | None],
    expected: ThroughputBounds | None,
) -> None:
    """Of `found`: the lower and upper bound, whether the search is complete, and the lowest load that was tried."""
    fields: dict[str, Any] = {
        f"{name}_{part}": 7.0 for name in SEARCHED.values() for part in ("lower_pps", "upper_pps")
    }
    parts = ("lower_pps", "upper_pps", "complete", "lowest_tried_pps")
    fields |= {f"{SEARCHED[metric]}_{part}": value for part, value in zip(parts, found, strict=True)}
    searched = row(1e6, **fields)
    assert bounds(searched, metric) == expected
    assert bounds(replace(searched, status="FAIL"), metric) is None
    assert bounds(replace(searched, recorded=False), metric) is None


def test_a_receive_rate_is_both_bounds_with_the_standard_error_of_its_trials() -> None:
    mrr = row(1e6, mrr_pps=9e5, mrr_stdev_pps=300.0, mrr_trials=9, orr_pps=8e5, orr_stdev_pps=100.0, orr_trials=4)
    assert bounds(mrr, MRR) == ThroughputBounds(9e5, 9e5, True)
    assert bounds(mrr, ORR) == ThroughputBounds(8e5, 8e5, True)
    assert [error_of(mrr, metric) for metric in (MRR, ORR, NDR)] == [100.0, 50.0, 0.0]


def test_a_figure_has_the_bounds_that_its_measure_names(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [f"ndr_predicted_{part}pps" for part in ("", "low_", "high_")]
    predicted = Measure("predicted", goal="NDR", lower_bound=columns[1], upper_bound=columns[2])
    monkeypatch.setitem(MEASURES, predicted, columns[0])
    rows = [row(1e6, **dict(zip(columns, values, strict=True))) for values in ((2.0, 1.0, 4.0), (2.0, 1.0, None))]
    found = [figure(each, predicted) for each in rows]
    assert [interval(each, predicted) for each in found if each is not None] == [(1.0, 4.0), (1.0, inf)]
    assert figure(row(1e6), predicted) is None


def test_throughput_per_data_core_needs_both() -> None:
    searched = row(1e6, data_cores=4)
    assert per_core(searched, PDR) == 2.5e5
    assert per_core(replace(searched, data_cores=None), PDR) is None
    assert per_core(replace(searched, pdr_lower_pps=None), PDR) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"frame": None}, True),
        ({"frame": "64b"}, True),
        ({"frame": "1518B"}, False),
        ({"nf_size": None, "vs_dtc": None}, True),
        ({"nf_size": "0.5c"}, False),
        ({"vs_dtc": 2}, False),
        ({"service_type": "CSP"}, False),
    ],
)
def test_a_test_without_a_record_belongs_where_nothing_speaks_against_it(
    changes: dict[str, Any], expected: bool
) -> None:
    measured = row(1e6)
    series, system = series_of(measured), system_of(measured)
    assert series is not None and belongs(measured, series, None)
    lost = replace(measured, recorded=False, simulated=None, **changes)
    assert belongs(lost, series, system) is expected
    assert not belongs(lost, series, None)


def test_series_are_in_the_order_of_their_numbers_of_cores() -> None:
    sizes = ["", "0.5c", "1c", "1c-2c", "2c", "10c"]
    assert [series.nf_size for series in all_series(row(1e6, nf_size=size) for size in sizes[::-1])] == sizes
    cores = [None, 1, 2, 10]
    assert [series.vs_dtc for series in all_series(row(1e6, vs_dtc=count) for count in cores[::-1])] == cores
