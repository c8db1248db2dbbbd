"""Plots of one sweep over the real input rate, in the units of a profile, and of sweeps of one service side by side."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np

from csit_utils.report.figures import Figure, Json, above
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row, plots
from csit_utils.report.study import View
from csit_utils.report.units import common_unit
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.result import l2_bps
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.sweep.analysis.flavors import ProfiledFlavor, steps
from resources.libraries.python.studies.sweep.analysis.profile import measured_rates, value_at
from resources.libraries.python.studies.sweep.analysis.sentences import (
    UNITS,
    chain_words,
    function_in_words,
    rate_in_words,
    scaling_in_words,
    vnf_words,
)
from resources.libraries.python.studies.sweep.analysis.tables import functions_of
from resources.libraries.python.studies.sweep.model import (
    GIGA,
    Profile,
    ProfileMetric,
    Sweep,
    SweepPoint,
    SweepRecord,
    SweepSample,
    Vnf,
)

_ON_A_LINE = 60
"""Rates at which a function is drawn."""
_REGIONS = {"nonsat": "below", "between": "between", "sat": "above"}
_WAITS = 0.05
"""Share of the time from which on it is worth showing that a VNF had work and did not run."""
_SECOND, _MEAN, _FLAGGED = "each second", "mean of a load", "flagged"
_DOTS = {
    _SECOND: {"mode": "markers", "marker": {"size": 13, "opacity": 0.7, "symbol": "line-ew-open"}},
    _MEAN: {"mode": "markers", "marker": {"size": 8}},
    _FLAGGED: {"mode": "markers", "marker": {"size": 11, "symbol": "x"}},
}
NAMES = {ProfileMetric.THROUGHPUT: "throughput", ProfileMetric.DELAY: "one-way delay", ProfileMetric.LOSS: "loss"}
INPUT = Column("rate", "input rate, Gbit/s", choice="by Gbit/s")
CPU = Column("cpu", "CPU, % of one vCPU", scale=100)


def _log(metric: ProfileMetric, choice: str) -> Column:
    return Column(metric.value, f"{NAMES[metric]}, {UNITS[metric]}", choice=choice, log=True, options={"dtick": 1})


def _linear(metric: ProfileMetric, choice: str) -> Column:
    return Column(metric.value, f"{NAMES[metric]}, {UNITS[metric]}", choice=choice)


def metric_column(metric: ProfileMetric) -> Column:
    """Return a metric on the scale that shows it best."""
    return (_log if metric is ProfileMetric.DELAY else _linear)(metric, metric.value)


METRICS = tuple(map(metric_column, ProfileMetric))


def inputs(sweep: Sweep) -> tuple[Column, ...]:
    """Return the input rate in the units that readers choose from: packets per second, and Gbit/s."""
    factor, unit = common_unit([point.input_pps for point in sweep.points])
    return Column("input_pps", f"input rate, {unit}", scale=1 / factor, choice=f"by {unit}"), INPUT


def scales(metric: ProfileMetric, packets: Sweep | None = None) -> tuple[Column, ...]:
    """Return a metric on the scales that readers choose from, the best one first.

    `packets`: a sweep whose throughput is shown in packets per second, too.
    """
    linear, logarithmic = _linear(metric, "linear"), _log(metric, "logarithmic")
    if metric is ProfileMetric.THROUGHPUT:
        factor, unit = common_unit([point.input_pps for point in packets.points] if packets else ())
        column = Column("output_pps", f"throughput, {unit}", scale=1 / factor, choice=unit)
        return (column, _linear(metric, UNITS[metric])) if packets else (linear,)
    return (logarithmic, linear) if metric is ProfileMetric.DELAY else (linear, logarithmic)


def load_row(row: SweepPoint | SweepSample, frame: Frame) -> dict[str, float | str | None]:
    """Return a load, or one of its seconds: input and output rate, one way, and metrics, None if unknown."""
    rate = l2_bps(row.input_pps, frame) / GIGA
    return {
        "rate": rate,
        "input_pps": row.input_pps,
        "output_pps": row.output_pps,
        ProfileMetric.THROUGHPUT.value: l2_bps(row.output_pps, frame) / GIGA,
        ProfileMetric.DELAY.value: None if row.delay_s is None else 1e3 * row.delay_s,
        ProfileMetric.LOSS.value: None if row.loss_ratio is None else 100 * row.loss_ratio,
        "text": f"input {row.input_pps:,.0f} pps ({rate:.4g} Gbit/s)",
    }


def load_rows(sweep: Sweep) -> Iterator[Row]:
    """Yield a row for each load."""
    return (load_row(point, sweep.spec.frame) for point in sweep.points)


def function_rows(profile: Profile, rates: Iterable[float], metrics: Iterable[ProfileMetric]) -> Iterator[Row]:
    """Yield the values of fitted functions at some rates."""
    for rate in rates:
        yield {"rate": rate, **{metric.value: value_at(profile, metric, rate) for metric in metrics}}


def sweep_figures(anchor: str, record: SweepRecord) -> list[Figure]:
    """A plot of each metric, one of the CPUs and one of the memory; none of what was not measured."""
    sweep = record.sweep
    if sweep is None or not sweep.points:
        return []
    layout = saturation(record.profile, sweep.spec.frame)
    across = inputs(sweep)
    return plots(
        RecordTables(anchor, record.simulated, sweep),
        *(
            Plot(
                metric.value,
                f"{NAMES[metric].capitalize()} of {sweep.name}",
                partial(_measured_and_fitted, record.profile, metric),
                across,
                scales(metric, sweep),
                colour="line",
                mark="lines",
                hover=("text",),
                lines=_DOTS,
                layout=layout,
            )
            for metric in ProfileMetric
        ),
        Plot("cpu", f"CPU of {sweep.name}", _cpu, across, CPU, "vnf", choose=("way",), dash="line", layout=layout),
        Plot(
            "memory",
            f"Memory of {sweep.name}",
            _memory,
            across,
            Column("memory", "memory, MiB"),
            "line",
            choose=("way",),
            layout=layout,
        ),
    )


def saturation(profile: Profile | None, frame: Frame) -> Callable[[Column], Json]:
    """Vertical lines of break-points in their intervals, with reasons for hovering; nothing without any.

    `frame`: converts rates where the axis is in packets per second.
    """

    def layout(x: Column) -> Json:
        factor = 1.0 if x.name == INPUT.name else x.scale * GIGA / l2_bps(1, frame)
        return {} if profile is None else _break_points(profile, factor)

    return layout


def _break_points(profile: Profile, factor: float) -> Json:
    points = profile.break_points
    line = {"dash": "dot", "width": 1.5, "color": "ink"}
    band: Json = {"line": {"width": 0}, "fillcolor": "ink", "opacity": 0.1}
    return {
        "shapes": [
            {"type": kind, "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "x0": start * factor, "x1": end * factor}
            | style
            for found in points
            for kind, start, end, style in (
                ("line", found.rate, found.rate, {"line": line}),
                *([("rect", found.low, found.high, band)] if found.low is not None and found.high is not None else []),
            )
        ],
        "annotations": [
            above(
                "saturation" if found is profile.break_point else "break-point",
                found.rate * factor,
                hovertext=escape(f"{rate_in_words(found)}: {found.reason}"),
            )
            for found in points
        ],
    }


def _measured_and_fitted(profile: Profile | None, metric: ProfileMetric, sweep: Sweep) -> Iterator[Row]:
    """Seconds and loads, then the functions where they have points."""
    yield from ({**load_row(sample, sweep.spec.frame), "line": _SECOND} for sample in sweep.samples)
    for point in sorted(sweep.points, key=lambda point: point.flagged is not None):
        load = load_row(point, sweep.spec.frame)
        reason = f", flagged: {point.flagged}" if point.flagged else ""
        yield {**load, "line": _FLAGGED if point.flagged else _MEAN, "text": f"{load['text']}{reason}"}
    for found, region, fit in functions_of(profile) if profile is not None else ():
        if found is metric and profile is not None:
            name = fit.function if profile.break_point is None else f"{fit.function} {_REGIONS[region]}"
            rates = np.linspace(fit.first_rate, fit.last_rate, _ON_A_LINE).tolist()
            packets = GIGA / l2_bps(1, sweep.spec.frame)
            for row in function_rows(profile, rates, (metric,)):
                known = {"input_pps": row["rate"], "output_pps": row.get(ProfileMetric.THROUGHPUT.value)}
                pps = {name: None if value is None else value * packets for name, value in known.items()}
                yield {**row, **pps, "line": name, "text": function_in_words(fit)}


def _cpu(sweep: Sweep) -> Iterator[Row]:
    for vnf in sweep.vnfs:
        known = [(load_row(point, sweep.spec.frame), point) for point in sweep.points if vnf.name in point.cpu]
        at = {"vnf": vnf_words(vnf)}
        whole = counted(vnf.vcpus, "vCPU")
        for row, point in known:
            yield {**row, **at, "way": "per VNF", "line": whole, "cpu": point.used(vnf.name)}
        if any(_wanted(point, vnf) - (point.used(vnf.name) or 0.0) > _WAITS * vnf.vcpus for _, point in known):
            for row, point in known:
                yield {**row, **at, "way": "per VNF", "line": "has work", "cpu": _wanted(point, vnf)}
        if any(other.vcpus > 1 for other in sweep.vnfs):
            for row, point in known:
                for thread, used in enumerate(point.cpu[vnf.name], 1):
                    yield {**row, **at, "way": "per vCPU", "line": f"vCPU {thread}", "cpu": used}


def _wanted(point: SweepPoint, vnf: Vnf) -> float:
    return sum(point.busy.get(vnf.name, ()))


def _memory(sweep: Sweep) -> Iterator[Row]:
    known = [vnf for vnf in sweep.vnfs if any(vnf.name in point.memory_mib for point in sweep.points)]
    for point in sweep.points if known else ():
        row = load_row(point, sweep.spec.frame)
        for vnf in known:
            yield {**row, "way": "per VNF", "line": vnf_words(vnf), "memory": point.memory_mib.get(vnf.name)}
        if point.available_mib is not None:
            yield {**row, "way": "available", "line": "available on the node", "memory": point.available_mib}


ON_A_LINE = 120
"""Rates at which functions are drawn."""
_SATURATES = {"size": 14, "symbol": "line-ns-open", "line": {"width": 3}}
_INPUTS = (
    Column("input_pps", "input rate, kpps", scale=1e-3, choice="by kpps"),
    Column("rate", "input rate, Gbit/s", choice="by Gbit/s"),
)
_QUANTITIES = (
    Column("output_pps", "throughput, kpps", scale=1e-3, choice="throughput, kpps"),
    Column(ProfileMetric.THROUGHPUT.value, "throughput, Gbit/s", choice="throughput, Gbit/s"),
    Column(ProfileMetric.DELAY.value, "one-way delay, ms", choice="delay"),
    Column(ProfileMetric.LOSS.value, "loss, %", choice="loss"),
    Column("cpu", "CPU of all VNFs, % of one vCPU", scale=100, choice="CPU"),
)
REACHES = {"below saturation": 1.0, "below half of it": 0.5}
"""Shares of the break-point: just below it delay grows so steeply that lower loads cannot be distinguished."""

Named = Sequence[tuple[str, View, Sweep]]
"""Sweeps with their names in legends."""


def comparisons(found: Sequence[View]) -> list[Mapping[str, Any]]:
    """Values for the template, of groups of sweeps that differ in the size of VNFs, in the frame, or in SMT."""
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


def _comparison(identity: str, own: Sequence[tuple[View, Sweep]]) -> Mapping[str, Any]:
    view, sweep = own[0]
    title = f"{chain_words(sweep.cell)} on {view.record.testbed}"
    titles = [each.title for each, _ in own]
    names = [
        f"{each.title} ({each.record.test_name})" if titles.count(each.title) > 1 else each.title for each, _ in own
    ]
    named = [(name, each, swept) for name, (each, swept) in zip(names, own, strict=True)]
    tables = RecordTables(identity, view.simulated, named)
    profiled = [row for row in named if row[1].record.profile is not None]
    beside = Plot("loads", f"Sizes and frames of {title}", _loads, _INPUTS, _QUANTITIES, colour="line", hover=("text",))
    functions = Plot(
        "functions",
        f"Fitted functions of {title}",
        _functions,
        INPUT,
        METRICS,
        colour="line",
        dash="what",
        facets={"frame": "frame"},
        hover=("text",),
        lines={
            "function": {"mode": "lines", "line": {"width": 2}},
            "loads": {"mode": "markers", "showlegend": False, "opacity": 0.6},
            "saturation": {"mode": "markers", "showlegend": False, "marker": _SATURATES},
        },
    )
    delays = Plot(
        "delays",
        f"One-way delay below saturation, {title}",
        _delays,
        _INPUTS,
        Column(ProfileMetric.DELAY.value, "one-way delay, ms"),
        colour="line",
        choose=("reach",),
        facets={"frame": "frame"},
        hover=("text",),
    )
    return {
        "title": title,
        "simulated": view.simulated,
        "oversubscribed": any(each.oversubscribed for each, _ in own),
        "figure": plots(tables, beside)[0],
        "more": plots(tables, *([functions] if len(profiled) > 1 else []), delays),
        "gains": list(_flavors(own)),
    }


def _loads(own: Named) -> Iterator[Row]:
    for name, _, sweep in own:
        for point in sweep.points:
            cpu = sum(map(sum, point.cpu.values())) if point.cpu else None
            yield {**load_row(point, sweep.spec.frame), "line": name, "cpu": cpu}


def _functions(own: Named) -> Iterator[Row]:
    """Functions of all profiles, where they saturate, and the loads that they were fitted to."""
    for name, view, sweep in own:
        profile: Profile | None = view.record.profile
        rates = measured_rates(profile) if profile is not None else None
        if profile is None or rates is None:
            continue
        common = {"line": name, "frame": sweep.spec.frame.name}
        fitted = [row.metric for row in profile.metrics if row.nonsat is not None or row.sat is not None]
        bends = [each.rate for each in profile.break_points]
        on_line = sorted({*np.linspace(*rates, ON_A_LINE).tolist(), *bends})
        yield from ({**row, **common, "what": "function"} for row in function_rows(profile, on_line, fitted))
        yield from ({**row, **common, "what": "loads"} for row in load_rows(sweep))
        if (at := profile.break_point) is not None:
            text = f"saturates at {rate_in_words(at)}: {at.reason}"
            for row in function_rows(profile, [at.rate], fitted):
                yield {**row, **common, "what": "saturation", "text": text}


def _delays(own: Named) -> Iterator[Row]:
    """Loads below each sweep's saturation, where more vCPUs may cost time; nothing for fewer than two sweeps."""
    for reach, share in REACHES.items():
        found = [(name, sweep, below(view.record.profile, sweep, share)) for name, view, sweep in own]
        if sum(bool(rows) for *_, rows in found) > 1:
            for name, sweep, rows in found:
                at = {"line": name, "frame": sweep.spec.frame.name, "reach": reach}
                yield from ({**row, **at} for row in rows)


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


def below(profile: Profile | None, sweep: Sweep, share: float) -> list[Row]:
    """Loads with a delay below a share of the break-point's interval; all of them where nothing saturates."""
    at = profile.break_point if profile else None
    limit = share * (at.rate if at.low is None else at.low) if at else float("inf")
    return [row for row in load_rows(sweep) if row["rate"] < limit and row[ProfileMetric.DELAY.value] is not None]
