"""Plots of what generator scripts report beside the indicator: by load, and by a numeric option of the workload."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product

from csit_utils.report.figures import SYMBOLS, Figure, Json, axes, one_choice, scatter
from csit_utils.report.study import View
from resources.libraries.python.model.service.spec import MeasuredSize, Offered, Sizing
from resources.libraries.python.studies.sizing.model.record import SizingRecord

_INDICATOR = "indicator"


def reported_figure(anchor: str, record: SizingRecord, sizing: Sizing) -> Figure | None:
    """A choice for each figure, a line for each size; None where the script prints the indicator only."""
    unit = sizing.workload.unit
    variants: Json = {}
    for name in sizing.figure_names:
        lines = [
            _line(size.name, number, [(row.load, row.figures[name]) for row in size.offered if name in row.figures])
            for number, size in enumerate(sizing.sizes)
        ]
        variants[name] = {
            "data": [line for line in lines if line["x"]],
            "layout": axes(f"offered load, {unit}", name),
        }
    title = f"{sizing.deployment.vnf_name}: values reported by the generator script against offered load"
    return one_choice(f"{anchor}-reported", title, variants, simulated=record.simulated)


@dataclass(frozen=True)
class _ReportedSeries:
    """Sizings that differ in one option of the workload only, whose values are numbers."""

    option: str
    sizings: Mapping[float, Sizing]
    """By the option's value, lowest first."""
    first: View


_Key = tuple[str, bool, str, str, str]
"""Testbed, whether it is simulated, name of the option, and all else of deployment and workload."""


def option_figures(found: Sequence[View]) -> list[Figure]:
    """A figure for each series over an option, such as the share of malicious traffic."""
    return [
        figure
        for number, series in enumerate(_series(found), 1)
        if (figure := _over_option(number, series)) is not None
    ]


def _series(found: Sequence[View]) -> Iterator[_ReportedSeries]:
    groups: dict[_Key, dict[float, Sizing]] = {}
    firsts: dict[_Key, View] = {}
    for view in found:
        sizing = view.record.sizing
        if sizing is None:
            continue
        for name, option in sizing.workload.options.items():
            if (value := _number(option.chosen)) is None:
                continue
            options = {key: each for key, each in sizing.workload.options.items() if key != name}
            rest = sizing.workload.model_copy(update={"options": options})
            key = (view.record.testbed, view.record.simulated, name, repr(sizing.deployment), repr(rest))
            firsts.setdefault(key, view)
            groups.setdefault(key, {}).setdefault(value, sizing)  # the first of several of one value
    for key, sizings in groups.items():
        if len(sizings) > 1:
            yield _ReportedSeries(key[2], dict(sorted(sizings.items())), firsts[key])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _over_option(number: int, series: _ReportedSeries) -> Figure | None:
    sizings = list(series.sizings.values())
    names = (*dict.fromkeys(name for sizing in sizings for name in sizing.figure_names), _INDICATOR)
    loads = sorted({row.load for sizing in sizings for size in sizing.sizes for row in size.offered}, reverse=True)
    sizes = list(dict.fromkeys(size.name for sizing in sizings for size in sizing.sizes))
    unit = sizings[0].workload.unit
    variants: Json = {}
    for name, load in product(names, loads):
        lines = [_line(size, index, _points(series, size, name, load)) for index, size in enumerate(sizes)]
        axis = f"performance indicator, {unit}" if name == _INDICATOR else name
        variants[f"{name}|{_load(load, unit)}"] = {
            "data": [line for line in lines if line["x"]],
            "layout": axes(f"{series.option}, option of the workload", axis),
        }
    if len(names) == 1 or not variants:
        return None
    first = series.first.record
    where = f"{sizings[0].deployment.vnf_name} on {first.testbed}"
    title = f"{where}: values reported by the generator script against {series.option}"
    chosen = " ".join(each.chosen for each in sizings[0].deployment.options.values())
    selectors = (names, tuple(_load(load, unit) for load in loads))
    return Figure(
        f"sizings-option-{number}", f"{title}{f', {chosen}' * bool(chosen)}", first.simulated, selectors, variants
    )


def _load(load: float, unit: str) -> str:
    return f"{load:g} {unit}"


def _points(series: _ReportedSeries, size: str, name: str, load: float) -> list[tuple[float, float]]:
    return [
        (value, number)
        for value, sizing in series.sizings.items()
        for each in sizing.sizes
        if each.name == size
        and (row := _offered(each, load)) is not None
        and (number := row.mean if name == _INDICATOR else row.figures.get(name)) is not None
    ]


def _offered(size: MeasuredSize, load: float) -> Offered | None:
    return next((row for row in size.offered if row.load == load), None)


def _line(name: str, number: int, points: Sequence[tuple[float, float]]) -> Json:
    return scatter(
        name,
        points,
        number,
        hover=f"{escape(name)}<br>%{{x:g}}: %{{y:.4~g}}",
        line={"width": 2},
        marker={"size": 7, "symbol": SYMBOLS[number % len(SYMBOLS)]},
    )
