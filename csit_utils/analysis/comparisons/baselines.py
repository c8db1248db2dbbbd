"""Pairs of sides that most readers want to compare: the newest runs with their baselines, and runs around a step."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from csit_utils.analysis.runs import ComparisonSide, History, Run, SideKind, called, latest_runs
from csit_utils.analysis.trends.trend import Trend

_MOST = 10
"""Runs of a baseline."""
_FEWEST = 3
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
    begun = next((at for at, each in enumerate(earlier) if each.rows[0].run == step and at >= len(earlier) - _MOST), 0)
    baseline = earlier[begun:][-_MOST:]
    of_step = f" the step of {earlier[begun].started_at:%Y-%m-%d}" if begun else ""
    since = f" since{of_step}," if begun else ""
    if len(baseline) >= _FEWEST:
        yield _several(f"{name}, {len(baseline)} runs{since} before {last}", baseline), now
    yield _one(earlier[-1]), now
    if begun:
        before, after = earlier[:begun][-_MOST:], (*earlier[begun:], run)
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
