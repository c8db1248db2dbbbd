"""Power and energy per packet of a test: a line for each load, and a figure."""

from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row
from csit_utils.report.units import DASH, common_unit
from resources.libraries.python.model.measurements.energy import IDLE, Energy, EnergyAtLoad
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import GENERATOR

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
