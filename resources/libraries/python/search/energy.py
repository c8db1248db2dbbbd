"""Power and energy per packet at loads that are shares of PDR (draft-ietf-bmwg-powerbench). Pure.

A trial has a certain part in which traffic was sent for sure, whatever its preparation took: only readings of meters
from that part count. Energy counters give the mean power between the first and the last reading in it. Power readings
are means over the interval of the meter, so those of the first interval are of a time before, and do not count.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from statistics import fmean, stdev

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.energy import IDLE, Energy, EnergyAtLoad, MeterSeries, NodePower
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.quantities import rate

PURPOSE = "energy"
LOADS_PERCENT = (0, 10, 50, 90)
_MAX_TRIALS = 3
"""At one load; each is twice as long as the one before."""
_LONGEST_TRIAL_S = 600.0
Window = tuple[float, float]


class TooFewReadings(Unsupported):
    """A meter gave too few readings in the time that counts; in a longer trial there are more."""


@dataclass(frozen=True, slots=True)
class EnergyReadings:
    """Energy readings of the nodes in the course of one trial, or of as long without one."""

    series: Sequence[MeterSeries]
    unmetered: Mapping[str, str] = field(default_factory=dict)
    """Why a node has no meter, by node."""
    busy_cpus: float | None = None
    result: TrialResult | None = None
    window: Window | None = None
    """Time in which the trial sent for certain, by the clock of the series; None for all of it."""


def certain_window(began_s: float, ended_s: float, sending_s: float) -> Window:
    """Return the time in which a trial sent for certain.

    It began to send at once at the earliest, and at the latest so that it sent until its end.

    `began_s`: When the trial was asked for.
    """
    return ended_s - sending_s, began_s + sending_s


def mean_power(series: MeterSeries, window: Window | None = None) -> tuple[float, float, float]:
    """Return the mean power, its uncertainty, and the seconds over which it was measured.

    `window`: Time that counts; None for all of it.

    Raises:
        TooFewReadings: In that time.
        Unsupported: A counter went back.
    """
    begin_s, end_s = window or (float("-inf"), float("inf"))
    inside = [(at_s, value) for at_s, value in series.samples if begin_s <= at_s <= end_s]
    where = f"{series.node}: {series.meter} {series.domain}"
    if series.quantity == "power":
        return _mean_of_powers(series, inside, where)
    if len(inside) < 2 or (measured_s := inside[-1][0] - inside[0][0]) < 2 * series.interval_s:
        raise TooFewReadings(
            f"{where} has {len(inside)} readings while traffic was sent, and is updated every {series.interval_s:g} s"
        )
    joules = sum(_spent(before, after, series.wraps_at_j) for (_, before), (_, after) in pairwise(inside))
    watts = joules / measured_s
    # The first and the last reading may each be older by one update.
    return watts, (watts * series.interval_s + series.resolution) / measured_s, measured_s


def _spent(before_j: float, after_j: float, wraps_at_j: float | None) -> float:
    if after_j >= before_j:
        return after_j - before_j
    if wraps_at_j is None:
        raise Unsupported(f"an energy counter went back from {before_j:.3f} J to {after_j:.3f} J")
    return after_j + wraps_at_j - before_j


def _mean_of_powers(
    series: MeterSeries, inside: Sequence[tuple[float, float]], where: str
) -> tuple[float, float, float]:
    first_s = inside[0][0] if inside else 0.0
    counted = [(at_s, watts) for at_s, watts in inside if at_s >= first_s + series.interval_s]
    if not counted:
        raise TooFewReadings(f"{where} has no reading of traffic alone: its interval is {series.interval_s:g} s")
    values = [watts for _, watts in counted]
    measured_s = max(counted[-1][0] - first_s, series.interval_s)
    updates = max(1.0, min(len(values), measured_s / series.interval_s))
    spread = stdev(values) / updates**0.5 if len(values) > 1 else 0.0
    return fmean(values), series.resolution / 2 + spread, measured_s


def node_powers(every: Iterable[MeterSeries], window: Window | None = None) -> tuple[NodePower, ...]:
    """Return the power of each node.

    Raises:
        TooFewReadings: A meter has too few in the window.
        Unsupported: A counter went back.
    """
    found = []
    by_node = sorted(every, key=lambda series: series.node)
    for node, group in groupby(by_node, key=lambda series: series.node):
        rows = [(series, mean_power(series, window)) for series in group]
        total = [power for series, power in rows if series.counts] or [power for _, power in rows]
        found.append(
            NodePower(
                node=node,
                meter=rows[0][0].meter,
                watts=sum(watts for watts, _, _ in total),
                error_w=sum(error_w for _, error_w, _ in total),
                measured_s=min(measured_s for _, _, measured_s in total),
                domains={series.domain: watts for series, (watts, _, _) in rows},
            )
        )
    return tuple(found)


def measure_energy(
    watch: Callable[[Trial | None], EnergyReadings],
    frame: Frame,
    pdr_pps: float | None,
    trial_s: float,
    probe_pps: float,
    *,
    duts: tuple[str, ...],
    idle: EnergyReadings | None,
) -> Energy:
    """Measure the power at 0, 10, 50 and 90 % of PDR.

    `pdr_pps`: Rate that loads are shares of, aggregate; None where it was not found, which leaves 0 %.
    `trial_s`: Length of each trial. One whose meters gave too few readings is done again, twice as long: its
      preparation took long, or a reading did.
    `probe_pps`: Latency probe frames per instance and direction.

    Returns:
        The powers; trials ran in the opposite order, the heaviest load first, right after the search.
    """
    rows: list[EnergyAtLoad] = []
    unmetered = dict(idle.unmetered) if idle else {}
    for percent in sorted(LOADS_PERCENT if pdr_pps else (0,), reverse=True):
        load_pps = (pdr_pps or 0.0) * percent / 100
        trial = Trial(load_pps=load_pps, duration_s=trial_s, frame=frame, probe_pps=probe_pps, purpose=PURPOSE)
        seen = watch(trial if percent else None)
        for _ in range(_MAX_TRIALS - 1):
            if not percent or trial.duration_s * 2 > _LONGEST_TRIAL_S or not _too_few(seen):
                break
            trial = trial.model_copy(update={"duration_s": trial.duration_s * 2})
            seen = watch(trial)
        unmetered.update(seen.unmetered)
        rows.append(_row(f"PDR{percent}", load_pps, seen))
    rows += [_row(IDLE, 0.0, idle)] if idle else []
    return Energy(trial_s=trial_s, duts=duts, loads=tuple(reversed(rows)), unmetered=unmetered)


def _too_few(seen: EnergyReadings) -> bool:
    try:
        node_powers(seen.series, seen.window)
    except TooFewReadings:
        return True
    except Unsupported:
        return False
    return False


def _row(label: str, load_pps: float, seen: EnergyReadings) -> EnergyAtLoad:
    result = seen.result
    nodes: tuple[NodePower, ...] = ()
    remark = None
    try:
        nodes = node_powers(seen.series, seen.window)
    except Unsupported as error:
        remark = str(error)
    if result is not None and result.generator_limited:
        limited = f"the generator offered {rate(result.offered_pps)}"
        remark = f"{remark}; {limited}" if remark else limited
    tails = [flow.p99_ns for flow in result.latency if flow.p99_ns is not None] if result else []
    return EnergyAtLoad(
        label=label,
        load_pps=load_pps,
        received_pps=result.forwarded_pps if result else 0.0,
        nodes=nodes,
        busy_cpus=seen.busy_cpus,
        p99_ns=max(tails, default=None),
        remark=remark,
    )


def energy_in_words(found: Energy) -> tuple[str, ...]:
    """Return a line for each load, and one for each node without a meter."""
    lines = []
    for row in found.loads:
        power, each = found.watts(row.label), found.joules_per_packet(row.label)
        parts = [f"{power[0]:.2f} ± {power[1]:.2g} W" if power else "power unknown"]
        parts += [f"{each[0] * 1e6:.3g} µJ/packet"] if each else []
        parts += [f"{row.busy_cpus:.2f} data CPUs busy"] if row.busy_cpus is not None else []
        parts += [f"p99 {row.p99_ns / 1000:.1f} µs"] if row.p99_ns is not None else []
        lines.append(f"{row.label} {', '.join(parts)}")
    return (*lines, *(f"{node}: {why}" for node, why in found.unmetered.items()))
