"""Comparison of runs, releases or testbeds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from urllib.parse import quote

from csit_utils.analysis.comparison import CONFIDENCE, FALSE_CALLS, Comparison, Outcome, compare
from csit_utils.analysis.runs import ComparisonSide, History, SideKind
from csit_utils.report.compare_data import data
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page

_MOST_PAIRS = 12


@dataclass(frozen=True)
class Pair:
    """A suggested comparison."""

    a: ComparisonSide
    b: ComparisonSide
    found: Comparison

    @property
    def href(self) -> str:
        """Link to its table."""
        return f"#compare={quote(self.a.name)}&with={quote(self.b.name)}"

    @property
    def simulated(self) -> bool:
        """Whether any result is simulated."""
        return any(run.simulated for run in (*self.a.runs, *self.b.runs))

    def count(self, outcome: Outcome) -> int:
        """Return the number of cells with an outcome."""
        return len(self.found.of(outcome))


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    history = shown.whole_history
    if len(history.sides) < 2:
        return None
    chosen = [history.named(name) for name in shown.compared or ()]
    first = [(chosen[0], chosen[1])] if chosen and chosen[0] and chosen[1] else []
    sides = [*first, *_pairs(history)][:_MOST_PAIRS]
    rows = {side.name: [row for run in side.runs for row in run.rows] for pair in sides for side in pair}
    return {
        "pairs": [Pair(a, b, compare(rows[a.name], rows[b.name])) for a, b in sides],
        "outcomes": list(Outcome),
        "confidence": CONFIDENCE,
        "false_calls": FALSE_CALLS,
        "data": data(history, shown.contents.environments),
    }


def _pairs(history: History) -> Iterator[tuple[ComparisonSide, ComparisonSide]]:
    """For each testbed the latest run against those before, the one before, and each release; pairs of testbeds."""
    for testbed in history.testbeds:
        latest, previous = history.latest(testbed), history.previous(testbed)
        now = ComparisonSide(SideKind.RUN, latest.name, (latest,))
        before = history.before(testbed)
        if before is not None:
            yield before, now
        if previous is not None:
            yield ComparisonSide(SideKind.RUN, previous.name, (previous,)), now
        released = [side for side in history.sides if side.kind in (SideKind.LABEL, SideKind.VERSION)]
        yield from ((side, now) for side in released if side.runs[0].testbed == testbed and latest not in side.runs)
    whole = [
        next(side for side in history.sides if side.runs == history.of(testbed)) for testbed in history.testbeds
    ]  # fmt: skip
    for a, b in combinations(whole, 2):
        if a.runs[0].simulated == b.runs[0].simulated:
            yield a, b


PAGE = Page("compare", "Compare", _build)
