"""The noise floor of a test's data CPUs, with a figure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.search.findings.host_noise import QUEUE_FRAMES

_LISTED = 40
"""CPUs in the table and the figure, those with the longest interruptions first."""
_INTERRUPTS = 3


@dataclass(frozen=True)
class NoiseView:
    """One line of the table of the noise floor."""

    cpu: str
    owners: str
    """Owners of the data threads that are planned on it; empty without one plan."""
    per_s: float
    """Interruptions per second."""
    share: float
    longest_ns: int
    limit_pps: float | None
    """Rate at which a receive queue is full at the end of the longest interruption; None without one."""
    causes: str
    """Counts of the kernel and the processor meanwhile."""


def noise_floor(plan: Plan | None, noise: Iterable[CpuNoise]) -> tuple[NoiseView, ...]:
    """Return the lines of the table: CPUs of the test's data threads, or all where it deployed without one plan."""
    owners: dict[tuple[str | None, int], list[str]] = {}
    for thread in plan.cores.threads if plan is not None else ():
        if thread.role == "data":
            owners.setdefault((thread.machine, thread.cpu), []).append(thread.owner)
    used = [row for row in noise if plan is None or (row.machine, row.cpu) in owners]
    worst = sorted(used, key=lambda row: -row.longest_ns)[:_LISTED]
    return tuple(_line(row, owners.get((row.machine, row.cpu), ())) for row in worst)


def _line(row: CpuNoise, owners: Sequence[str]) -> NoiseView:
    return NoiseView(
        cpu=_name(row),
        owners=", ".join(dict.fromkeys(owners)),
        per_s=row.count / row.observed_s,
        share=row.share,
        longest_ns=row.longest_ns,
        limit_pps=QUEUE_FRAMES / (row.longest_ns * 1e-9) if row.longest_ns else None,
        causes="; ".join(_causes(row)) or "not known",
    )


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
