"""Sweeps, profiles and predictions in names and sentences."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.result import l2_bps
from resources.libraries.python.quantities import DASH, bandwidth, digits3, grouped, percent, rate, signed
from resources.libraries.python.studies.sweep.analysis.chain_prediction import WITHIN, Trust, trust
from resources.libraries.python.studies.sweep.analysis.fitting import coefficient_intervals
from resources.libraries.python.studies.sweep.analysis.flavors import FlavorStep, ProfiledFlavor
from resources.libraries.python.studies.sweep.analysis.profile import HighestRate
from resources.libraries.python.studies.sweep.analysis.saturation import LOSES
from resources.libraries.python.studies.sweep.analysis.tables import functions_of
from resources.libraries.python.studies.sweep.model import (
    GIGA,
    BreakPoint,
    Fit,
    Prediction,
    Profile,
    ProfileMetric,
    SmtEstimate,
    SmtGain,
    Sweep,
    SweepRecord,
    Vnf,
)

Written = Callable[[float, float | None, float | None], str]
"""Writes a rate in Gbit/s with both ends of its interval."""
MODELS = {"hungriest": "by the bottleneck VNF", "shared_cpus": "with shared CPUs"}
"""Names of models of predictions."""
UNITS = {ProfileMetric.THROUGHPUT: "Gbit/s", ProfileMetric.DELAY: "ms", ProfileMetric.LOSS: "%"}
_REGIONS = (
    {"nonsat": "of all rates"},
    {"nonsat": "below the break-point", "sat": "from the break-point on"},
    {"nonsat": "below both break-points", "between": "between them", "sat": "above them"},
)
"""By number of break-points."""


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
    errors = (
        f"prediction errors {MODELS[each.model]}: {_errors(each)}{_summed(each)}"
        for each in record.predictions
        if each.errors
    )
    gains = (f"SMT changes the {row.quantity} by {gain_in_words(row.gain)}" for row in record.smt_gains)
    return "; ".join([_saturation(record, record.sweep), *errors, *gains])


def _saturation(record: SweepRecord, sweep: Sweep) -> str:
    if record.profile is not None and record.profile.break_point is not None:
        return saturation_in_words(record.profile, partial(input_words, sweep))
    last = max(sweep.points, key=lambda point: point.input_pps, default=None)
    if last is None or not last.input_pps:
        return "has no profile"
    if last.loss_ratio is not None and last.loss_ratio >= LOSES:
        return f"loses {percent(last.loss_ratio)} at {rate(last.input_pps)}; its break-point is not known"
    return f"does not saturate up to {rate(last.input_pps)}"


def input_words(sweep: Sweep, gbps: float, low: float | None = None, high: float | None = None) -> str:
    """Return an input rate by packets and bits: `312 kpps (160 Mbit/s), 95 % interval 310 kpps to 315 kpps`."""
    packets = GIGA / l2_bps(1, sweep.spec.frame)
    text = f"{rate(gbps * packets)} ({bandwidth(gbps * GIGA)})"
    ends = [rate(end * packets) for end in (low, high) if end is not None]
    # An interval within the digits shown says nothing.
    return f"{text}, 95 % interval {' to '.join(ends)}" if len(set(ends)) > 1 else text


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


def sentences(record: SweepRecord) -> Iterator[str]:
    """Functions of the profile, and comparisons."""
    if record.profile is not None:
        yield from functions_in_words(record.profile)
    yield from comparisons(record)


def comparisons(record: SweepRecord) -> Iterator[str]:
    """Errors of predictions, and gains of SMT."""
    yield from errors_in_words(record.predictions)
    yield from smt_in_words(record.smt_gains)


def profile_in_words(profile: Profile) -> tuple[str, ...]:
    """Break-point, functions and notes, a line each."""
    return (break_point_in_words(profile), *functions_in_words(profile), *profile.notes)


def functions_in_words(profile: Profile) -> Iterator[str]:
    """Function of each metric below and above the break-points."""
    regions = _REGIONS[len(profile.break_points)]
    for metric, region, fit in functions_of(profile):
        relative = "" if fit.relative_error is None else f", relative error {grouped(100 * fit.relative_error, 2)} %"
        yield (
            f"{metric} {regions[region]}: {function_in_words(fit, intervals=True)}, "
            f"standard error {fit.standard_error:.3g} {UNITS[metric]}{relative}, {fit.points} points"
        )


def break_point_in_words(profile: Profile) -> str:
    """Return the saturation of a service by its name."""
    return f"{profile.name} {saturation_in_words(profile, _value_in_words)}"


def saturation_in_words(profile: Profile, written: Written) -> str:
    """Return the saturation of a service, and its other break-point where there is one."""
    first, second = profile.break_point, profile.second
    if first is None:
        return "has no known break-point"
    other = "" if second is None else f"; another break-point is at {written(second.rate, None, None)}: {second.reason}"
    return f"saturates at {rate_in_words(first, written)}, by {first.indicator}: {first.reason}{other}"


def _value_in_words(value: float, low: float | None, high: float | None) -> str:
    text = f"{value:.4g} Gbit/s"
    if low is None:
        return text
    interval = interval_in_words(low, high)
    return f"{text} ({interval})" if interval else text


def rate_in_words(point: BreakPoint, written: Written = _value_in_words) -> str:
    """Rate and interval: `2.501 Gbit/s (95 % interval 2.498 to 2.504)`."""
    if point.is_upper_bound:
        return f"{written(point.rate, None, None)} or below"
    return written(point.rate, point.low, point.high)


def interval_in_words(low: float | None, high: float | None) -> str:
    """A 95 % interval; an end that is not known is open. Empty for one within the digits shown, which says nothing."""
    if low is None or high is None:
        return "95 % interval " + (
            f"up to {high:.4g}" if high is not None else "" if low is None else f"from {low:.4g}"
        )
    ends = f"{low:.4g}", f"{high:.4g}"
    return f"95 % interval {' to '.join(ends)}" if ends[0] != ends[1] else ""


def function_in_words(fit: Fit, *, intervals: bool = False) -> str:
    """Formula and coefficients: `linear a*r+b, a=0.988, b=0.014`; on request with the 95 % interval of each."""
    known = coefficient_intervals(fit) if intervals else {}
    found = [
        f"{name}={value:.4g}" + (f" ({known[name][0]:.4g} to {known[name][1]:.4g})" if name in known else "")
        for name, value in fit.coefficients.items()
    ]
    return ", ".join([f"{fit.function} {fit.formula}", *found])


def errors_in_words(predictions: Prediction | Sequence[Prediction]) -> tuple[str, ...]:
    """Return the errors of predictions, and notes, a line each."""
    rows = (predictions,) if isinstance(predictions, Prediction) else predictions
    lines = []
    for row in rows:
        errors = [_errors(row)]
        if row.summed_delay_error is not None:
            errors.append(f"sum of delays without subtracting {row.path} {percent(row.summed_delay_error)}")
        parts = " + ".join(row.parts)
        trusted = ", ".join(f"{each.metric} {trust_in_words(each)}" for each in trust(row))
        what = f"mean error: {', '.join(errors)}; valid: {trusted}" if row.errors else "cannot be compared"
        lines.append(f"{row.chain} from {parts} ({MODELS[row.model]}): {what}")
        lines += row.notes
    return tuple(dict.fromkeys(lines))


def trust_in_words(found: Trust) -> str:
    """Up to where a prediction is right: `within 25 % up to 0.0512 Gbit/s`."""
    bound = WITHIN[found.metric]
    within = f"within {bound:g} points" if found.metric is ProfileMetric.LOSS else f"within {100 * bound:g} %"
    if found.everywhere:
        return f"{within} at all rates"
    return f"{within} at no rate" if found.rate is None else f"{within} up to {found.rate:.4g} Gbit/s"


def _errors(prediction: Prediction) -> str:
    """`throughput 0.7 %, delay 24 %, loss 0.45 percentage points`."""
    return ", ".join(f"{metric} {error_in_words(metric, error)}" for metric, error in prediction.errors.items())


def error_in_words(metric: ProfileMetric, error: float | None) -> str:
    """The mean error of a prediction, as `Prediction.errors` has it: `4.1 %`."""
    if error is None:
        return DASH
    return f"{digits3(error)} percentage points" if metric is ProfileMetric.LOSS else percent(error)


def smt_in_words(gains: Sequence[SmtGain]) -> tuple[str, ...]:
    """What SMT adds, a line for each quantity."""
    lines = []
    for row in gains:
        off, on = (_value_in_words(each.value, each.low, each.high) for each in (row.smt_off, row.smt_on))
        lines.append(f"SMT changes the {row.quantity} by {gain_in_words(row.gain)}, from {off} without to {on} with it")
    return tuple(lines)


def gain_in_words(gain: SmtEstimate) -> str:
    """A relative change with its interval: `+30.0 % (95 % interval +22.4 to +38.1 %)`."""
    interval = ""
    if gain.low is not None and gain.high is not None:
        interval = f" (95 % interval {signed(100 * gain.low, 1)} to {signed(100 * gain.high, 1)} %)"
    return f"{signed(100 * gain.value, 1)} %{interval}"


def highest_in_words(highest: HighestRate, written: Written = _value_in_words) -> str:
    """A rate with unit and interval: `2.31 Gbit/s (95 % interval 2.29 to 2.33)`, `at least 3.5 Gbit/s`, `none`."""
    if highest.rate is None:
        return "none" if highest.known else "unknown"
    if highest.limited_by is None or not highest.known:
        return f"at least {written(highest.rate, None, None)}"
    return written(highest.rate, highest.low, highest.high if highest.low else None)


def scaling_in_words(found: Sequence[FlavorStep]) -> tuple[str, ...]:
    """Gain of each larger flavor, a line each."""
    return tuple(_step_in_words(step) for step in found)


def _step_in_words(step: FlavorStep) -> str:
    from_to = f"{_named(step.smaller)} to {_named(step.larger)}"
    if step.gain is None:
        bounds = [each for each in (step.smaller, step.larger) if each.saturates_before_first_load]
        why = [f"{each.name} saturates at its lowest load or below" for each in bounds] or ["not both were saturated"]
        return f"{from_to}: unknown, {' and '.join(why)}"
    later = f"break-point {signed(100 * step.gain, 1)} %" if step.gain else "the same break-point"
    if step.used is None:
        return f"{from_to}: {later}, not by CPU"
    what = f"{later}, {step.used:.2f} of {step.larger.vcpus} vCPUs are used"
    verdict = f": does not scale past {step.smaller.vcpus} vCPUs" if step.scales is False else ""
    return f"{from_to}: {what}{verdict}"


def _named(flavor: ProfiledFlavor) -> str:
    return f"{flavor.name} ({flavor.vcpus} vCPU{'s' if flavor.vcpus != 1 else ''})"
