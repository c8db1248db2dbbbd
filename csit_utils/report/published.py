"""Figures of papers beside one's own: a table, bars, and for profiles the published functions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import PurePath
from statistics import fmean

import numpy as np

from csit_utils.dataset.papers import Paper, PublishedFigure
from csit_utils.report.characterized import View, kind_words
from csit_utils.report.figures import Figure, Json
from csit_utils.report.units import digits3, percent
from csit_utils.studies.sweep.points import FIRST_SCALE, NAMES, axes, shown
from resources.libraries.python.model.characterization import Characterization, Kind
from resources.libraries.python.studies.interference.model.record import Interference
from resources.libraries.python.studies.sweep.analysis.profile_queries import measured_rates, value_at
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS
from resources.libraries.python.studies.sweep.model.profile import Metric, Profile

_ON_A_LINE = 120


@dataclass(frozen=True)
class Own:
    """A figure of one's own."""

    view: View
    value: float
    unit: str

    @property
    def text(self) -> str:
        """With its unit."""
        return f"{digits3(self.value)} {self.unit}".strip()


@dataclass(frozen=True)
class Row:
    """A published figure, and those of one's own that are like it."""

    figure: PublishedFigure
    own: tuple[Own, ...]

    @property
    def text(self) -> str:
        """The published figure with its unit."""
        return f"{digits3(self.figure.value)} {self.figure.unit}".strip()

    def change(self, own: Own) -> str:
        """One's own against the published one."""
        return percent(own.value / self.figure.value - 1, signed=True)


@dataclass(frozen=True)
class Section:
    """A paper on a page."""

    paper: Paper
    rows: tuple[Row, ...]
    figures: tuple[Figure, ...]


def sections(papers: Sequence[Paper], kind: Kind, found: Sequence[View]) -> list[Section]:
    """Every paper that has figures for a page, with what the page's records have beside them."""
    made = []
    for paper in papers:
        rows = tuple(Row(figure, tuple(_own(figure, found))) for figure in paper.of(kind))
        if rows:
            plots = (_bars(paper, kind, rows), _functions(paper, kind, found))
            made.append(Section(paper, rows, tuple(plot for plot in plots if plot is not None)))
    return made


def _own(figure: PublishedFigure, found: Sequence[View]) -> Iterator[Own]:
    if figure.match:
        for view in found:
            if (value := _VALUES[figure.kind](view.record, figure)) is not None:
                yield Own(view, value, figure.unit)


def _capacity(record: Characterization, figure: PublishedFigure) -> float | None:
    """Of the same size under calls of the same kind."""
    sizing = record.sizing
    if sizing is None:
        return None
    calls = {PurePath(sizing.workload.generator).stem, *(each.chosen for each in sizing.workload.options.values())}
    if figure.condition not in calls:
        return None
    return next((size.capacity for size in sizing.sizes if size.name == figure.match), None)


def _normalized(record: Characterization, figure: PublishedFigure) -> float | None:
    """Of network functions of the same type, beside all others or beside those of a type."""
    found = record.interference
    if found is None:
        return None
    target, *competitor = figure.match.split()
    rows = [row for row in found.matrix if len(row.against) == 1 and _type(found, row.target) == target]
    if competitor:
        rows = [row for row in rows if _type(found, row.against[0]) == competitor[0]]
    return fmean(row.mean for row in rows) if rows else None


def _type(found: Interference, name: str) -> str | None:
    return next((one.type.value for one in found.spec.contenders if one.name == name), None)


def _highest_throughput(record: Characterization, figure: PublishedFigure) -> float | None:
    """Of a VNF of the same kind and mode alone, Mbit/s."""
    study = record.chain_study
    if study is None:
        return None
    names = {vnf.name for vnf in study.spec.vnfs if f"{vnf.kind} {vnf.mode}" == figure.match}
    rates = [
        run.throughput_bps
        for run in study.runs
        if len(run.chain.members) == 1 and run.chain.order[0] in names and run.throughput_bps is not None
    ]
    return max(rates) / 1e6 if rates else None


def _saturation(record: Characterization, figure: PublishedFigure) -> float | None:
    """Of a VNF of the same kind alone, Gbit/s."""
    sweep, profile = record.sweep, record.profile
    if sweep is None or [vnf.kind for vnf in sweep.vnfs] != [figure.match] or profile is None:
        return None
    return profile.break_point.rate if profile.break_point else None


