"""The machines of a test: noise floor of data CPUs, qualification of the generator, and energy, each with a figure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from csit_utils.report.figures import Figure, axis, bars, scatter
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row
from csit_utils.report.units import DASH, common_unit
from resources.libraries.python.model.measurements.energy import IDLE, Energy, EnergyAtLoad
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.measurements.qualification import Qualification, QualifiedPoint
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.quantities import counted
from resources.libraries.python.search.findings.host_noise import QUEUE_FRAMES

_LISTED = 40
"""CPUs in the table and the figure, those with the longest interruptions first."""
_INTERRUPTS = 3


class NoiseView:
    """One line of the table of the noise floor."""

    def __init__(self, row: CpuNoise, owners: Sequence[str]) -> None:
        self.cpu = _name(row)
        self.owners = ", ".join(dict.fromkeys(owners))
        """Owners of the data threads that are planned on it; empty without one plan."""
        self.per_s = row.count / row.observed_s
        """Interruptions per second."""
        self.share, self.longest_ns = row.share, row.longest_ns
        self.limit_pps = QUEUE_FRAMES / (row.longest_ns * 1e-9) if row.longest_ns else None
        """Rate at which a receive queue is full at the end of the longest interruption; None without one."""
        self.causes = "; ".join(_causes(row)) or "not known"
        """Counts of the kernel and the processor meanwhile."""


def noise_floor(plan: Plan | None, noise: Iterable[CpuNoise]) -> tuple[NoiseView, ...]:
    """Return the lines of the table: CPUs of the test's data threads, or all where it deployed without one plan."""
    owners: dict[tuple[str | None, int], list[str]] = {}
    for thread in plan.cores.threads if plan is not None else ():
        if thread.role == "data":
            owners.setdefault((thread.machine, thread.cpu), []).append(thread.owner)
    used = [row for row in noise if plan is None or (row.machine, row.cpu) in owners]
    worst = sorted(used, key=lambda row: -row.longest_ns)[:_LISTED]
    return tuple(NoiseView(row, owners.get((row.machine, row.cpu), ())) for row in worst)


def _name(row: CpuNoise) -> str:
    return f"{row.cpu} of {row.machine}" if row.machine else str(row.cpu)


def _causes(row: CpuNoise) -> Iterable[str]:
    yield from (f"{count} x {name}" for name, count in list(row.interrupts.items())[:_INTERRUPTS])
    if row.preemptions:
        yield f"{row.preemptions} preemptions by other threads"
    if row.stolen_s:
        yield f"{row.stolen_s:.2g} s taken by the hypervisor"
    if row.smis:
        yield f"{row.smis} System Management Interrupts"
    if not row.real_time:
        yield "observed without real-time priority"


def noise_figure(
    anchor: str, title: str, plan: Plan | None, noise: Sequence[CpuNoise], *, simulated: bool
) -> Figure | None:
    """Return how often each CPU is taken for longer than a time; None where no data CPU was."""
    shown = {line.cpu for line in noise_floor(plan, noise)}
    plot = Plot(
        anchor,
        title,
        "noise",
        Column("gap_us", "duration of an interruption, µs", log=True, options={"dtick": "D2"}),
        Column("per_s", "interruptions per second, as long or longer", log=True, options={"dtick": 1}),
        colour="cpu",
        style={"line": {"shape": "vh"}, "marker": {"size": 4}},
    )
    rows = [each for row in noise if _name(row) in shown for each in _rows(row)]
    return plot.draw(RecordTables("noise", simulated, None, {"noise": rows}))


def _rows(row: CpuNoise) -> Iterator[Row]:
    left = row.count
    for gap_s, number in row.gaps():
        yield {"cpu": f"CPU {_name(row)}", "gap_us": gap_s * 1e6, "per_s": left / row.observed_s}
        left -= number


_LISTED_POINTS = 40
"""Lines of the table."""


@dataclass(frozen=True)
class QualificationView:
    """The qualification that a test was judged by."""

    caption: str
    points: tuple[QualifiedPoint, ...]
    bound: QualifiedPoint | None
    """The one that bounds the test's figures."""
    notes: tuple[str, ...]


def qualification_view(found: Qualification | None, frame: Frame, flows: int) -> QualificationView | None:
    """Return the table of a qualification; None where the generator was not qualified."""
    if found is None:
        return None
    parts = (str(found.key), found.sending, f"trials of {found.trial_s:g} s, {found.measured_at}")
    return QualificationView(
        caption="; ".join(filter(None, parts)),
        points=found.points[:_LISTED_POINTS],
        bound=found.bound(frame, flows),
        notes=found.notes,
    )


_SYMBOLS = ("diamond", "circle-open", "square-open")
"""Of figures, distinct where two are equal."""
_RATES = (("no loss", "loss_free_pps"), ("loss ≤ 0.5 %", "highest_pps"), ("most that arrived", "received_pps"))


