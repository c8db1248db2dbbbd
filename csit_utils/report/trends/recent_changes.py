"""Changes in the newest run of each testbed, for the overview."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from csit_utils.analysis.causes import outcomes
from csit_utils.analysis.runs import History, Run
from csit_utils.analysis.trends.events import events
from csit_utils.analysis.trends.trend import Trend
from csit_utils.dataset.rows import TestRow
from csit_utils.report.links import test_href
from csit_utils.report.trends.cell_names import CellNames
from csit_utils.report.trends.event_view import GroupView, causes, event_groups
from resources.libraries.python.model.result import Environment

_RECENT = 14
"""Number of last runs of a testbed: a step takes three to be confirmed, and readers may have missed some."""
_MOST = 6
"""Largest number of lines of one kind per testbed; the trend page has all."""


@dataclass(frozen=True)
class Changed:
    """One change."""

    testbed: str
    simulated: bool
    text: str
    href: str
    better: bool
    sure: bool = True
    """False for a change in the newest night only, which may be an outlier."""


def changed(
    history: History, whole: History, trends: Sequence[Trend], environments: Mapping[str, Environment]
) -> Sequence[Changed]:
    """Return steps of the last runs, tests whose outcome changed, and changes of the environment.

    Args:
        history: Runs of density tests.
        whole: All runs, including those without density tests.
        trends: Trends of all cells.
        environments: By digest.
    """
    return list(_changed(history, whole, trends, environments))


def _changed(
    history: History, whole: History, trends: Sequence[Trend], environments: Mapping[str, Environment]
) -> Iterator[Changed]:
    pairs = [(testbed, history.previous(testbed), history.latest(testbed)) for testbed in history.testbeds]
    recent = {run.rows[0].run for testbed in whole.testbeds for run in whole.of(testbed)[-_RECENT:]}
    found = [each for each in events(trends) if each.after.row.run in recent]
    names = CellNames(trend.cell for trend in trends)
    steps = event_groups(found, names, environments)
    yield from sorted(map(_step, steps), key=lambda line: (line.sure, line.better))
    for _, before, after in pairs:
        if before is not None:
            yield from _ended(before, after)
            if before.environments != after.environments:
                yield _environment(before, after, environments)


def _step(group: GroupView) -> Changed:
    text = f"{group.kind} since {group.day}: {group.what} {group.change}"
    if group.causes:
        text += f" ({group.causes[0]})"
    return Changed(
        group.testbed, group.simulated, text, f"#{group.events[0].address}", group.up, not group.suspected
    )  # fmt: skip


def _environment(before: Run, after: Run, environments: Mapping[str, Environment]) -> Changed:
    found = causes(before.rows[-1], after.rows[-1], environments)
    text = f"another environment than in {before.name}" + (f": {', '.join(found)}" if found else "")
    return Changed(after.testbed.name, after.simulated, text, "#environment", better=True)


def _ended(before: Run, after: Run) -> Iterator[Changed]:
    found = outcomes(before.rows, after.rows)
    for verb, rows, better in (
        ("quarantined since", found.quarantined, False),
        ("failed, passed before", found.failing, False),
        ("passes again", found.passing, True),
    ):
        for row in rows[:_MOST]:
            yield _line(after, row, f"{_cell(row)} {verb}", better=better)
        if len(rows) > _MOST:
            yield _line(after, rows[_MOST], f"{len(rows) - _MOST} more tests {verb}", better=better)


def _line(run: Run, row: TestRow, text: str, *, better: bool) -> Changed:
    return Changed(run.testbed.name, run.testbed.simulated, text, test_href(row), better)


def _cell(row: TestRow) -> str:
    if row.service_type is None or row.dimensions is None:
        return row.test_name
    return f"{row.service_type} {row.dimensions} {row.test_type or ''}".strip()
