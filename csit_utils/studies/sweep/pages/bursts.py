"""Bursts: what happens second by second when a load comes and goes."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from csit_utils.report.record_blocks import Block, Column, Plot, Row, Sentences, Table
from csit_utils.report.record_page import record_page
from csit_utils.report.units import common_unit, percent, rate, seconds
from resources.libraries.python.studies.sweep.analysis.sentences import vnf_words
from resources.libraries.python.studies.sweep.model.record import SweepRecord, SweepSample

_SENT, _ARRIVED = "sent", "arrived"


def on_periods(samples: Sequence[SweepSample]) -> list[tuple[int, int]]:
    """First second of each burst, and the first one after it."""
    on = [False, *(sample.rate_pps > 0 for sample in samples), False]
    turns = [second for second, (before, now) in enumerate(pairwise(on)) if before != now]
    return list(zip(turns[::2], turns[1::2], strict=True))


def _lines(record: SweepRecord) -> Iterator[Row]:
    """A value for each second, drawn over that second: the last one once more at its end."""
    assert record.sweep is not None  # noqa: S101 - the content of a record without a result is None
    samples = record.sweep.samples
    for second, sample in enumerate([*samples, *samples[-1:]]):
        yield {"line": _SENT, "second": second, "rate": sample.input_pps}
        loss = {"loss": sample.loss_ratio, "delay": sample.delay_s}
        yield {"line": _ARRIVED, "second": second, "rate": sample.output_pps, **loss}
        for vnf in record.sweep.vnfs:
            used = sum(sample.cpu[vnf.name]) if vnf.name in sample.cpu else None
            yield {"line": vnf_words(vnf), "second": second, "cpu": used}


def _samples(record: SweepRecord) -> Iterator[Row]:
    for second, sample in enumerate(record.sweep.samples if record.sweep else ()):
        yield {
            **sample.model_dump(include={"rate_pps", "input_pps", "output_pps", "loss_ratio", "delay_s"}),
            "second": second,
            **{f"{vnf}_cpus": sum(threads) for vnf, threads in sample.cpu.items()},
        }


def _blocks(record: SweepRecord) -> Iterable[Block]:
    sweep = record.sweep
    if sweep is None or not sweep.samples:
        return
    shades = [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": start, "x1": end, "y0": 0, "y1": 1, "layer": "below"}
        | {"fillcolor": "grid", "opacity": 0.7, "line": {"width": 0}}
        for start, end in on_periods(sweep.samples)
    ]
    divisor, unit = common_unit([sample.input_pps for sample in sweep.samples])
    for name, title, column in (
        ("rate", "sent and received", Column("rate", f"rate, {unit}", scale=1 / divisor)),
        ("loss", "loss", Column("loss", "loss, %", scale=100)),
        ("delay", "one-way delay", Column("delay", "delay, ms", scale=1e3)),
        ("cpu", "CPU", Column("cpu", "CPU, % of one vCPU", scale=100)),
    ):
        yield Plot(
            name,
            f"{sweep.name}: {title} each second",
            _lines,
            Column("second", "time, s"),
            column,
            colour="line",
            mark="lines",
            style={"line": {"width": 2, "shape": "hv"}},
            lines={_SENT: {"line": {"width": 2, "shape": "hv", "dash": "dash"}}},
            layout={"shapes": shades},
        )
    yield Sentences(lambda _: ("Shaded: the burst is on.",), paragraph=True)
    yield Table(
        "seconds",
        _samples,
        (
            Column("second", write=str),
            Column("rate_pps", "asked, each flow", rate),
            Column("input_pps", "input", rate, explain=("input-rate", "the input rate")),
            Column("output_pps", "output", rate),
            Column("loss_ratio", "loss", percent),
            Column("delay_s", "delay", seconds),
            *(
                Column(f"{vnf.name}_cpus", f"{vnf.name} CPU", percent, explain=("vcpu-percent", "CPU percent"))
                for vnf in sweep.vnfs
            ),
        ),
        folded=f"All {len(sweep.samples)} seconds",
    )


PAGE = record_page("bursts", "Bursts", "bursts", _blocks)
