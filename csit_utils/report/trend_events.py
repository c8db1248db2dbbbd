"""Events as text (changed cells, time, amount, and possible causes), and changes in the newest run of each testbed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from csit_utils.analysis.causes import outcomes
from csit_utils.analysis.comparisons.comparability import environment_differences
from csit_utils.analysis.runs import History, Run
from csit_utils.analysis.trends.events import CellEvent, EventGroup, events, grouped
from csit_utils.analysis.trends.trend import Trend
from csit_utils.dataset.rows import TestRow
from csit_utils.report.environments import words
from csit_utils.report.links import CellNames, test_href
from csit_utils.report.units import DASH, amount, percent
from resources.libraries.python.model.result import Environment
from resources.libraries.python.quantities import counted

_MAX_NAMES = 4
_MAX_CAUSES = 3


class EventView:
    """One cell of a group."""

    def __init__(self, event: CellEvent, names: CellNames) -> None:
        cell = event.trend.cell
        self.address, self.name, self.metric = names.address(cell), names.short(cell), str(cell.metric)
        self.change, self.ratio = percent(event.change, signed=True), event.change
        self.before_pps, self.after_pps = event.level_before_pps, event.level_after_pps
        self.before = amount(cell.metric, cell.series, event.level_before_pps)
        self.after = amount(cell.metric, cell.series, event.level_after_pps)
        self.last_before, self.first_after = event.before.row, event.after.row


class GroupView:
    """Cells of one system that changed together."""

    def __init__(self, group: EventGroup, names: CellNames, environments: Mapping[str, Environment]) -> None:
        first = min(group.events, key=lambda each: each.after.at)
        system = group.system
        self.system, self.testbed, self.simulated = system.title, system.testbed, system.simulated
        self.day = f"{first.after.at:%Y-%m-%d}"
        self.up, self.better, self.acknowledged = group.up, group.better, group.acknowledged
        self.doubt = group.doubt
        """Why the change is not confirmed: `suspected` or `probable`; empty for a step."""
        self.what = _what(group, names)
        self.change = _change(group)
        self.causes = (
            *([f"same night as {group.events[0].probable} others"] if group.events[0].probable else []),
            *sorted({event.relation for event in group.events} - {""})[:_MAX_CAUSES],
            *causes(first.before.row, first.after.row, environments),
        )
        """Steps at the same time, acknowledged ones that these repeat or undo, and differences to the run before."""
        self.events = tuple(EventView(each, names) for each in group.events)

    @property
    def kind(self) -> str:
        """Kind of the change."""
        marks = (
            self.doubt,
            "acknowledged" if self.acknowledged else "",
            "progression" if self.better else "regression",
        )
        return " ".join(filter(None, marks))


def event_groups(
    found: Sequence[CellEvent], names: CellNames, environments: Mapping[str, Environment]
) -> list[GroupView]:  # fmt: skip
    """Return groups of events, newest first."""
    return [GroupView(group, names, environments) for group in grouped(found)]


def _what(group: EventGroup, names: CellNames) -> str:
    """A few cells by name, many by number and service types."""
    cells = list(dict.fromkeys(names.short(each.trend.cell) for each in group.events))
    if len(cells) <= _MAX_NAMES:
        return ", ".join(sorted(cells))
    types = sorted({each.trend.cell.series.service_type for each in group.events})
    return f"{group.cells} cells of {', '.join(types)}"


def _change(group: EventGroup) -> str:
    """The change, or the range of changes, the smallest first."""
    changes = sorted((percent(each.change, signed=True) for each in group.events), key=len)
    low = percent(min((each.change for each in group.events), key=abs), signed=True)
    high = percent(max((each.change for each in group.events), key=abs), signed=True)
    return changes[0] if len(changes) == 1 or low == high else f"{low} to {high}"


def causes(before: TestRow, after: TestRow, environments: Mapping[str, Environment]) -> tuple[str, ...]:
    """Return what differs in the second of two tests: version, revision of the suite, environment."""
    pairs = (("", before.version, after.version), ("suite ", before.revision, after.revision))
    changed = [f"{name}{one or DASH} → {other or DASH}" for name, one, other in pairs if one != other]
    known = environments.get(before.environment or ""), environments.get(after.environment or "")
    if known[0] is not None and known[1] is not None and before.environment != after.environment:
        found = environment_differences(known[0], known[1])
        texts = [f"{words(each.path)} {each.a or DASH} → {each.b or DASH}" for each in found if "git_" not in each.path]
        changed += texts[:_MAX_CAUSES]
        changed += [f"{len(texts) - _MAX_CAUSES} more in the environment"] if len(texts) > _MAX_CAUSES else []
    return tuple(changed)


_RECENT = 14
"""Number of last runs of a testbed: a step takes three to be confirmed, and readers may have missed some."""
_MAX = 6
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
    """Return unexplained steps of the last runs, tests whose outcome changed, and changes of the environment.

    `history`: runs of density tests.
    `whole`: all runs, including those without density tests.
    """
    return list(_changed(history, whole, trends, environments))


def _changed(
    history: History, whole: History, trends: Sequence[Trend], environments: Mapping[str, Environment]
) -> Iterator[Changed]:
    pairs = [(testbed, history.previous(testbed), history.latest(testbed)) for testbed in history.testbeds]
    recent = {run.rows[0].run for testbed in whole.testbeds for run in whole.of(testbed)[-_RECENT:]}
    found = [each for each in events(trends) if each.after.row.run in recent and each.acknowledged is None]
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
        group.testbed, group.simulated, text, f"#{group.events[0].address}", group.better, not group.doubt
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
        ("passed again", found.passing, True),
    ):
        for row in rows[:_MAX]:
            yield _line(after, row, f"{_cell(row)} {verb}", better=better)
        if len(rows) > _MAX:
            yield _line(after, rows[_MAX], f"{counted(len(rows) - _MAX, 'more test')} {verb}", better=better)


def _line(run: Run, row: TestRow, text: str, *, better: bool) -> Changed:
    return Changed(run.testbed.name, run.testbed.simulated, text, test_href(row), better)


def _cell(row: TestRow) -> str:
    if row.service_type is None or row.dimensions is None:
        return row.test_name
    return f"{row.service_type} {row.dimensions} {row.test_type or ''}".strip()
