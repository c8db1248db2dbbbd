"""The table of results: a line per cell of the latest runs, with all that its tests measured."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from csit_utils.analysis.grouping import asks_for, beside, bounds, is_measured, per_core, system_of
from csit_utils.dataset.measures import PPS, Measure
from csit_utils.dataset.rows import MEASURES, PUBLISHED, THROUGHPUTS, TestRow
from csit_utils.report.details.testview import bound_mark, bounds_text, p99_at_half_pdr
from csit_utils.report.report_context import ReportContents, newest_first
from csit_utils.report.study import Page
from csit_utils.report.units import DASH, common_unit, digits3
from csit_utils.studies.density.analysis.density import cell_name, verdict_of
from csit_utils.studies.density.analysis.summary import BEST_FIRST

MAX_EARLIER = 2_000
"""Tests of earlier runs up to which they are listed."""


@dataclass(frozen=True)
class ResultColumn:
    """A measure, in one unit for all cells."""

    metric: Measure
    factor: float
    """Value of the unit; 0.0 for measures whose values have their units beside them."""
    unit: str
    name: str
    """In CSV files."""

    @property
    def head(self) -> str:
        """Name and unit."""
        return f"{self.metric}, {self.unit}" if self.unit else str(self.metric)

    def texts(self, row: TestRow | None) -> tuple[str, str]:
        """Lower bound with its mark, and upper bound; the latter is empty without one."""
        found = None if row is None else bounds(row, self.metric)
        if row is None or found is None:
            return DASH, ""
        if not self.factor:
            return bounds_text(row, self.metric), ""
        lower, upper = (None if each is None else digits3(each / self.factor) for each in found[:2])
        ended = upper if lower is not None and found.upper != found.lower else None
        return bound_mark(found) + (lower or upper or DASH), ended or ""


@dataclass(frozen=True)
class ResultLine:
    """A cell and its tests."""

    tests: tuple[TestRow, ...]
    """At least one, at most one of each type."""
    run: str
    by_metric: Mapping[Measure, TestRow]
    """The test that measured each measure."""
    p99_ns: int | None
    limits: tuple[tuple[str, tuple[str, ...]], ...]
    """Verdicts with the measures they are about, which are left out where all have the same."""

    @property
    def row(self) -> TestRow:
        """The test with the most informative measure."""
        return self.by_metric.get(self.best, self.tests[0])

    @property
    def best(self) -> Measure:
        """The most informative measure."""
        return next((metric for metric in BEST_FIRST if metric in self.by_metric), BEST_FIRST[-1])

    @property
    def cell(self) -> str:
        """Its name."""
        return cell_name(self.row)

    @property
    def sizes(self) -> str:
        """Data cores of an NF and of the vSwitch."""
        cores = DASH if self.row.vs_dtc is None else f"{self.row.vs_dtc}c"
        return f"{self.row.nf_size or DASH} / {cores}"

    @property
    def per_core_pps(self) -> float | None:
        """Of the most informative measure."""
        return per_core(self.row, self.best)

    @property
    def evidence(self) -> str:
        """Reasons of the verdicts."""
        return "\n".join(dict.fromkeys(row.evidence for row in self.tests if row.evidence))

    def value(self, metric: Measure) -> float | None:
        """Return a measure; None if it is unknown or only an upper bound."""
        row = self.by_metric.get(metric)
        return None if row is None else getattr(row, MEASURES[metric])


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    rows = [row for row in newest_first(shown.latest, shown.history) if row.recorded and row.world != PUBLISHED]
    if not rows and shown.characterizations:
        return None
    runs = {row.anchor: run.name for run in shown.history.runs for row in run.rows}
    lines = [_line(tests, runs, shown) for tests in _cells(rows, runs if shown.mean else {})]
    of_core, core_unit = common_unit([line.per_core_pps or 0.0 for line in lines])
    several = len({system_of(row) for row in rows}) > 1
    return {
        "lines": lines,
        "columns": list(_columns(lines)),
        "of_core": of_core,
        "core_unit": core_unit,
        "place": "Run" if shown.mean else "Testbed" if several else "",
        "frames": len({line.row.frame for line in lines}) > 1,
        "sizes": len({line.sizes for line in lines}) > 1,
        "cell_of": cell_name,
        "earlier": list(_earlier(shown)),
        "left_out": left_out if (left_out := len(shown.rows) - len(shown.latest)) > MAX_EARLIER else 0,
        "measured": shown.measured,
    }


def _earlier(shown: ReportContents) -> Iterator[tuple[str, list[TestRow]]]:
    """Yield names and tests of the runs before the latest, newest first, unless they have too many tests."""
    latest = {row.anchor for row in shown.latest}
    for run in reversed(shown.history.runs) if len(shown.rows) - len(latest) <= MAX_EARLIER else ():
        own = [row for row in run.rows if row.anchor not in latest and row.recorded and row.world != PUBLISHED]
        if own:
            yield run.name, own


def _cells(rows: Sequence[TestRow], runs: Mapping[str, str]) -> list[list[TestRow]]:
    """Tests by cell, and by run where runs are given; further tests of one type are lines of their own."""
    cells: dict[Hashable, list[dict[str, TestRow]]] = {}
    for row in rows:
        lines = cells.setdefault((runs.get(row.anchor), _place(row)), [])
        kind = row.test_type or row.test_name
        line = next((each for each in lines if kind not in each), None)
        if line is None:
            lines.append(line := {})
        line[kind] = row
    return [list(line.values()) for lines in cells.values() for line in lines]


def _place(row: TestRow) -> Hashable:
    """The cell of a test; the test itself where it has none."""
    if row.dimensions is None:
        return row.anchor
    frame = (row.frame or "").partition(" ")[0].upper()
    return system_of(row), row.service_type, row.dimensions, row.nf_size, row.vs_dtc, frame


def _line(tests: Sequence[TestRow], runs: Mapping[str, str], shown: ReportContents) -> ResultLine:
    by_metric = {}
    for metric in MEASURES:
        found = [row for row in tests if is_measured(row, metric)]
        if found:
            by_metric[metric] = next((row for row in found if asks_for(row, metric)), found[0])
    latencies = (p99_at_half_pdr(shown.evidence.latencies.get(row.anchor, ())) for row in tests)
    return ResultLine(
        tuple(tests),
        runs.get(tests[0].anchor, ""),
        by_metric,
        max((each for each in latencies if each is not None), default=None),
        _limits(tests, by_metric),
    )


def _limits(tests: Sequence[TestRow], by_metric: Mapping[Measure, TestRow]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Verdicts by what they are about, without the names of measures if all of a cell have the same one."""
    found: dict[tuple[str, ...], list[str]] = {}
    for metric in THROUGHPUTS:
        row = by_metric.get(metric)
        if row is not None and row.status == "PASS":
            shared = ("oversubscribed",) if row.oversubscribed else ()
            kinds = tuple(dict.fromkeys((*verdict_of(row, metric), *shared)))
            found.setdefault(kinds, []).append(metric)
    for row in tests:
        if row.status == "PASS" and (kinds := tuple(row.latency_verdict.split())) not in ((), ("measured",)):
            found.setdefault(kinds, []).append("p99")
        if row.status != "PASS":
            ended = "skipped" if row.status == "SKIP" else "failed"
            found.setdefault(tuple(dict.fromkeys((ended, *row.verdicts.split()))), []).append(row.test_type or "")
    return tuple((", ".join(names) if len(found) > 1 else "", kinds) for kinds, names in found.items())


def _columns(lines: Sequence[ResultLine]) -> Iterator[ResultColumn]:
    """Yield the measures of any cell; all rates have one unit."""
    measured = {metric for line in lines for metric in line.by_metric}
    rates = [line.value(metric) or 0.0 for line in lines for metric in THROUGHPUTS]
    factor, unit = common_unit(rates)
    for throughput in THROUGHPUTS:
        if throughput not in measured:
            continue
        for metric in beside(throughput, (row for line in lines for row in line.tests)):
            if metric.unit == PPS:
                yield ResultColumn(metric, factor, unit, f"{metric.lower()}_pps")
            else:
                yield ResultColumn(metric, 0.0, "", MEASURES[metric])


PAGE = Page("results", "Results", _build)
