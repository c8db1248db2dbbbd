"""Power and energy per packet of a test: a line for each load, and a figure."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from csit_utils.report.figures import Figure, Json
from csit_utils.report.units import DASH, common_unit
from resources.libraries.python.model.measurements.energy import IDLE, Energy
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import GENERATOR

_SHARED = "The generator runs on the same machine: its power is part of that of the system under test."
LABELS = {IDLE: "before the deployment", "PDR0": "0 % of PDR, no traffic"}


@dataclass(frozen=True)
class EnergyView:
    """One load."""

    label: str
    load: str
    received_pps: float
    power: str
    """Of the system under test, with its uncertainty."""
    watts: float | None
    nodes: str
    """Power of each node and of its domains."""
    joules_per_packet: float | None
    above_idle: float | None
    """Energy per packet without the power before the deployment."""
    busy_cpus: float | None
    p99_ns: int | None
    remark: str


def load_words(label: str) -> str:
    """Return the load of a label in words."""
    return LABELS.get(label, f"{label.removeprefix('PDR')} % of PDR")


def energy_lines(found: Energy | None) -> tuple[EnergyView, ...]:
    """Return a line for each load; none where energy was not measured."""
    return tuple(_lines(found)) if found is not None else ()


def _lines(found: Energy) -> Iterator[EnergyView]:
    for row in found.loads:
        power = found.watts(row.label)
        each, above = found.joules_per_packet(row.label), found.joules_per_packet(row.label, IDLE)
        nodes = (
            f"{node.node} by {node.meter} in {node.measured_s:.1f} s: "
            + ", ".join(f"{domain} {watts:.2f} W" for domain, watts in node.domains.items())
            for node in row.nodes
        )
        yield EnergyView(
            label=row.label,
            load=load_words(row.label),
            received_pps=row.received_pps,
            power=f"{power[0]:.2f} ± {power[1]:.2g} W" if power else DASH,
            watts=power[0] if power else None,
            nodes="; ".join(nodes) or DASH,
            joules_per_packet=each[0] if each else None,
            above_idle=above[0] if above else None,
            busy_cpus=row.busy_cpus,
            p99_ns=row.p99_ns,
            remark=row.remark or "",
        )


def energy_notes(found: Energy | None, plan: Plan | None = None) -> tuple[str, ...]:
    """Return why nodes have no meter, a sentence each, and whether the power has that of the generator in it."""
    if found is None:
        return ()
    missing = tuple(f"{node}: {why}." for node, why in found.unmetered.items())
    shared = plan is not None and plan.cores.cpus(GENERATOR) and any(row.nodes for row in found.loads)
    return (*missing, *((_SHARED,) if shared else ()))


def energy_figure(identity: str, title: str, found: Energy | None, *, simulated: bool) -> Figure | None:
    """Return power by rate, or busy data CPUs where no meter tells the power; None where neither is known."""
    if found is None:
        return None
    rows = [row for row in found.loads if row.label != IDLE]
    factor, unit = common_unit([row.received_pps for row in rows])
    powers = [(row.received_pps / factor, found.watts(row.label)) for row in rows]
    if known := [(x, power) for x, power in powers if power is not None]:
        axis = "power of the system under test, W"
        trace = _trace("power", [x for x, _ in known], [power[0] for _, power in known])
        trace["error_y"] = {"type": "data", "array": [float(f"{power[1]:.3g}") for _, power in known]}
        data = [trace]
        if idle := found.watts(IDLE):
            level = _trace("before the deployment", [x for x, _ in known], [idle[0]] * len(known), colour=1)
            data.append({**level, "mode": "lines", "line": {"dash": "dash"}})
    else:
        busy = [(row.received_pps / factor, row.busy_cpus) for row in rows if row.busy_cpus is not None]
        if not busy:
            return None
        axis = "data CPUs busy (no energy meter)"
        data = [_trace("busy data CPUs", [x for x, _ in busy], [value for _, value in busy])]
    layout: Json = {
        "xaxis": {"title": {"text": f"received, {unit}"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": axis}, "rangemode": "tozero"},
    }
    return Figure(identity, title, simulated, (), {"": {"data": data, "layout": layout}})


def _trace(name: str, x: list[float], y: list[float], colour: int = 0) -> Json:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(name),
        "x": [float(f"{value:.4g}") for value in x],
        "y": [float(f"{value:.5g}") for value in y],
        "meta": {"colour": colour},
    }
