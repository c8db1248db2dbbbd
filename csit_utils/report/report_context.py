"""Data shared by the pages of a report, computed once, and the runs that they show."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING

from csit_utils.analysis.cells import CellMetric
from csit_utils.analysis.runs import (
    ComparisonSide,
    History,
    Run,
    SideKind,
    TestbedKey,
    called,
    history,
    latest_runs,
    rows_of,
)
from csit_utils.analysis.trends.trend import Trend, trends
from csit_utils.dataset.ledger import NONE, Acknowledged
from csit_utils.dataset.reference import Paper
from csit_utils.dataset.rows import OWN, PUBLISHED, InstanceRow, LatencyRow, TestRow
from csit_utils.report.outcomes import Tally, tally
from csit_utils.report.study import View
from csit_utils.report.trend_events import Changed, changed
from csit_utils.studies.density.analysis.answers import AnswerEvidence, evidence
from csit_utils.studies.density.blocks import SystemView, system_views
from csit_utils.studies.density.speedup import SpeedupLimits, generator_limit
from csit_utils.studies.registry import measured_rows, views
from resources.libraries.python.planning.linerate import line_rate_pps

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored


class Details(StrEnum):
    """Tests that get their own page."""

    ALL = "all"
    LATEST = "latest"
    NONE = "none"


MAX_PAGES = 2_000
"""Number of tests up to which each has its own page by default."""


class ReportContents:
    """The contents of a report, and data derived from them.

    Pages of the present state (density, latency, results) show `latest`; the page of failures `rows`, pages over time
    (compare, trend) take `figured`.

    `mean`: show means over all runs instead of the latest run.
    `details`: tests with their own page; None: all up to `MAX_PAGES`, beyond that those of the latest runs, also up
      to `MAX_PAGES`, and those that stand out.
    `compared`: names of the two initial sides of the compare page, from its `comparable`.
    `papers`: published figures to show beside other studies.
    `acknowledged`: steps of trends whose cause is known.
    """

    def __init__(
        self,
        contents: "Stored",
        *,
        mean: bool = False,
        details: Details | None = None,
        compared: tuple[str, str] | None = None,
        papers: Sequence[Paper] = (),
        acknowledged: Acknowledged = NONE,
    ) -> None:
        self.contents = contents
        self.mean = mean
        self.compared = compared
        self.papers = papers
        self.acknowledged = acknowledged
        self._details = details

    @property
    def rows(self) -> Sequence[TestRow]:
        """One row per test of all runs."""
        return self.contents.tests

    @cached_property
    def service_types(self) -> Sequence[str]:
        """Service types of all tests, sorted."""
        return sorted({row.service_type for row in self.rows if row.service_type})

    @cached_property
    def runs(self) -> Sequence[Run]:
        """Runs of `latest`, oldest first; all runs with `mean`."""
        return self.history.runs if self.mean else latest_runs(self.history)

    @cached_property
    def latest(self) -> Sequence[TestRow]:
        """Tests of the latest run of each testbed; of all runs with `mean`."""
        return self.rows if len(self.runs) == len(self.history.runs) else rows_of(self.runs, self.history, self.rows)

    @cached_property
    def latest_anchors(self) -> Collection[str] | None:
        """Anchors of the latest tests; None for all."""
        return None if len(self.latest) == len(self.rows) else {row.anchor for row in self.latest}

    @cached_property
    def evidence(self) -> AnswerEvidence:
        """Counts by instance, and latency, of the latest tests, for answers; with histograms unless these are all."""
        found = self.contents.rows(InstanceRow, LatencyRow, anchors=self.latest_anchors)
        return evidence(self.latest, found, self.contents.refused)

    @cached_property
    def systems(self) -> Sequence[SystemView]:
        """A view per system, measured ones first."""
        limits = partial(limits_of, self.contents)
        return system_views(self.latest, self.contents.refused, self.evidence, limits)

    @cached_property
    def relatives(self) -> Mapping[tuple[str, str], str]:
        """Throughput relative to 1x1 by test and metric, as in the heat maps."""
        return {
            (cell.test, metric.metric): cell.note
            for view in self.systems
            for block in view.blocks
            for metric in block.metrics
            for each in metric.maps
            for line in each.rows
            for cell in line
            if cell.test and cell.note
        }

    @cached_property
    def by_anchor(self) -> Mapping[str, TestRow]:
        """All tests by anchor."""
        return {row.anchor: row for row in self.rows}

    @cached_property
    def changes(self) -> Sequence[Changed]:
        """Changes against the run before, most important first; empty without one."""
        return changed(self.history, self.whole_history, self.trends, self.contents.environments)

    @cached_property
    def has_earlier_runs(self) -> bool:
        """Whether a testbed has a run to compare the latest one with."""
        return any(self.whole_history.previous(testbed) for testbed in self.whole_history.testbeds)

    @cached_property
    def paged(self) -> Collection[str]:
        """Anchors of tests with their own page."""
        own = [row for row in self.rows if row.recorded and row.origin == OWN]
        if self._details is Details.NONE:
            return frozenset()
        if self._details is Details.ALL or (self._details is None and len(own) <= MAX_PAGES):
            return {row.anchor for row in own}
        latest = {row.anchor for row in self.latest}
        if self._details is Details.LATEST:
            return {row.anchor for row in own if row.anchor in latest}
        if self._details is None and len(latest) > MAX_PAGES:
            latest = set()
        out = latest | {line.href.removeprefix("#") for line in self.changes}
        return {row.anchor for row in own if row.anchor in out or row.status != "PASS" or row.quarantined}

    @cached_property
    def history(self) -> History:
        """Runs of each testbed."""
        return history(self.rows)

    @cached_property
    def figured(self) -> Sequence[TestRow]:
        """All figures that are compared and followed over time: those of tests and of other studies."""
        return [*self.rows, *measured_rows(self.contents.characterizations)]

    @cached_property
    def whole_history(self) -> History:
        """Runs of each testbed, including those without density tests."""
        return history(self.figured) if self.contents.characterizations else self.history

    @cached_property
    def suggested_pairs(self) -> Sequence[tuple[ComparisonSide, ComparisonSide]]:
        """Pairs of runs that most readers want to compare."""
        return list(suggested_pairs(self.whole_history, self.trends))

    @cached_property
    def trends(self) -> Sequence[Trend]:
        """Trends of all cells."""
        return trends(self.figured, acknowledged=self.acknowledged)

    @cached_property
    def trends_by_cell(self) -> Mapping[CellMetric, Trend]:
        """The same by cell; empty without an earlier run."""
        return {trend.cell: trend for trend in self.trends} if self.has_earlier_runs else {}

    @cached_property
    def characterizations(self) -> Sequence[View]:
        """Records of other studies, the newest of each."""
        return views(self.contents.characterizations)

    @cached_property
    def simulated(self) -> bool:
        """Whether any result is simulated."""
        return any(row.simulated for row in self.rows) or any(view.record.simulated for view in self.characterizations)

    @cached_property
    def measured(self) -> bool:
        """Whether any result is measured, here or by those who published it."""
        return any(row.simulated is False for row in self.rows) or any(
            not view.record.simulated for view in self.characterizations
        )

    @cached_property
    def tally(self) -> Tally:
        """Tests of the latest runs, and the newest of each other study, by outcome."""
        own = (row for row in self.latest if row.world != PUBLISHED)
        return tally(own, (view.item for view in self.characterizations))

    @cached_property
    def not_passed(self) -> Sequence[TestRow]:
        """Tests that failed or were skipped."""
        return [row for row in self.rows if row.status != "PASS"]


def limits_of(contents: "Stored", rows: Sequence[TestRow], frame: str) -> SpeedupLimits:
    """Return the line rate of the generator's links, if the topology has it, and the highest rate that was offered.

    `contents`: contents with the record of one of the tests.
    `rows`: tests of one system.
    """
    own = [row for row in rows if row.frame == frame]
    return SpeedupLimits(_line_pps(contents, own), generator_limit(own))


def _line_pps(contents: "Stored", rows: Sequence[TestRow]) -> float | None:
    row = next((row for row in rows if row.recorded and row.planned and row.origin == OWN), None)
    if row is None:
        return None
    result = contents.record(row.anchor)
    if result.plan is None:
        return None
    nics = {(port.nic.port, port.nic.rate_bps) for port in result.plan.ports("generator") if port.nic is not None}
    if not nics or None in {rate_bps for _, rate_bps in nics}:
        return None
    # Each link carries one direction; rates of tests are the sum of both.
    return line_rate_pps(sum(rate_bps or 0 for _, rate_bps in nics), result.asked.frame)


_LISTED = 5
"""Runs that are named."""


def runs_shown(shown: ReportContents) -> Sequence[str]:
    """Return a sentence for each testbed with several runs, and one on runs that the report leaves out."""
    chosen = {run.name for run in shown.runs}
    found = [shown.contents.left_out] if shown.contents.left_out else []
    for testbed in shown.history.testbeds:
        every = shown.history.of(testbed)
        own = [run for run in every if run.name in chosen]
        if len(every) > 1:
            found.append(_sentence(testbed, own, every, mean=shown.mean))
    return found


def newest_first(rows: Sequence[TestRow], history: History) -> list[TestRow]:
    """Return the tests of the newest run first; those without a run last."""
    places = {row.anchor: number for number, run in enumerate(history.runs) for row in run.rows}
    return sorted(rows, key=lambda row: -places.get(row.anchor, -1))


def _listed(names: Sequence[str]) -> str:
    """Names of runs without repetition; of more than five only the first four and the last."""
    different = list(dict.fromkeys(names))
    shown = different if len(different) <= _LISTED else [*different[: _LISTED - 1], "…", different[-1]]
    return ", ".join(shown)


def _sentence(testbed: TestbedKey, own: Sequence[Run], every: Sequence[Run], *, mean: bool) -> str:
    if mean:
        return f"{testbed.name}: cells are means over {len(every)} runs, {every[0].name} to {every[-1].name}."
    names = _listed([run.name for run in own])
    if len(own) == len(every):
        return f"{testbed.name}: {len(own)} runs of different tests, combined ({names})."
    # Names of runs begin with that of their testbed.
    return f"Shown: {names}, the latest of {len(every)} runs."


_MAX_RUNS = 10
"""Runs of a baseline."""
_FEWEST_RUNS = 3
"""Fewest runs for an estimate of the noise."""

_Pair = tuple[ComparisonSide, ComparisonSide]


def suggested_pairs(history: History, trends: Sequence[Trend]) -> Iterator[_Pair]:
    """Yield pairs of each testbed, then pairs of testbeds; some of them may have no cell in common."""
    newest = latest_runs(history)
    for testbed in history.testbeds:
        for run in reversed([run for run in newest if run.testbed == testbed]):
            yield from _before(history, run, trends)
        now = history.latest(testbed)
        released = [side for side in history.sides if side.kind in (SideKind.LABEL, SideKind.VERSION)]
        yield from ((side, _one(now)) for side in released if side.runs[0].testbed == testbed and now not in side.runs)
    whole = [next(side for side in history.sides if side.runs == history.of(one)) for one in history.testbeds]
    for a, b in combinations(whole, 2):
        if a.runs[0].simulated == b.runs[0].simulated:
            yield a, b


def _before(history: History, run: Run, trends: Sequence[Trend]) -> Iterator[_Pair]:
    """Yield the newest run of its tests against its baseline and the run before, and the runs around their last step.

    A baseline begins at that step: runs before it would hide the step, and their variation every other change.
    """
    earlier = history.earlier(run)
    if not earlier:
        return
    name, now = called(run.testbed), _one(run)
    last = "the latest" if run == history.latest(run.testbed) else run.name.removeprefix(f"{name} ")
    step = _last_step(run, trends)
    begun = next(
        (at for at, each in enumerate(earlier) if each.rows[0].run == step and at >= len(earlier) - _MAX_RUNS), 0
    )
    baseline = earlier[begun:][-_MAX_RUNS:]
    of_step = f" the step of {earlier[begun].started_at:%Y-%m-%d}" if begun else ""
    since = f" since{of_step}," if begun else ""
    if len(baseline) >= _FEWEST_RUNS:
        yield _several(f"{name}, {len(baseline)} runs{since} before {last}", baseline), now
    yield _one(earlier[-1]), now
    if begun:
        before, after = earlier[:begun][-_MAX_RUNS:], (*earlier[begun:], run)
        yield (
            _several(f"{name}, {len(before)} runs before{of_step}", before),
            _several(f"{name}, {len(after)} runs since{of_step}", after),
        )


def _last_step(run: Run, trends: Sequence[Trend]) -> str | None:
    """The run in which the last confirmed step of any cell of a run was first seen."""
    found = [
        trend.figures[trend.steps[-1].index]
        for trend in trends
        if trend.steps
        and trend.figures[-1].row.run == run.rows[0].run
        and (trend.cell.series.system.testbed, trend.cell.series.system.simulated) == (run.testbed.name, run.simulated)
    ]
    return max(found, key=lambda each: each.at).row.run if found else None


def _one(run: Run) -> ComparisonSide:
    return ComparisonSide(SideKind.RUN, run.name, (run,))


def _several(name: str, runs: tuple[Run, ...]) -> ComparisonSide:
    return ComparisonSide(SideKind.BEFORE, name, runs)