_VALUES: Mapping[Kind, Callable[[Characterization, PublishedFigure], float | None]] = {
    "sizing": _capacity,
    "interference": _normalized,
    "chain_study": _highest_throughput,
    "sweep": _saturation,
}


def _bars(paper: Paper, kind: Kind, rows: Sequence[Row]) -> Figure | None:
    """Published figures and one's own side by side; None where nothing here is like them."""
    own = [(row, each) for row in rows for each in row.own]
    if not own:
        return None
    names = {id(row): ", ".join(filter(None, (row.figure.subject, row.figure.condition))) for row in rows}
    views = {each.view.anchor: each.view for _, each in own}
    data = [
        _bar(f"published, {paper.title}", [(names[id(row)], row.figure.value, row.text) for row in rows], 6),
        *(
            _bar(
                _called(view, list(views.values())),
                [(names[id(row)], each.value, each.text) for row, each in own if each.view.anchor == anchor],
                number,
            )
            for number, (anchor, view) in enumerate(views.items())
        ),
    ]
    first = rows[0].figure
    axis = f"{first.quantity}, {first.unit}" if first.unit else first.quantity
    layout = {
        "barmode": "group",
        "xaxis": {"type": "category"},
        "yaxis": {"title": {"text": escape(axis)}, "rangemode": "tozero"},
        "meta": {"width": 90 + 90 * len(rows)},
    }
    simulated = any(view.simulated for view in views.values())
    title = f"{first.quantity.capitalize()}: published by {paper.title} and found here"
    return Figure(
        f"published-{paper.name}-{kind}", title, simulated, (("all",),), {"all": {"data": data, "layout": layout}}
    )


def _called(view: View, among: Sequence[View]) -> str:
    """In a legend; by its test where titles are the same."""
    same = sum(other.title == view.title for other in among) > 1
    name = view.record.test_name if same else view.title
    return f"{name} on {view.record.testbed}{', simulated' * view.simulated}"


def _bar(name: str, points: Sequence[tuple[str, float, str]], colour: int) -> Json:
    return {
        "type": "bar",
        "name": escape(name),
        "x": [escape(where).replace(", ", "<br>").replace(" beside ", "<br>beside ") for where, _, _ in points],
        "y": [float(f"{value:.5g}") for _, value, _ in points],
        "text": [escape(f"{where}: {text}") for where, _, text in points],
        "textposition": "none",
        "hovertemplate": f"{escape(name)}<br>%{{text}}<extra></extra>",
        "meta": {"colour": colour},
    }


def _functions(paper: Paper, kind: Kind, found: Sequence[View]) -> Figure | None:
    """Published functions, and those of VNFs of the same kind here."""
    if kind != "sweep" or not paper.profiles:
        return None
    drawn = [view for view in found if _is_router(view.record)]
    own = [(_called(view, drawn), view.record.profile) for view in drawn if view.record.profile]
    published = [(f"published: {profile.name}", profile) for profile in paper.profiles]
    variants: Json = {}
    for metric in Metric:
        lines = [
            _function(name, profile, metric, 6 + number, "dash") for number, (name, profile) in enumerate(published)
        ] + [_function(name, profile, metric, number, "solid") for number, (name, profile) in enumerate(own)]
        variants[metric.value] = {"data": lines, "layout": axes(metric, FIRST_SCALE[metric])}
    simulated = any(view.simulated for view in drawn)
    title = f"Functions of a router: published by {paper.title} and fitted here"
    return Figure(f"published-{paper.name}-functions", title, simulated, (tuple(variants),), variants)


def _is_router(record: Characterization) -> bool:
    """Whether it has the functions of a router alone."""
    kinds = [kind_words(vnf) for vnf in record.sweep.vnfs] if record.sweep else []
    return record.profile is not None and kinds == ["router"]


def _function(name: str, profile: Profile, metric: Metric, colour: int, dash: str) -> Json:
    rates = measured_rates(profile)
    hover = f"{escape(name)}<br>%{{x:.4~g}} Gbit/s: {NAMES[metric]} %{{y:.4~g}} {UNITS[metric]}<extra></extra>"
    on_line = np.linspace(*rates, _ON_A_LINE).tolist() if rates else []
    return {
        "type": "scatter",
        "mode": "lines",
        "name": escape(name),
        "x": [shown(rate, "") for rate in on_line],
        "y": [shown(value_at(profile, metric, rate), FIRST_SCALE[metric]) for rate in on_line],
        "hovertemplate": hover,
        "line": {"width": 2, "dash": dash},
        "meta": {"colour": colour},
    }
