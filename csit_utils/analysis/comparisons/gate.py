"""Gate of a candidate: it fails if a cell has a significant regression above the tolerance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from csit_utils.analysis.cells import CellMetric, when
from csit_utils.analysis.comparisons.comparison import DIFFERENT, Change, Comparison, Outcome
from csit_utils.analysis.grouping import Series, asks_for, series_of
from csit_utils.analysis.runs import TestbedKey, history
from csit_utils.dataset.ledger import NONE, Acknowledged, AcknowledgedStep
from csit_utils.dataset.rows import UNBOUNDED, TestRow


def runs_before(candidate: Sequence[TestRow], known: Sequence[TestRow], count: int) -> list[TestRow]:
    """Return tests of the last runs on the candidate's testbeds before the candidate.

    `candidate`: tests to judge; they may be among `known`.

    Returns:
        Oldest run first; empty without earlier runs, or if start times are unknown.
    """
    past = history(known)
    begun: dict[TestbedKey, datetime] = {}
    for run in history(candidate).runs:  # oldest first
        if run.started_at is not None:
            begun.setdefault(run.testbed, run.started_at)
    earlier = [
        [run for run in past.of(testbed) if run.started_at is not None and run.started_at < start][-count:]
        for testbed, start in begun.items()
    ]
    return [row for runs in earlier for run in runs for row in run.rows]


@dataclass(frozen=True)
class UndecidedCell:
    """A cell that cannot be judged."""

    name: str
    series: Series
    reason: str
    failed: bool = False
    """Whether the candidate's test failed."""


@dataclass(frozen=True)
class Decision:
    """Cells of a candidate by result of the gate."""

    fallen: tuple[Change, ...]
    """Largest regression first."""
    kept: tuple[Change, ...]
    unjudged: tuple[UndecidedCell, ...]

    @property
    def judged(self) -> int:
        """Number of judged cells."""
        return len(self.fallen) + len(self.kept)


def decide(
    comparison: Comparison, candidate: Sequence[TestRow], tolerance: float = 0.0, acknowledged: Acknowledged = NONE
) -> Decision:
    """Judge all cells.

    `candidate`: tests of the candidate, for the reason of a missing figure.
    `tolerance`: tolerated relative change for the worse, at least 0.
    `acknowledged`: steps whose cause is known, for the reason of a missing baseline.
    """
    judged = comparison.of(*DIFFERENT, Outcome.NO_CHANGE)
    begun = min(map(when, candidate), default=None)
    fallen = [each for each in judged if each.outcome in DIFFERENT and each.worsening > tolerance]
    return Decision(
        tuple(sorted(fallen, key=lambda each: -each.worsening)),
        tuple(each for each in judged if each not in fallen),
        (
            *(
                UndecidedCell(each.name, each.b.series, _why(each))
                for each in comparison.of(Outcome.CANNOT_TELL, Outcome.UNLIKE)
            ),
            *(_missing(cell, candidate) for cell in comparison.only_a),
            *(
                UndecidedCell(cell.name, cell.series, _without_baseline(acknowledged.get(cell.name, ()), begun))
                for cell in comparison.only_b
            ),
        ),
    )


def _without_baseline(steps: Sequence[AcknowledgedStep], begun: datetime | None) -> str:
    last = max((step for step in steps if begun and step.since <= begun), key=lambda step: step.since, default=None)
    since = f" since the acknowledged step of {last.day} ({last.cause})" if last else ""
    return f"the baseline has no figure{since}"


def _why(change: Change) -> str:
    if change.outcome is Outcome.UNLIKE:
        return "; ".join(change.remarks)
    bounds = "no bounds" if change.metric in UNBOUNDED else "bounds that are hardly apart"
    return f"one run per side, too few cells to estimate the noise, and {bounds}"


def _missing(cell: CellMetric, candidate: Sequence[TestRow]) -> UndecidedCell:
    """A cell for which the candidate has no figure."""
    for row in candidate:
        here = (row.service_type, row.dimensions) == (cell.series.service_type, cell.dimensions)
        if here and row.status != "PASS" and asks_for(row, cell.metric) and _may_be_of(row, cell.series):
            why = " ".join(row.message.split())
            reason = f"the candidate's test ended with {row.status}{f': {why}' if why else ''}"
            return UndecidedCell(cell.name, cell.series, reason, failed=row.status != "SKIP")
    return UndecidedCell(cell.name, cell.series, "the candidate has no figure")


def _may_be_of(row: TestRow, series: Series) -> bool:
    """Whether a failed test belongs to a series, as far as is known: without figures, other tools name no goals."""
    own = series_of(row)
    return own is None or (own if own.goals else replace(own, goals=series.goals)) == series
