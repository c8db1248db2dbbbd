"""Plots of one sweep: throughput, delay, loss and CPU against the real input rate, in the units of a profile."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from csit_utils.report.figures import Figure, Json
from csit_utils.studies.sweep.words import vnf_words
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.result import l2_bps
from resources.libraries.python.studies.sweep.analysis.points import GIGA
from resources.libraries.python.studies.sweep.analysis.profile import value_at
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS, function_in_words
from resources.libraries.python.studies.sweep.analysis.tables import functions_of
from resources.libraries.python.studies.sweep.model.profile import BreakPoint, Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepPoint, SweepRecord, SweepSample, Vnf

_ON_A_LINE = 60
"""Rates at which a function is drawn."""
_MEANS, _BELOW, _ABOVE, _FLAGGED = 0, 2, 1, 3
"""Numbers of the palette."""
_WAITS = 0.05
"""Share of the time from which on it is worth showing that a VNF had work and did not run."""
PER_VNF, PER_VCPU = "per VNF", "per vCPU"


LINEAR, LOGARITHMIC = "linear", "logarithmic"
SCALES = (LINEAR, LOGARITHMIC)
NAMES = {
    ProfileMetric.THROUGHPUT: "throughput",
    ProfileMetric.DELAY: "one-way delay",
    ProfileMetric.LOSS: "loss",
}
FIRST_SCALE = {ProfileMetric.THROUGHPUT: LINEAR, ProfileMetric.DELAY: LOGARITHMIC, ProfileMetric.LOSS: LINEAR}
"""In which a metric shows itself best."""


@dataclass(frozen=True)
class PlotPosition:
    """Where a load is in plots: what was really sent, and what came of it. None where it was not measured."""

    rate: float
    """Gbit/s, one way, L2."""
    input_pps: float
    output_pps: float
    values: dict[ProfileMetric, float | None]

    def text(self, metric: ProfileMetric) -> str:
        """For hovering."""
        value = self.values[metric]
        found = "not measured" if value is None else f"{value:.4g} {UNITS[metric]}"
        return f"input {self.rate:.4g} Gbit/s ({self.input_pps:,.0f} pps)<br>{NAMES[metric]} {found}"


def place(row: SweepPoint | SweepSample, frame: Frame) -> PlotPosition:
    """Return the position of a load, or of one of its seconds."""
    return PlotPosition(
        rate=l2_bps(row.input_pps, frame) / GIGA,
        input_pps=row.input_pps,
        output_pps=row.output_pps,
        values={
            ProfileMetric.THROUGHPUT: l2_bps(row.output_pps, frame) / GIGA,
            ProfileMetric.DELAY: None if row.delay_s is None else 1e3 * row.delay_s,
            ProfileMetric.LOSS: None if row.loss_ratio is None else 100 * row.loss_ratio,
        },
    )


def axes(metric: ProfileMetric, scale: str) -> Json:
    """Axes of a metric against the input rate."""
    vertical: Json = {"type": "log", "dtick": 1} if scale == LOGARITHMIC else {"rangemode": "tozero"}
    return {
        "xaxis": {"title": {"text": "input rate, Gbit/s"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": f"{NAMES[metric]}, {UNITS[metric]}"}, **vertical},
    }


def shown(value: float | None, scale: str) -> float | None:
    """A value as a plot takes it: a logarithmic axis has no zero."""
    return None if value is None or (scale == LOGARITHMIC and value <= 0) else float(f"{value:.6g}")


def sweep_figures(anchor: str, record: SweepRecord) -> list[Figure]:
    """A plot of each metric and one of the CPUs; none of what was not measured."""
    sweep = record.sweep
    if sweep is None or not sweep.points:
        return []
    found = [
        _metric_figure(f"{anchor}-{metric.value}", record, sweep, metric)
        for metric in ProfileMetric
        if any(place(point, sweep.spec.frame).values[metric] is not None for point in sweep.points)
    ]
    return [*found, *_cpu_figure(f"{anchor}-cpu", record, sweep)]


def saturation(found: BreakPoint | None) -> Json:
    """The vertical line of a break-point, with its reason for hovering; nothing without one."""
    if found is None:
        return {}
    line = {"dash": "dot", "width": 1.5, "color": "ink"}
    return {
        "shapes": [
            {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "x0": found.rate, "x1": found.rate}
            | {"line": line}
        ],
        "annotations": [
            {"xref": "x", "yref": "paper", "x": found.rate, "y": 1, "yanchor": "bottom", "showarrow": False}
            | {"text": "saturation", "hovertext": escape(found.reason), "font": {"color": "ink", "size": 12}}
        ],
    }


def _metric_figure(identity: str, record: SweepRecord, sweep: Sweep, metric: ProfileMetric) -> Figure:
    first = FIRST_SCALE[metric]
    scales = (
        (first, *(scale for scale in SCALES if scale != first)) if metric is not ProfileMetric.THROUGHPUT else (first,)
    )
    break_point = record.profile.break_point if record.profile else None
    variants: Json = {
        scale: {
            "data": list(_traces(record, sweep, metric, scale)),
            "layout": axes(metric, scale) | saturation(break_point),
        }
        for scale in scales
    }
    title = f"{NAMES[metric].capitalize()} of {sweep.name}"
    return Figure(identity, title, record.simulated, (scales,), variants)


def _traces(record: SweepRecord, sweep: Sweep, metric: ProfileMetric, scale: str) -> Iterator[Json]:
    yield _dots(sweep, sweep.samples, metric, scale) | {
        "name": "each second",
        "marker": {"size": 13, "opacity": 0.7, "symbol": "line-ew-open"},
    }
    good, flagged = ([point for point in sweep.points if (point.flagged is None) is usable] for usable in (True, False))
    yield _dots(sweep, good, metric, scale) | {"name": "mean of a load", "marker": {"size": 8}}
    if flagged:
        reasons = [f"<br>flagged: {escape(point.flagged or '')}" for point in flagged]
        dots = _dots(sweep, flagged, metric, scale, _FLAGGED)
        texts = [text + reason for text, reason in zip(dots["text"], reasons, strict=True)]
        yield dots | {"text": texts, "name": "flagged", "marker": {"size": 11, "symbol": "x"}}
    if record.profile is not None:
        yield from _functions(record.profile, metric, scale)


def _dots(
    sweep: Sweep, rows: Sequence[SweepPoint | SweepSample], metric: ProfileMetric, scale: str, colour: int = _MEANS
) -> Json:
    places = [place(row, sweep.spec.frame) for row in rows]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [shown(each.rate, "") for each in places],
        "y": [shown(each.values[metric], scale) for each in places],
        "text": [each.text(metric) for each in places],
        "hovertemplate": "%{text}<extra></extra>",
        "meta": {"colour": colour},
    }


def _functions(profile: Profile, metric: ProfileMetric, scale: str) -> Iterator[Json]:
    """The fitted functions where they have points."""
    whole = profile.break_point is None
    for found, region, fit in functions_of(profile):
        if found is not metric:
            continue
        rates = np.linspace(fit.first_rate, fit.last_rate, _ON_A_LINE).tolist()
        below = region == "nonsat"
        yield {
            "type": "scatter",
            "mode": "lines",
            "name": f"{fit.function}{'' if whole else ' below' if below else ' above'}",
            "x": [shown(rate, "") for rate in rates],
            "y": [shown(value_at(profile, metric, rate), scale) for rate in rates],
            "hovertemplate": f"{escape(function_in_words(fit))}<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}}<extra></extra>",
            "line": {"width": 2, "dash": "solid" if below else "dash"},
            "meta": {"colour": _BELOW if below else _ABOVE},
        }


def _cpu_figure(identity: str, record: SweepRecord, sweep: Sweep) -> Iterator[Figure]:
    known = [vnf for vnf in sweep.vnfs if any(vnf.name in point.cpu for point in sweep.points)]
    if not known:
        return
    break_point = record.profile.break_point if record.profile else None
    layout = {
        "xaxis": {"title": {"text": "input rate, Gbit/s"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "CPU, % of one vCPU"}, "rangemode": "tozero"},
        **saturation(break_point),
    }
    threads = any(vnf.vcpus > 1 for vnf in known)
    variants: Json = {PER_VNF: {"data": list(_per_vnf(sweep, known)), "layout": layout}}
    if threads:
        variants[PER_VCPU] = {"data": list(_per_vcpu(sweep, known)), "layout": layout}
    yield Figure(identity, f"CPU of {sweep.name}", record.simulated, (tuple(variants),), variants)


def _per_vnf(sweep: Sweep, vnfs: Sequence[Vnf]) -> Iterator[Json]:
    for number, vnf in enumerate(vnfs):
        used = [(point, 100 * sum(point.cpu[vnf.name])) for point in sweep.points if vnf.name in point.cpu]
        name = f"{vnf_words(vnf)}, {vnf.vcpus} vCPU{'s' * (vnf.vcpus > 1)}"
        yield _cpu_line(sweep, used, name, number, "solid")
        wanted = [(point, 100 * sum(point.busy[vnf.name])) for point in sweep.points if vnf.name in point.busy]
        waits = any(
            sum(point.busy[vnf.name]) - (point.used(vnf.name) or 0.0) > _WAITS * vnf.vcpus for point, _ in wanted
        )
        if waits:
            yield _cpu_line(sweep, wanted, f"{vnf_words(vnf)} has work", number, "dot")


def _per_vcpu(sweep: Sweep, vnfs: Sequence[Vnf]) -> Iterator[Json]:
    dashes = ("solid", "dash", "dot", "dashdot")
    for number, vnf in enumerate(vnfs):
        for thread in range(vnf.vcpus):
            found = [
                (point, 100 * point.cpu[vnf.name][thread])
                for point in sweep.points
                if len(point.cpu.get(vnf.name, ())) > thread
            ]
            yield _cpu_line(sweep, found, f"{vnf_words(vnf)}, vCPU {thread + 1}", number, dashes[thread % len(dashes)])


def _cpu_line(sweep: Sweep, found: Sequence[tuple[SweepPoint, float]], name: str, colour: int, dash: str) -> Json:
    places = [place(point, sweep.spec.frame) for point, _ in found]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(name),
        "x": [shown(each.rate, "") for each in places],
        "y": [float(f"{percent:.4g}") for _, percent in found],
        "hovertemplate": f"{escape(name)}<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}} % of one vCPU<extra></extra>",
        "line": {"width": 2, "dash": dash},
        "marker": {"size": 6},
        "meta": {"colour": colour},
    }
