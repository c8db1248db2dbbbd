"""Bursts: what happens second by second when a load comes and goes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from csit_utils.report.characterizations import page_of_records
from csit_utils.report.figures import Figure, Json, axes, no_choice, scatter
from csit_utils.report.study import View
from csit_utils.report.units import common_unit
from csit_utils.studies.sweep.words import vnf_words
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepRecord, SweepSample


@dataclass(frozen=True)
class Burst:
    """A test on the page."""

    view: View
    figures: tuple[Figure, ...]
    samples: tuple[SweepSample, ...]
    vnfs: tuple[str, ...]


def _burst(view: View) -> Burst:
    sweep = view.record.sweep
    return Burst(
        view,
        tuple(burst_figures(view.anchor, view.record)),
        sweep.samples if sweep else (),
        tuple(vnf.name for vnf in sweep.vnfs) if sweep else (),
    )


PAGE = page_of_records("bursts", "Bursts", "bursts", "bursts", _burst)
"""Shown where there are bursts."""


def on_periods(samples: Sequence[SweepSample]) -> list[tuple[int, int]]:
    """First second of each burst, and the first one after it."""
    on = [False, *(sample.rate_pps > 0 for sample in samples), False]
    turns = [second for second, (before, now) in enumerate(pairwise(on)) if before != now]
    return list(zip(turns[::2], turns[1::2], strict=True))


def burst_figures(anchor: str, record: SweepRecord) -> list[Figure]:
    """Rates, loss, delay and CPU against time, bursts shaded."""
    sweep = record.sweep
    if sweep is None or not sweep.samples:
        return []
    divisor, unit = common_unit([sample.input_pps for sample in sweep.samples])
    rates = [
        _steps("sent", [sample.input_pps / divisor for sample in sweep.samples], unit, 1, "dash"),
        _steps("arrived", [sample.output_pps / divisor for sample in sweep.samples], unit, 0),
    ]
    loss = [None if row.loss_ratio is None else 100 * row.loss_ratio for row in sweep.samples]
    delay = [None if row.delay_s is None else 1e3 * row.delay_s for row in sweep.samples]
    plots = (
        ("rate", "sent and received", f"rate, {unit}", rates),
        ("loss", "loss", "loss, %", [_steps("loss", loss, "%", 3)]),
        ("delay", "one-way delay", "delay, ms", [_steps("delay", delay, "ms", 2)]),
        ("cpu", "CPU", "CPU, % of one vCPU", list(_cpu(sweep))),
    )
    return [
        no_choice(
            f"{anchor}-{name}",
            f"{sweep.name}: {title} each second",
            lines,
            _layout(sweep, axis),
            simulated=record.simulated,
        )
        for name, title, axis, lines in plots
        if any(value is not None for line in lines for value in line["y"])
    ]


def _layout(sweep: Sweep, axis: str) -> Json:
    shades = [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": start, "x1": end, "y0": 0, "y1": 1, "layer": "below"}
        | {"fillcolor": "grid", "opacity": 0.7, "line": {"width": 0}}
        for start, end in on_periods(sweep.samples)
    ]
    return axes("time, s", axis, shapes=shades)


def _cpu(sweep: Sweep) -> Iterator[Json]:
    for number, vnf in enumerate(sweep.vnfs):
        used = [100 * sum(row.cpu[vnf.name]) if vnf.name in row.cpu else None for row in sweep.samples]
        yield _steps(vnf_words(vnf), used, "% of one vCPU", number)


def _steps(name: str, values: Sequence[float | None], unit: str, colour: int, dash: str = "solid") -> Json:
    """A value for each second, drawn over that second."""
    seconds = range(len(values))
    texts = [
        f"second {second} to {second + 1}: {escape(name)} "
        + ("nothing sent" if value is None else f"{value:.4g} {unit}")
        for second, value in zip(seconds, values, strict=True)
    ]
    return scatter(
        name,
        # From the beginning of each second to its end.
        [(edge, value) for second, value in zip(seconds, values, strict=True) for edge in (second, second + 1)],
        colour,
        texts=[text for text in texts for _ in range(2)],
        mode="lines",
        line={"width": 2, "dash": dash},
    )
