"""Names and sentences about sweeps, VNFs and chains."""

from csit_utils.report.units import DASH, bandwidth, digits3, percent, rate
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.result import l2_bps
from resources.libraries.python.studies.sweep.analysis.profile import HighestRate
from resources.libraries.python.studies.sweep.analysis.saturation import LOSES
from resources.libraries.python.studies.sweep.analysis.sentences import gain_in_words
from resources.libraries.python.studies.sweep.model.profile import GIGA, Prediction, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepRecord, Vnf

MODELS = {"hungriest": "by the bottleneck VNF", "shared_cpus": "with shared CPUs"}
"""Names of models of predictions."""


def title(record: SweepRecord) -> str:
    """Service, frame and size: `firewall, 64B, 1c`."""
    if record.sweep is None:
        return record.test_name
    return f"{record.sweep.name}, {sweep_words(record.sweep)}{', SMT off' if record.smt_off else ''}"


def headline(record: SweepRecord) -> str | None:
    """Return the result in one sentence."""
    if record.sweep is None or not record.sweep.samples:
        return None
    if record.kind == "bursts":
        return _bursts_headline(record.sweep)
    gains = (f"SMT changes the {row.quantity} by {gain_in_words(row.gain)}" for row in record.smt_gains)
    return "; ".join([_saturation(record, record.sweep), *_prediction_errors(record), *gains])


def _saturation(record: SweepRecord, sweep: Sweep) -> str:
    found = record.profile.break_point if record.profile else None
    if found is None:
        last = max(sweep.points, key=lambda point: point.input_pps, default=None)
        if last is None or not last.input_pps:
            return "has no profile"
        if last.loss_ratio is not None and last.loss_ratio >= LOSES:
            return f"loses {percent(last.loss_ratio)} at {rate(last.input_pps)}; its break-point is not known"
        return f"does not saturate up to {rate(last.input_pps)}"
    second = record.profile.second if record.profile else None
    other = f"; another break-point is at {input_words(second.rate, sweep)}: {second.reason}" if second else ""
    at = input_words(found.rate, sweep, found.low, found.high)
    at += " or below" if found.is_upper_bound else ""
    return f"saturates at {at}, by {found.indicator}: {found.reason}{other}"


def input_words(gbps: float, sweep: Sweep, low: float | None = None, high: float | None = None) -> str:
    """Return an input rate by packets and bits: `312 kpps (160 Mbit/s), 95 % interval 310 kpps to 315 kpps`."""
    packets = GIGA / l2_bps(1, sweep.spec.frame)
    text = f"{rate(gbps * packets)} ({bandwidth(gbps * GIGA)})"
    ends = [rate(end * packets) for end in (low, high) if end is not None]
    # An interval within the digits shown says nothing.
    return f"{text}, 95 % interval {' to '.join(ends)}" if len(set(ends)) > 1 else text


def highest_words(best: HighestRate, sweep: Sweep) -> str:
    """Return the highest rate within bounds: `at least 312 kpps (160 Mbit/s)`, `none`, `unknown`."""
    if best.rate is None:
        return "none" if best.known else "unknown"
    if best.limited_by is None or not best.known:
        return f"at least {input_words(best.rate, sweep)}"
    return input_words(best.rate, sweep, best.low, best.high)


def _prediction_errors(record: SweepRecord) -> list[str]:
    return [
        f"prediction errors {MODELS[prediction.model]}: {errors_words(prediction.errors)}{_summed(prediction)}"
        for prediction in record.predictions
        if prediction.errors
    ]


def _summed(prediction: Prediction) -> str:
    off = prediction.summed_delay_error
    return "" if off is None else f" ({percent(off)} by the plain sum of delays)"


def _bursts_headline(sweep: Sweep) -> str:
    bursts = sweep.spec.bursts
    on = [sample for sample in sweep.samples if sample.rate_pps > 0]
    sent, arrived = sum(sample.input_pps for sample in on), sum(sample.output_pps for sample in on)
    delays = [sample.delay_s for sample in on if sample.delay_s is not None]
    worst = f", delay up to {digits3(1e3 * max(delays))} ms" if delays else ""
    cycle = f"{rate(bursts.rate_pps)} for {bursts.on_s} s, then {bursts.off_s} s idle: " if bursts else ""
    lost = max(0.0, 1 - arrived / sent) if sent else None
    return f"{cycle}{percent(lost)} of the packets of the bursts are lost{worst}"


def sweep_words(sweep: Sweep) -> str:
    """Frame and size: `64B, 1c`."""
    return f"{sweep.spec.frame.name}, {'+'.join(dict.fromkeys(map(str, sweep.cell.nf_sizes)))}"


def kind_words(vnf: Vnf) -> str:
    """`firewall`, for a Linux firewall."""
    return vnf.kind.removeprefix("linux_").replace("_", " ")


def vnf_words(vnf: Vnf) -> str:
    """`nf-1-1 (firewall)`."""
    return f"{vnf.name} ({kind_words(vnf)})"


def chain_words(cell: Cell) -> str:
    """The path of packets: `router → firewall`, `router → firewall | firewall → router`."""
    if not cell.nf_nodes:
        return "a cable instead of NFs"
    nodes = []
    for node in range(1, cell.nf_nodes + 1):
        kind = cell.kind_of(node)
        name = kind.removeprefix("linux_").replace("_", " ") if kind else "NF"
        nodes.append(" | ".join([name] * cell.count_of(node)))
    return " → ".join(nodes)


def errors_words(errors: dict[ProfileMetric, float]) -> str:
    """`throughput 0.7 %, delay 24 %, loss 0.45 percentage points`."""
    return ", ".join(f"{metric} {error_text(metric, error)}" for metric, error in errors.items())


def error_text(metric: ProfileMetric, error: float | None) -> str:
    """An error of a prediction, as `Prediction.errors` has it."""
    if error is None:
        return DASH
    return f"{digits3(error)} percentage points" if metric is ProfileMetric.LOSS else percent(error)
