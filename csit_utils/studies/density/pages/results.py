"""The table of all tests."""

from collections.abc import Iterable, Mapping, Sequence

from csit_utils.analysis.grouping import beside, is_measured
from csit_utils.analysis.latency import HALF_LOADS
from csit_utils.analysis.runs import called
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.reference import WORLD as PUBLISHED
from csit_utils.dataset.rows import THROUGHPUTS, LatencyRow, TestRow
from csit_utils.report.report_context import ReportContents
from csit_utils.report.runs_shown import newest_first
from csit_utils.report.study import Page
from csit_utils.studies.density.analysis.summary import BEST_FIRST

MAX_ROWS = 2_000
"""Tests up to which the table has all of them; more than that, and it has those of the latest runs."""


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    every = shown.rows if len(shown.rows) <= MAX_ROWS else shown.latest
    rows = [row for row in newest_first(every, shown.history) if row.recorded and row.world != PUBLISHED]
    if not rows and shown.characterizations:
        return None
    names = _run_names(shown)
    return {
        "rows": rows,
        "left_out": len(shown.rows) - len(every),
        "runs": names if len(set(names.values())) > 1 else {},
        "p99": _p99(_latency(shown, every)),
        "types": {row.test_type for row in rows},
        "metrics": [
            each
            for metric in THROUGHPUTS
            if any(is_measured(row, metric) for row in rows)
            for each in beside(metric, rows)
        ],
        "best_metric": _best_metric,
        "simulated": shown.simulated,
        "measured": shown.measured,
    }


def _run_names(shown: ReportContents) -> Mapping[str, str]:
    """Names of runs by test; without the testbed where there is only one."""
    history = shown.history
    before = f"{called(history.testbeds[0])} " if len(history.testbeds) == 1 else ""
    return {row.anchor: run.name.removeprefix(before) for run in history.runs for row in run.rows}


def _latency(shown: ReportContents, every: Sequence[TestRow]) -> Iterable[LatencyRow]:
    if len(every) > len(shown.latest):
        return shown.contents.latency()
    return (found for own in shown.evidence.latencies.values() for found in own)


def _p99(found: Iterable[LatencyRow]) -> Mapping[str, int]:
    """The worst 99th percentile of each test at half of its rate."""
    worst: dict[str, int] = {}
    for row in found:
        if row.load in HALF_LOADS and row.p99_ns is not None:
            worst[row.anchor] = max(worst.get(row.anchor, 0), row.p99_ns)
    return worst


def _best_metric(row: TestRow) -> Measure:
    """The metric whose bandwidth and share per core a table shows, where it has room for one."""
    return next((metric for metric in BEST_FIRST if is_measured(row, metric)), BEST_FIRST[-1])


PAGE = Page("results", "Results", _build)