def qualification_figure(
    identity: str,
    title: str,
    view: QualificationView | None,
    figures: Sequence[tuple[str, float | None]],
    *,
    simulated: bool,
) -> Figure | None:
    """Return the generator's rates by frame and flows as bars, and the test's figures as lines.

    `view`: what the generator can do; None gives None.
    `figures`: name and rate of each figure of the test.
    `simulated`: whether nothing was measured.
    """
    if view is None or not view.points:
        return None
    known = [(name, rate_pps) for name, rate_pps in figures if rate_pps is not None]
    rates: dict[str, list[float | None]] = {
        label: [getattr(point, field) for point in view.points] for label, field in _RATES
    }
    scale, unit = common_unit([value for own in rates.values() for value in own if value is not None])
    names = [_point_name(point) for point in view.points]
    data = [
        bars(
            label, [(name, None if pps is None else pps / scale) for name, pps in zip(names, own, strict=True)], number
        )
        for number, (label, own) in enumerate(rates.items())
    ]
    at = names if view.bound is None else [_point_name(view.bound)]
    data += [
        scatter(
            f"{name} of this test",
            [(where, rate_pps / scale) for where in at],
            len(_RATES) + number,
            mode="markers",
            marker={"size": 12, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
        )
        for number, (name, rate_pps) in enumerate(known)
    ]
    layout = {
        "xaxis": {"type": "category", "title": {"text": "frame size and flows, looped back"}},
        "yaxis": axis(f"rate of all flows, {unit}"),
        "barmode": "group",
    }
    return Figure(identity, title, simulated, (), {"": {"data": data, "layout": layout}})


def _point_name(point: QualifiedPoint) -> str:
    return f"{escape(point.frame.name)}, {counted(point.flows, 'flow')}"


_SHARED = "The generator runs on the same machine: its power is part of that of the system under test."
LABELS = {IDLE: "before the deployment", "PDR0": "0 % of PDR, no traffic"}


class EnergyView:
    """One load."""

    def __init__(self, found: Energy, row: EnergyAtLoad) -> None:
        power = found.watts(row.label)
        each, above = found.joules_per_packet(row.label), found.joules_per_packet(row.label, IDLE)
        nodes = (
            f"{node.node} by {node.meter} in {node.measured_s:.1f} s: "
            + ", ".join(f"{domain} {watts:.2f} W" for domain, watts in node.domains.items())
            for node in row.nodes
        )
        self.label, self.load = row.label, load_words(row.label)
        self.received_pps = row.received_pps
        self.power = f"{power[0]:.2f} ± {power[1]:.2g} W" if power else DASH
        """Of the system under test, with its uncertainty."""
        self.watts = power[0] if power else None
        self.nodes = "; ".join(nodes) or DASH
        self.joules_per_packet = each[0] if each else None
        self.above_idle = above[0] if above else None
        """Energy per packet without the power before the deployment."""
        self.busy_cpus, self.p99_ns, self.remark = row.busy_cpus, row.p99_ns, row.remark or ""


def load_words(label: str) -> str:
    """Return the load of a label in words."""
    return LABELS.get(label, f"{label.removeprefix('PDR')} % of PDR")


def energy_lines(found: Energy | None) -> tuple[EnergyView, ...]:
    """Return a line for each load; none where energy was not measured."""
    return tuple(EnergyView(found, row) for row in found.loads) if found is not None else ()


def energy_notes(found: Energy | None, plan: Plan | None = None) -> tuple[str, ...]:
    """Return why nodes have no meter, a sentence each, and whether the power has that of the generator in it."""
    if found is None:
        return ()
    missing = tuple(f"{node}: {why}." for node, why in found.unmetered.items())
    shared = plan is not None and plan.cores.cpus(GENERATOR) and any(row.nodes for row in found.loads)
    return (*missing, *((_SHARED,) if shared else ()))


def energy_figure(anchor: str, title: str, found: Energy | None, *, simulated: bool) -> Figure | None:
    """Return power by rate, or busy data CPUs where no meter tells the power; None where neither is known."""
    if found is None:
        return None
    loads = [row for row in found.loads if row.label != IDLE]
    rows: list[Row] = []
    for row in loads:
        if power := found.watts(row.label):
            watts, error = power
            ends = {"low": watts - error, "high": watts + error}
            rows.append({"line": "power", "rate": row.received_pps, "watts": watts, **ends})
        elif row.busy_cpus is not None:
            rows.append({"line": "busy data CPUs", "rate": row.received_pps, "busy": row.busy_cpus})
    if idle := found.watts(IDLE):
        level = {"line": "before the deployment", "watts": idle[0], "reference": True}
        rows += [{**level, "rate": row["rate"]} for row in rows if "watts" in row]
    factor, unit = common_unit([row.received_pps for row in loads])
    power_w = Column("watts", "power of the system under test, W", ends=("low", "high"))
    busy = Column("busy", "data CPUs busy (no energy meter)")
    x = Column("rate", f"received, {unit}", scale=1 / factor)
    y = power_w if any("watts" in row for row in rows) else busy
    plot = Plot(anchor, title, "energy", x, y, colour="line", reference="reference")
    return plot.draw(RecordTables("energy", simulated, None, {"energy": rows}))
