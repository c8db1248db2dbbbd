"""The table of all tests."""

from collections.abc import Mapping
from dataclasses import asdict

from csit_utils.analysis.grouping import Metric
from csit_utils.analysis.latency import HALF_LOADS
from csit_utils.dataset.rows import TestRow
from csit_utils.report.shown import Page, Shown


def _build(shown: Shown) -> Mapping[str, object]:
    rows = [row for row in shown.rows if row.recorded]
    p99: dict[str, int] = {}
    for found in shown.contents.latency():
        if found.load in HALF_LOADS and found.p99_ns is not None:
            p99[found.anchor] = max(p99.get(found.anchor, 0), found.p99_ns)
    return {
        "rows": rows,
        "p99": p99,
        "types": {row.test_type for row in rows},
        "metrics": [metric for metric in Metric if any(_has(row, metric) for row in rows)],
        "best_metric": _best_metric,
        "simulated": shown.simulated,
        "measured": shown.measured,
        "csv": {
            "columns": list(TestRow.__dataclass_fields__),
            "rows": [list(asdict(row).values()) for row in shown.rows],
        },
    }


def _has(row: TestRow, metric: Metric) -> bool:
    found = {
        Metric.NDR: row.ndr_loss_ratio,
        Metric.PDR: row.pdr_loss_ratio,
        Metric.SOAK: row.soak_loss_ratio,
        Metric.MRR: row.mrr_pps,
    }
    return found[metric] is not None


def _best_metric(row: TestRow) -> Metric:
    """The metric whose bandwidth and share per core a table shows, where it has room for one."""
    return next((metric for metric in (Metric.PDR, Metric.NDR, Metric.SOAK) if _has(row, metric)), Metric.MRR)


PAGE = Page("results", "Results", _build)
