"""Sweeps, bursts and chains in reports: profiles, predictions, and their records."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from csit_utils.dataset.measures import Explanation, Measure, MeasuredSubject, MeasuredValue
from csit_utils.dataset.rows import frame_text
from csit_utils.report.record_blocks import Block, Column, Plot, Row, Sentences, Table
from csit_utils.report.record_page import record_page
from csit_utils.report.study import QueriedTables, RecordKind, Study
from csit_utils.report.units import common_unit, percent, rate, seconds
from csit_utils.studies.sweep import predictions, profiles
from resources.libraries.python.studies.sweep.analysis.sentences import headline, sentences, title, vnf_words
from resources.libraries.python.studies.sweep.analysis.tables import COEFFICIENTS, PREDICTIONS, STATISTICS, tables_of
from resources.libraries.python.studies.sweep.model import GIGA, Sweep, SweepPoint, SweepRecord, SweepSample
from resources.libraries.python.studies.sweep.planning import preview

_SENT, _ARRIVED = "sent", "arrived"


def on_periods(samples: Sequence[SweepSample]) -> list[tuple[int, int]]:
    """First second of each burst, and the first one after it."""
    on = [False, *(sample.rate_pps > 0 for sample in samples), False]
    turns = [second for second, (before, now) in enumerate(pairwise(on)) if before != now]
    return list(zip(turns[::2], turns[1::2], strict=True))


def _lines(record: SweepRecord) -> Iterator[Row]:
    """A value for each second, drawn over that second: once more at its end where the next second has none."""
    assert record.sweep is not None  # noqa: S101 - the content of a record without a result is None
    drawn: dict[str, Row] = {}
    for second, sample in enumerate([*record.sweep.samples, None]):
        used = {} if sample is None else {name: sum(threads) for name, threads in sample.cpu.items()}
        now: dict[str, Row] = {
            _SENT: {"rate": sample and sample.input_pps},
            _ARRIVED: {
                "rate": sample and sample.output_pps,
                "loss": sample and sample.loss_ratio,
                "delay": sample and sample.delay_s,
            },
            **{vnf_words(vnf): {"cpu": used.get(vnf.name)} for vnf in record.sweep.vnfs},
        }
        for line, values in now.items():
            before = drawn.get(line, {})
            ended = {key: before.get(key) for key, value in values.items() if value is None}
            yield {"line": line, "second": second, **values, **ended}
            if any(value is not None for value in ended.values()):
                yield {"line": line, "second": second, **values}
        drawn = now


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
    for name, heading, column in (
        ("rate", "sent and received", Column("rate", f"rate, {unit}", scale=1 / divisor)),
        ("loss", "loss", Column("loss", "loss, %", scale=100)),
        ("delay", "one-way delay", Column("delay", "delay, ms", scale=1e3)),
        ("cpu", "CPU", Column("cpu", "CPU, % of one vCPU", scale=100)),
    ):
        yield Plot(
            name,
            f"{sweep.name}: {heading} each second",
            _lines,
            Column("second", "time, s"),
            column,
            colour="line",
            mark="lines",
            style={"line": {"width": 2, "shape": "hv"}},
            lines={_SENT: {"line": {"width": 2, "shape": "hv", "dash": "dash"}}},
            layout={"shapes": shades, "showlegend": name in {"rate", "cpu"}},
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


BURSTS = record_page("bursts", "Bursts", "bursts", _blocks)


EXPLANATIONS = (
    Explanation(
        "input-rate",
        "Input rate",
        "The rate actually sent into the service, one way; the x-axis of every profile.",
        "Gbit/s, L2 bits with FCS; also packets per second. Traffic goes both ways, the same in each.",
        "As the generator counted it, and where it can be read once more from the network interface of the sender. A "
        "load whose input rate is off what was asked by more than the tolerance (5 % unless asked otherwise) is "
        "flagged; where the two counts disagree the load is left out of the profile.",
        "It is neither the requested rate nor the sum of both directions. In bits per second a service appears "
        "faster with large packets; the cost of a packet shows in packets per second.",
    ),
    Explanation(
        "sweep-delay",
        "One-way delay of a sweep",
        "The mean time of a packet from the sender through the service to the receiver, in a second or over a load.",
        "Milliseconds, one way.",
        "By probe frames on top of the load, or half of the round trip if the generator measures that.",
        "It is a mean: a percentile of the density tests says more about the worst packets. In overload it "
        "reflects the depth of full queues. Half of a round trip is the one-way delay only if both directions are "
        "alike.",
    ),
    Explanation(
        "vcpu-percent",
        "CPU percent of a vCPU",
        "Share of time in which the data threads of a VNF ran.",
        "Percent of one vCPU: 250 % are two and a half vCPUs.",
        "CPU time of every data thread before and after each load or second, divided by the time between. “Has work” "
        "adds the time in which a thread was runnable and waited for its CPU.",
        "VNFs that share CPUs never reach 100 %: look at the time they have work. A data thread that polls runs all "
        "the time, whatever the load.",
    ),
    Explanation(
        "memory-in-use",
        "Memory of a VNF",
        "Memory in use at the end of each second, and what the node can still give to programs.",
        "MiB.",
        "That of the VNF's control group, without file pages that were not used lately; without such a group the "
        "resident memory of its processes.",
        "Packets in flight are not in it, as queues are empty then. Pages that several processes share count for each. "
        "NFs in the kernel have no memory of their own.",
    ),
    Explanation(
        "saturation",
        "Saturation break-point",
        "The input rate from which on the CPUs of a VNF are at their maximum; profiles have one function below it, and "
        "another from there on. Without such a CPU it is shown by throughput, loss or memory, and named so.",
        "Gbit/s, one way, L2.",
        "Where a broken line through the mean CPU of each load bends: all vCPUs of a VNF are used, or its use no "
        "longer grows with the load, or it always has work on shared CPUs. The first VNF to saturate counts. Memory "
        "that stops growing there names the break-point where no CPU is full. Further "
        "loads are measured around it while its 95 % interval is wide. Troia et al. take the first load "
        "at or above it, which records have as `measured_rate`.",
        "The interval is of the scatter of the loads only: a wrong form of the line, or a machine that changes "
        "meanwhile, is not in it. On shared CPUs it is just the two loads around it. No break-point means that no "
        "load is known to have saturated the service, not that it has no limit.",
        ("break-point",),
    ),
    Explanation(
        "saturated",
        "Saturated throughput",
        "The rate that is forwarded at the first load from the break-point on.",
        "Packets per second, one way.",
        "Mean of the load's seconds; the bounds are the worst and the best of them.",
        "Beyond it throughput may fall: look at the plot.",
    ),
    Explanation(
        "without-loss",
        "Highest load without loss",
        "The highest load up to which no load of the sweep lost more than 0.01 % of the packets.",
        "Packets per second, one way.",
        "The upper bound is the next load of the sweep.",
        "It is as coarse as the steps of the loads, and each load is one trial: search NDR for a bound that is proven.",
    ),
    Explanation(
        "smt-gain",
        "What SMT adds",
        "Change of the break-point, and of the throughput in saturation, from one thread on each core to all of them.",
        "Percent of the value with SMT switched off.",
        "The same service on the same cores is swept with SMT on and off. Saturated throughput is that of the fitted "
        "function at the first load from the break-point on. The interval of the ratio follows from those of both "
        "values, by MOVER on logarithms.",
        "SMT is off on the whole machine, for the vSwitch and other NFs as well: it is not the gain of the NF alone. "
        "On one machine the generator loses threads, too. Loads follow the capacity of each of both, unless given.",
    ),
    Explanation(
        "profile-error",
        "Errors of a profile",
        "Deviation of the fitted functions from the measured values.",
        "Standard error in the unit of the metric; relative error in percent.",
        "Standard error: square root of the sum of squared residuals over the degrees of freedom. Relative error: mean "
        "of |fitted - measured| / |measured| over the points that are not zero. Among equally good functions the "
        "simplest is taken.",
        "A function is valid between its first and its last point; beyond them it is extrapolated. A small error of "
        "few points does not prove the form.",
    ),
    Explanation(
        "prediction-error",
        "Error of a prediction",
        "Deviation of a chain from the prediction from its VNFs alone.",
        "Percent of the measured value; for loss percentage points.",
        "Mean absolute error over all loads of the chain. By the bottleneck VNF: throughput and loss of the VNF that "
        "saturates first. With shared CPUs: VNFs on the same CPUs count as one whose time per packet is the sum of "
        "theirs. Delay: that of the path without VNFs, plus what each VNF alone adds to it.",
        "A few loads near saturation may cause most of it: look at the plot. If the path was not measured, the "
        "delay is the plain sum, which contains generator, vSwitch and links once for each VNF.",
    ),
)
BREAK_POINT = Measure("break-point")
"""The load that saturates the service."""
WITHOUT_LOSS = Measure("without-loss")
"""The highest load up to which nothing is lost."""
SATURATED = Measure("saturated")
"""The rate that is forwarded at the first load from the break-point on."""
LOSS_FREE = 1e-4
"""Loss ratio up to which a load counts as without loss: there is one trial for each load."""


def _identity(record: SweepRecord) -> object:
    """Service and traffic. Loads are no part of it: tests choose them by what the service forwards."""
    if record.sweep is None:
        return None
    spec = record.sweep.spec
    return record.sweep.cell.model_dump_json(), spec.frame, spec.protocol, spec.flows, spec.departures, record.smt_off


def _measured(record: SweepRecord) -> Iterator[MeasuredSubject]:
    """Yield a subject for a sweep or a chain, and none for bursts."""
    sweep = record.sweep
    if sweep is None or sweep.spec.rates is None:
        return
    spec, cell = sweep.spec, sweep.cell
    yield MeasuredSubject(
        tuple(_numbers(record, sweep)),
        f"{sweep.name}{' (SMT off)' if record.smt_off else ''}",
        cell.dimensions,
        cell.size_name,
        frame_text(spec.frame),
        f"{spec.protocol}, {spec.flows} flow{'s' if spec.flows > 1 else ''}",
        cell.vs_dtc,
    )


def _numbers(record: SweepRecord, sweep: Sweep) -> Iterator[MeasuredValue]:
    points = sorted(sweep.points, key=lambda point: point.input_pps)
    found = record.profile.break_point if record.profile else None
    if found is not None:
        bits = 8 * sweep.spec.frame.mean_bytes / GIGA
        rate = found.rate / bits
        measured_rate = found.rate if found.measured_rate is None else found.measured_rate
        at = min(range(len(points)), key=lambda index: abs(points[index].input_bps / GIGA - measured_rate))
        if found.low is None or found.high is None:
            yield MeasuredValue(BREAK_POINT, rate, points[at - 1].input_pps if at else 0.0, rate)
        else:
            yield MeasuredValue(BREAK_POINT, rate, found.low / bits, found.high / bits)
        yield _saturated(sweep, points[at])
    yield from _without_loss(points)


def _saturated(sweep: Sweep, point: SweepPoint) -> MeasuredValue:
    """Throughput at the break-point; between the worst and the best of its seconds."""
    seconds = [sample.output_pps for sample in sweep.samples if sample.rate_pps == point.rate_pps]
    return MeasuredValue(
        SATURATED, point.output_pps, min([point.output_pps, *seconds]), max([point.output_pps, *seconds])
    )


def _without_loss(points: Sequence[SweepPoint]) -> Iterator[MeasuredValue]:
    """The highest load up to which nothing is lost; nothing where the lowest one loses."""
    lossy = next((index for index, point in enumerate(points) if (point.loss_ratio or 0.0) > LOSS_FREE), len(points))
    if lossy:
        rate = points[lossy - 1].input_pps
        yield MeasuredValue(WITHOUT_LOSS, rate, rate, points[lossy].input_pps if lossy < len(points) else None)


_QUERIED = QueriedTables(
    {"S_statistics": STATISTICS, "coefficients": COEFFICIENTS, "predictions": PREDICTIONS},
    texts=(
        "flagged", "service", "saturates_first", "metric", "region", "function", "formula", "coefficient", "indicator",
        "second_indicator", "chain", "parts", "model", "path",
    ),
    counts=("samples", "points"),
    prefix="sweep_",
)  # fmt: skip


def _kind(kind: str, name: str) -> RecordKind:
    return RecordKind(
        kind,
        name,
        lambda record: record if record.sweep is not None else None,
        title,
        headline,
        _identity,
        sentences,
        lambda record: record.profile.notes if record.profile is not None else (),
        (BREAK_POINT, WITHOUT_LOSS, SATURATED),
        _measured,
        tables_of,
        _QUERIED,
    )


STUDY = Study(
    order=20,
    pages=(profiles.PAGE, predictions.PAGE, BURSTS),
    kinds=(_kind("sweep", "Sweep"), _kind("chain", "Chain"), _kind("bursts", "Bursts")),
    explanations={"Sweeps and chains": EXPLANATIONS},
    preview=preview,
)
