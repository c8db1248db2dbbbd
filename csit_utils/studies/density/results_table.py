"""Results of density tests as a table for a terminal or a pipe."""

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from csit_utils.analysis.grouping import beside, bounds, is_measured
from csit_utils.commands.tables import TableForm, TableLine, print_table
from csit_utils.dataset.measures import PPS, Measure
from csit_utils.dataset.rows import MRR, NDR, ORR, PDR, SOAK, LatencyRow, TestRow
from csit_utils.report.details.testview import bounds_text, p99_at_half_pdr
from csit_utils.report.units import DASH, latency
from csit_utils.studies.density.analysis.density import cell_name, verdict_of
from resources.libraries.python.search.findings.verdict import verdict_text

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored

_LEFT = ("testbed", "cell", "test", "frame", "verdict")
"""Heads of columns that hold words."""
_PARAGRAPHS = re.compile(r"\n\n+")
"""Between a failure and that of the teardown, in Robot's messages."""
_STYLES = {
    "failed": "red",
    "quarantined": "red",
    "quarantined:": "red",
    "no-traffic": "red",
    "affinity-lost": "red",
    "measured": "",
}


def print_results(contents: "Stored", *, why: bool = False, form: TableForm = TableForm.TABLE) -> None:
    """Print one line per test.

    `why`: print the evidence of each verdict below its test.
    `form`: output format; raw values are the study, the columns of a `TestRow`, and the p99 in nanoseconds.
    """
    heads, lines = _lines_of(contents, why=why, with_raw=form is not TableForm.TABLE)
    print_table(heads, lines, form, _LEFT)


def _lines_of(contents: "Stored", *, why: bool, with_raw: bool) -> tuple[list[str], list[TableLine]]:
    rows = contents.tests
    latencies: dict[str, list[LatencyRow]] = {}
    for each in contents.rows(LatencyRow):
        latencies.setdefault(each.anchor, []).append(each)
    known = [row for row in rows if row.recorded]
    several = {name for name in ("testbed", "vs_dtc", "test_type") if len({getattr(row, name) for row in known}) > 1}
    metrics = _metrics(rows)
    testbed, test = (["testbed"] if "testbed" in several else []), (["test"] if "test_type" in several else [])
    heads = [*testbed, "cell", *test, "frame", *metrics, "p99", "verdict"]
    lines = []
    for row in rows:
        texts = _texts(row, latencies.get(row.anchor, []), metrics, several)
        below = tuple(row.evidence.splitlines()) if why else ()
        # Only where they are shown: a dataset would be read for all columns.
        raw = _raw(row, latencies.get(row.anchor, [])) if with_raw else {}
        lines.append(TableLine(tuple(texts), raw, _style(texts[-1]), below))
    return heads, lines


def _raw(row: TestRow, latencies: list[LatencyRow]) -> dict[str, Any]:
    # A test without a record may be one of any study.
    return {"study": "density" if row.recorded else None, **asdict(row), "p99_ns": p99_at_half_pdr(latencies)}


def _style(verdict: str) -> str:
    words = verdict.replace(",", " ").replace(";", " ").split()
    return next((_STYLES[word] for word in words if word in _STYLES), "yellow")


def _metrics(rows: Sequence[TestRow]) -> list[Measure]:
    """NDR and PDR, unless no test searched for them; soak rate, MRR and ORR where a test measured them."""
    searched = any(is_measured(row, metric) for row in rows for metric in (NDR, PDR))
    others = [metric for metric in (SOAK, MRR, ORR) if any(is_measured(row, metric) for row in rows)]
    found = [*((NDR, PDR) if searched or not others else ()), *others]
    return [each for metric in found for each in beside(metric, rows)]


def _texts(row: TestRow, latencies: list[LatencyRow], metrics: list[Measure], several: Collection[str]) -> list[str]:
    """Texts of a row; `several` are the columns of `TestRow` by which tests differ."""
    sizes = f" NF-{row.nf_size}" if row.nf_size else ""
    sizes += f" vSwitch-{row.vs_dtc}c" if row.vs_dtc and "vs_dtc" in several else ""
    texts = [_verdicts(row, metrics) if row.status == "PASS" else f"{row.status}: {_PARAGRAPHS.sub('; ', row.message)}"]
    if row.simulated:
        texts.insert(0, "SIMULATED")
    if row.oversubscribed and "oversubscribed" not in row.verdicts:
        texts.append("oversubscribed")
    return [
        *([row.testbed or DASH] if "testbed" in several else []),
        cell_name(row) + sizes,
        *([row.test_type or DASH] if "test_type" in several else []),
        row.frame or DASH,
        *(bounds_text(row, metric) for metric in metrics),
        latency(p99_at_half_pdr(latencies)),
        " ".join(texts),
    ]


def _verdicts(row: TestRow, metrics: list[Measure]) -> str:
    """The verdict of each number that the line shows."""
    rates = (metric for metric in metrics if metric.unit == PPS and bounds(row, metric) is not None)
    numbers = {str(metric): verdict_of(row, metric) for metric in rates}
    return verdict_text(numbers or {"": row.verdicts.split()})
