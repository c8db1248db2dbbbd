"""Plots of one sweep: throughput, delay, loss, CPU and memory over the real input rate, in the units of a profile."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

import numpy as np

from csit_utils.report.figures import DASHES, Figure, Json, axes, axis, scatter
from csit_utils.studies.sweep.words import vnf_words
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.result import l2_bps
from resources.libraries.python.studies.sweep.analysis.profile import value_at
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS, function_in_words, rate_in_words
from resources.libraries.python.studies.sweep.analysis.tables import functions_of
from resources.libraries.python.studies.sweep.model.profile import GIGA, Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepPoint, SweepRecord, SweepSample, Vnf

_ON_A_LINE = 60
"""Rates at which a function is drawn."""
_NAMED = {"nonsat": " below", "between": " between", "sat": " above"}
_MEANS, _BELOW, _ABOVE, _FLAGGED = 0, 2, 1, 3
"""Numbers of the palette."""
_WAITS = 0.05
"""Share of the time from which on it is worth showing that a VNF had work and did not run."""
PER_VNF, PER_VCPU, AVAILABLE = "per VNF", "per vCPU", "available"


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


def metric_axes(metric: ProfileMetric, scale: str) -> Json:
    """Axes of a metric against the input rate."""
    vertical: Json = {"type": "log", "dtick": 1} if scale == LOGARITHMIC else {"rangemode": "tozero"}
    return {
        "xaxis": axis("input rate, Gbit/s"),
        "yaxis": {"title": {"text": f"{NAMES[metric]}, {UNITS[metric]}"}, **vertical},
    }


def shown(value: float | None, scale: str) -> float | None:
    """A value as a plot takes it: a logarithmic axis has no zero."""
    return None if value is None or (scale == LOGARITHMIC and value <= 0) else value


def sweep_figures(anchor: str, record: SweepRecord) -> list[Figure]:
    """A plot of each metric, one of the CPUs and one of the memory; none of what was not measured."""
    sweep = record.sweep
    if sweep is None or not sweep.points:
        return []
    found = [
        metric_figure(f"{anchor}-{metric.value}", record, sweep, metric, partial(_traces, record, sweep, metric))
        for metric in ProfileMetric
        if any(place(point, sweep.spec.frame).values[metric] is not None for point in sweep.points)
    ]
    return [*found, *_cpu_figure(f"{anchor}-cpu", record, sweep), *_memory_figure(f"{anchor}-memory", record, sweep)]


def saturation(profile: Profile | None) -> Json:
    """Vertical lines of break-points in their intervals, with reasons for hovering; nothing without any."""
    points = profile.break_points if profile else ()
    if profile is None or not points:
        return {}
    line = {"dash": "dot", "width": 1.5, "color": "ink"}
    band: Json = {"line": {"width": 0}, "fillcolor": "ink", "opacity": 0.1}
    return {
        "shapes": [
            {"type": kind, "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "x0": start, "x1": end} | style
            for found in points
            for kind, start, end, style in (
                ("line", found.rate, found.rate, {"line": line}),
                *([("rect", found.low, found.high, band)] if found.low is not None else []),
            )
        ],
        "annotations": [
            {"xref": "x", "yref": "paper", "x": found.rate, "y": 1, "yanchor": "bottom", "showarrow": False}
            | {
                "text": "saturation" if found is profile.break_point else "break-point",
                "hovertext": escape(f"{rate_in_words(found)}: {found.reason}"),
                "font": {"color": "ink", "size": 12},
            }
            for found in points
        ],
    }


def metric_figure(
    identity: str,
    record: SweepRecord,
    sweep: Sweep,
    metric: ProfileMetric,
    traces: Callable[[str], Iterable[Json]],
) -> Figure:
    """Return a plot of a metric, with both scales but for throughput.

    Args:
        identity: Of the figure.
        record: With the profile.
        sweep: Of the record.
        metric: The metric.
        traces: Returns the traces for a scale.
    """
    first = FIRST_SCALE[metric]
    scales = (
        (first, *(scale for scale in SCALES if scale != first)) if metric is not ProfileMetric.THROUGHPUT else (first,)
    )
    variants: Json = {
        scale: {"data": list(traces(scale)), "layout": metric_axes(metric, scale) | saturation(record.profile)}
        for scale in scales
    }
    title = f"{NAMES[metric].capitalize()} of {sweep.name}"
    return Figure(identity, title, record.simulated, (scales,), variants)


def _traces(record: SweepRecord, sweep: Sweep, metric: ProfileMetric, scale: str) -> Iterator[Json]:
    yield _dots("each second", sweep, sweep.samples, metric, scale) | {
        "marker": {"size": 13, "opacity": 0.7, "symbol": "line-ew-open"}
    }
    good, flagged = ([point for point in sweep.points if (point.flagged is None) is usable] for usable in (True, False))
    yield _dots("mean of a load", sweep, good, metric, scale) | {"marker": {"size": 8}}
    if flagged:
        reasons = [f"<br>flagged: {escape(point.flagged or '')}" for point in flagged]
        dots = _dots("flagged", sweep, flagged, metric, scale)
        texts = [text + reason for text, reason in zip(dots["text"], reasons, strict=True)]
        yield dots | {"text": texts, "marker": {"size": 11, "symbol": "x"}, "meta": {"colour": _FLAGGED}}
    if record.profile is not None:
        yield from _functions(record.profile, metric, scale)


def _dots(name: str, sweep: Sweep, rows: Sequence[SweepPoint | SweepSample], metric: ProfileMetric, scale: str) -> Json:
    places = [place(row, sweep.spec.frame) for row in rows]
    points = [(each.rate, shown(each.values[metric], scale)) for each in places]
    return scatter(name, points, _MEANS, texts=[each.text(metric) for each in places], mode="markers")


def _functions(profile: Profile, metric: ProfileMetric, scale: str) -> Iterator[Json]:
    """The fitted functions where they have points."""
    whole = profile.break_point is None
    for found, region, fit in functions_of(profile):
        if found is not metric:
            continue
        rates = np.linspace(fit.first_rate, fit.last_rate, _ON_A_LINE).tolist()
        below = region == "nonsat"
        yield scatter(
            f"{fit.function}{'' if whole else _NAMED[region]}",
            [(rate, shown(value_at(profile, metric, rate), scale)) for rate in rates],
            _BELOW if below else _ABOVE,
            hover=f"{escape(function_in_words(fit))}<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}}",
            mode="lines",
            line={"width": 2, "dash": "solid" if below else "dash"},
        )


def _cpu_figure(identity: str, record: SweepRecord, sweep: Sweep) -> Iterator[Figure]:
    known = [vnf for vnf in sweep.vnfs if any(vnf.name in point.cpu for point in sweep.points)]
    if not known:
        return
    layout = axes("input rate, Gbit/s", "CPU, % of one vCPU", **saturation(record.profile))
    threads = any(vnf.vcpus > 1 for vnf in known)
    variants: Json = {PER_VNF: {"data": list(_per_vnf(sweep, known)), "layout": layout}}
    if threads:
        variants[PER_VCPU] = {"data": list(_per_vcpu(sweep, known)), "layout": layout}
    yield Figure(identity, f"CPU of {sweep.name}", record.simulated, (tuple(variants),), variants)


def _per_vnf(sweep: Sweep, vnfs: Sequence[Vnf]) -> Iterator[Json]:
    for number, vnf in enumerate(vnfs):
        used = [(point, 100 * sum(point.cpu[vnf.name])) for point in sweep.points if vnf.name in point.cpu]
        name = f"{vnf_words(vnf)}, {vnf.vcpus} vCPU{'s' * (vnf.vcpus > 1)}"
        yield use_line(sweep, used, name, number, line={"width": 2})
        wanted = [(point, 100 * sum(point.busy[vnf.name])) for point in sweep.points if vnf.name in point.busy]
        waits = any(
            sum(point.busy[vnf.name]) - (point.used(vnf.name) or 0.0) > _WAITS * vnf.vcpus for point, _ in wanted
        )
        if waits:
            yield use_line(sweep, wanted, f"{vnf_words(vnf)} has work", number, line={"width": 2, "dash": "dot"})


def _per_vcpu(sweep: Sweep, vnfs: Sequence[Vnf]) -> Iterator[Json]:
    for number, vnf in enumerate(vnfs):
        for thread in range(vnf.vcpus):
            found = [
                (point, 100 * point.cpu[vnf.name][thread])
                for point in sweep.points
                if len(point.cpu.get(vnf.name, ())) > thread
            ]
            dashed = {"width": 2, "dash": DASHES[thread % 4]}
            yield use_line(sweep, found, f"{vnf_words(vnf)}, vCPU {thread + 1}", number, line=dashed)


def _memory_figure(identity: str, record: SweepRecord, sweep: Sweep) -> Iterator[Figure]:
    own = [
        (
            vnf_words(vnf),
            [(point, point.memory_mib[vnf.name]) for point in sweep.points if vnf.name in point.memory_mib],
        )
        for vnf in sweep.vnfs
    ]
    left = [(point, point.available_mib) for point in sweep.points if point.available_mib is not None]
    if not any(row for _, row in own):
        return
    layout = axes("input rate, Gbit/s", "memory, MiB", **saturation(record.profile))
    variants: Json = {
        variant: {
            "data": [use_line(sweep, row, name, number, unit="MiB") for number, (name, row) in lines],
            "layout": layout,
        }
        for variant, lines in (
            (PER_VNF, [each for each in enumerate(own) if each[1][1]]),
            (AVAILABLE, [(0, ("available on the node", left))] if left else []),
        )
        if lines
    }
    yield Figure(identity, f"Memory of {sweep.name}", record.simulated, (tuple(variants),), variants)


def use_line(
    sweep: Sweep,
    found: Sequence[tuple[SweepPoint, float]],
    name: str,
    colour: int,
    *,
    share: float = 1.0,
    unit: str = "% of one vCPU",
    **style: Json,
) -> Json:
    """Return CPU or memory in use over the input rate, or a share of it; `style` are attributes of Plotly."""
    return scatter(
        name,
        [(share * place(point, sweep.spec.frame).rate, used) for point, used in found],
        colour,
        hover=f"{escape(name)}<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}} {unit}",
        **{"marker": {"size": 6}, **style},
    )
