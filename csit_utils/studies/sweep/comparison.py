"""Sweeps and profiles of one service side by side: flavors, packet sizes, fitted functions, delays below saturation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row, plots
from csit_utils.report.study import View
from csit_utils.studies.sweep.figures import INPUT, METRICS, function_rows, load_row, load_rows
from resources.libraries.python.studies.sweep.analysis.flavors import ProfiledFlavor, steps
from resources.libraries.python.studies.sweep.analysis.profile import measured_rates
from resources.libraries.python.studies.sweep.analysis.sentences import chain_words, rate_in_words, scaling_in_words
from resources.libraries.python.studies.sweep.model.profile import Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep

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


@dataclass(frozen=True)
class SweepComparison:
    """Sweeps of one service on one testbed."""

    title: str
    simulated: bool
    oversubscribed: bool
    """Some of them."""
    figure: Figure
    """Means of all loads."""
    more: Sequence[Figure]
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
    named = [(name, each, swept) for name, (each, swept) in zip(names, own, strict=True)]
    tables = RecordTables(identity, view.simulated, named)
    profiled = [row for row in named if row[1].record.profile is not None]
    beside = Plot(
        "loads",
        f"Sizes and frames of {title}",
        _loads,
        _INPUTS,
        _QUANTITIES,
        colour="line",
        hover=("text",),
    )
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
    more = plots(tables, *([functions] if len(profiled) > 1 else []), delays)
    crowded = any(each.oversubscribed for each, _ in own)
    return SweepComparison(title, view.simulated, crowded, plots(tables, beside)[0], more, tuple(_flavors(own)))


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
    """Loads with a delay below a share of the break-point; all of them where nothing saturates."""
    at = profile.break_point if profile else None
    limit = share * at.rate if at else float("inf")
    return [row for row in load_rows(sweep) if row["rate"] < limit and row[ProfileMetric.DELAY.value] is not None]
