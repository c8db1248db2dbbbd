"""Power and energy per packet of a test: a line for each load, and a figure."""

from collections.abc import Iterator
from dataclasses import dataclass

from csit_utils.report.figures import Figure, axes, no_choice, rounded, scatter
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
        quantity = "power of the system under test, W"
        error = {"type": "data", "array": [rounded(power[1]) for _, power in known]}
        data = [scatter("power", [(x, power[0]) for x, power in known], 0, error_y=error)]
        if idle := found.watts(IDLE):
            level = [(x, idle[0]) for x, _ in known]
            data.append(scatter("before the deployment", level, 1, mode="lines", line={"dash": "dash"}))
    else:
        busy = [(row.received_pps / factor, row.busy_cpus) for row in rows if row.busy_cpus is not None]
        if not busy:
            return None
        quantity = "data CPUs busy (no energy meter)"
        data = [scatter("busy data CPUs", busy, 0)]
    layout = axes(f"received, {unit}", quantity)
    return no_choice(identity, title, data, layout, simulated=simulated)
