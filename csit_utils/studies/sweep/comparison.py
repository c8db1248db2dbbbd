"""Sweeps and profiles of one service side by side: flavors, packet sizes, fitted functions, delays below saturation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from csit_utils.report.figures import SYMBOLS, Figure, Json, axis, one_choice, scatter
from csit_utils.report.study import View
from csit_utils.studies.sweep.figures import FIRST_SCALE, LINEAR, NAMES, PlotPosition, metric_axes, place, shown
from csit_utils.studies.sweep.words import chain_words
from resources.libraries.python.studies.sweep.analysis.flavors import ProfiledFlavor, steps
from resources.libraries.python.studies.sweep.analysis.profile import measured_rates, value_at
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS, rate_in_words, scaling_in_words
from resources.libraries.python.studies.sweep.model.profile import Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep

IN_BITS, IN_PACKETS = "by Gbit/s", "by kpps"
_WAYS = (IN_PACKETS, IN_BITS)
_CPU = "CPU"


@dataclass(frozen=True)
class SweepComparison:
    """Sweeps of one service on one testbed."""

    title: str
    simulated: bool
    oversubscribed: bool
    """Some of them."""
    figure: Figure
    """Means of all loads."""
    more: tuple[Figure, ...]
    """Fitted functions, delays below saturation."""
    gains: tuple[str, ...]
    """Gains of larger flavors."""


def comparisons(found: Sequence[View]) -> list[SweepComparison]:
    """Groups of sweeps that differ in the size of VNFs, in the frame, or in SMT."""
    groups: dict[tuple[object, ...], list[tuple[View, Sweep]]] = {}
    for view in found:
        sweep = view.record.sweep
        if sweep is not None and sweep.points:
            cell = sweep.cell
            key = (cell.service_type, cell.dimensions, cell.nf_kinds, cell.shared_nodes, cell.vs_dtc)
            groups.setdefault((view.record.testbed, view.record.simulated, *key), []).append((view, sweep))
    made = []
    for number, own in enumerate(groups.values(), 1):
        if len({(one.cell.nf_sizes, one.spec.frame, one.spec.protocol, view.record.smt_off) for view, one in own}) > 1:
            made.append(_comparison(f"sweeps-{number}", own))
    return made


def _comparison(identity: str, own: Sequence[tuple[View, Sweep]]) -> SweepComparison:
    view, sweep = own[0]
    title = f"{chain_words(sweep.cell)} on {view.record.testbed}"
    titles = [each.title for each, _ in own]
    names = [
        f"{each.title} ({each.record.test_name})" if titles.count(each.title) > 1 else each.title for each, _ in own
    ]
    variants: Json = {}
    for across in _WAYS:
        for metric in ProfileMetric:
            lines = list(_lines(own, names, metric, across))
            variants[f"{metric.value}|{across}"] = {"data": lines, "layout": _layout(metric, across)}
        cpu = {"xaxis": _across(across), "yaxis": {"title": {"text": "CPU of all VNFs, % of one vCPU"}}}
        variants[f"{_CPU}|{across}"] = {"data": list(_cpu(own, names, across)), "layout": cpu}
    selectors = ((*(metric.value for metric in ProfileMetric), _CPU), _WAYS)
    figure = Figure(identity, f"Sizes and frames of {title}", view.record.simulated, selectors, variants)
    crowded = any(each.oversubscribed for each, _ in own)
    named = [(name, each, swept) for name, (each, swept) in zip(names, own, strict=True)]
    more = (functions_figure(f"{identity}-functions", title, named), delays_figure(f"{identity}-delays", title, named))
    drawn = tuple(one for one in more if one is not None)
    return SweepComparison(title, view.simulated, crowded, figure, drawn, tuple(_flavors(own)))


def _layout(metric: ProfileMetric, across: str) -> Json:
    layout = {**metric_axes(metric, LINEAR), "xaxis": _across(across)}
    if metric is ProfileMetric.THROUGHPUT and across == IN_PACKETS:
        layout["yaxis"] = axis("throughput, kpps")
    return layout


def _across(across: str) -> Json:
    return axis("input rate, Gbit/s" if across == IN_BITS else "input rate, kpps")


def _lines(
    own: Sequence[tuple[View, Sweep]], names: Sequence[str], metric: ProfileMetric, across: str
) -> Iterator[Json]:
    for number, ((_, sweep), name) in enumerate(zip(own, names, strict=True)):
        places = [place(point, sweep.spec.frame) for point in sweep.points]
        points = [(_place(each, across), _height(each, metric, across)) for each in places]
        yield _line(number, name, points, [each.text(metric) for each in places])


def _place(each: PlotPosition, across: str) -> float:
    return each.rate if across == IN_BITS else each.input_pps / 1e3


def _height(each: PlotPosition, metric: ProfileMetric, across: str) -> float | None:
    value = each.values[metric]
    if value is None or metric is not ProfileMetric.THROUGHPUT or across == IN_BITS:
        return value
    return each.output_pps / 1e3


def _cpu(own: Sequence[tuple[View, Sweep]], names: Sequence[str], across: str) -> Iterator[Json]:
    for number, ((_, sweep), name) in enumerate(zip(own, names, strict=True)):
        points = [point for point in sweep.points if point.cpu]
        places = [place(point, sweep.spec.frame) for point in points]
        used = [100 * sum(map(sum, point.cpu.values())) for point in points]
        texts = [
            f"input {each.rate:.4g} Gbit/s ({each.input_pps:,.0f} pps)<br>CPU {value:.4g} %"
            for each, value in zip(places, used, strict=True)
        ]
        yield _line(number, name, zip((_place(each, across) for each in places), used, strict=True), texts)


def _line(
    number: int, name: str, points: Iterable[tuple[float, float | None]], texts: Sequence[str], frame: str | None = None
) -> Json:
    return scatter(
        name,
        points,
        number,
        texts=[f"{escape(name)}<br>{text}" for text in texts],
        facets=None if frame is None else {_FRAME: frame},
        line={"width": 2},
        marker={"size": 7, "symbol": SYMBOLS[number % len(SYMBOLS)]},
    )


def _flavors(own: Sequence[tuple[View, Sweep]]) -> Iterator[str]:
    """Steps from one flavor to the next, of sweeps with the same frame and state of SMT."""
    by_frame: dict[str, dict[int, ProfiledFlavor]] = {}
    for view, sweep in own:
        if view.record.profile is not None:
            vcpus = sum(vnf.vcpus for vnf in sweep.vnfs)
            flavor = ProfiledFlavor(
                f"{sweep.name} {'+'.join(map(str, sweep.cell.nf_sizes))}", vcpus, view.record.profile
            )
            same = f"{sweep.spec.frame.name}{', SMT off' if view.record.smt_off else ''}"
            by_frame.setdefault(same, {}).setdefault(vcpus, flavor)
    for frame, flavors in by_frame.items():
        yield from (f"{frame}: {line}" for line in scaling_in_words(steps(list(flavors.values()))))


_ON_A_LINE = 120
"""Rates at which functions are drawn."""
_FRAME = "frame"

REACHES = {"below saturation": 1.0, "below half of it": 0.5}
"""Shares of the break-point: just below it delay grows so steeply that lower loads cannot be distinguished."""

Named = Sequence[tuple[str, View, Sweep]]
"""Sweeps with their names in legends."""


def functions_figure(identity: str, title: str, own: Named) -> Figure | None:
    """Functions of all profiles with their measured loads, a choice for each metric; None for fewer than two."""
    profiled = [row for row in own if row[1].record.profile is not None]
    if len(profiled) < 2:
        return None
    variants: Json = {}
    for metric in ProfileMetric:
        scale = FIRST_SCALE[metric]
        data = [
            trace
            for number, (name, view, sweep) in enumerate(profiled)
            if view.record.profile is not None
            for trace in _of_profile(name, view.record.profile, sweep, metric, number)
        ]
        if data:
            variants[metric.value] = {"data": data, "layout": metric_axes(metric, scale)}
    simulated = own[0][1].record.simulated
    return one_choice(identity, f"Fitted functions of {title}", variants, simulated=simulated, facets=(_FRAME,))


def _of_profile(name: str, profile: Profile, sweep: Sweep, metric: ProfileMetric, colour: int) -> Iterator[Json]:
    """Its functions, where it saturates, and the loads that they were fitted to."""
    rates = measured_rates(profile)
    row = profile.of(metric)
    if rates is None or row is None or (row.nonsat is None and row.sat is None):
        return
    at = profile.break_point
    on_line = sorted({*np.linspace(*rates, _ON_A_LINE).tolist(), *(each.rate for each in profile.break_points)})
    common: Json = {"facets": {_FRAME: sweep.spec.frame.name}, "legendgroup": escape(name)}
    scale = FIRST_SCALE[metric]
    yield scatter(
        name,
        [(rate, shown(value_at(profile, metric, rate), scale)) for rate in on_line],
        colour,
        hover=f"{escape(name)}, function<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}} {UNITS[metric]}",
        mode="lines",
        line={"width": 2},
        **common,
    )
    places = [place(point, sweep.spec.frame) for point in sweep.points]
    common |= {"mode": "markers", "showlegend": False}
    yield scatter(
        name,
        [(each.rate, shown(each.values[metric], scale)) for each in places],
        colour,
        texts=[f"{escape(name)}<br>{each.text(metric)}" for each in places],
        marker={"size": 6, "opacity": 0.6, "symbol": SYMBOLS[colour % len(SYMBOLS)]},
        **common,
    )
    if at is not None:
        yield scatter(
            name,
            [(at.rate, shown(value_at(profile, metric, at.rate), scale))],
            colour,
            hover=f"{escape(name)} saturates at {rate_in_words(at)}<br>{escape(at.reason)}",
            marker={"size": 14, "symbol": "line-ns-open", "line": {"width": 3}},
            **common,
        )


def delays_figure(identity: str, title: str, own: Named) -> Figure | None:
    """Delays of loads below each sweep's saturation, where more vCPUs may cost time; None for fewer than two sweeps."""
    variants: Json = {}
    for reach, share in REACHES.items():
        lines = [
            _line(
                number,
                name,
                [(each.rate, each.values[ProfileMetric.DELAY]) for each in places],
                [each.text(ProfileMetric.DELAY) for each in places],
                sweep.spec.frame.name,
            )
            for number, (name, view, sweep) in enumerate(own)
            if (places := below(view.record.profile, sweep, share))
        ]
        if len(lines) > 1:
            variants[reach] = {"data": lines, "layout": metric_axes(ProfileMetric.DELAY, LINEAR)}
    simulated = own[0][1].record.simulated
    words = f"{NAMES[ProfileMetric.DELAY].capitalize()} below saturation, {title}"
    return one_choice(identity, words, variants, simulated=simulated, facets=(_FRAME,))


def below(profile: Profile | None, sweep: Sweep, share: float) -> list[PlotPosition]:
    """Loads with a delay below a share of the break-point; all of them where nothing saturates."""
    at = profile.break_point if profile else None
    places = (place(point, sweep.spec.frame) for point in sweep.points)
    limit = share * at.rate if at else float("inf")
    return [each for each in places if each.rate < limit and each.values[ProfileMetric.DELAY] is not None]
