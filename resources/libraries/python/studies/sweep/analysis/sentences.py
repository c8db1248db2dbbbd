"""Profiles and predictions in sentences."""

from collections.abc import Sequence

from resources.libraries.python.quantities import grouped, signed
from resources.libraries.python.studies.sweep.analysis.chain_prediction import WITHIN, Trust, trust
from resources.libraries.python.studies.sweep.analysis.fitting import coefficient_intervals
from resources.libraries.python.studies.sweep.analysis.flavors import FlavorStep, ProfiledFlavor
from resources.libraries.python.studies.sweep.analysis.profile import HighestRate
from resources.libraries.python.studies.sweep.analysis.tables import functions_of
from resources.libraries.python.studies.sweep.model.profile import (
    BreakPoint,
    Fit,
    Prediction,
    Profile,
    ProfileMetric,
    SmtEstimate,
    SmtGain,
)

MODELS = {
    "hungriest": "throughput and loss of the VNF that saturates first",
    "shared_cpus": "VNFs that share CPUs as one whose time per packet is the sum of theirs",
}
UNITS = {ProfileMetric.THROUGHPUT: "Gbit/s", ProfileMetric.DELAY: "ms", ProfileMetric.LOSS: "%"}
_REGIONS = (
    {"nonsat": "of all rates"},
    {"nonsat": "below the break-point", "sat": "from the break-point on"},
    {"nonsat": "below both break-points", "between": "between them", "sat": "above them"},
)
"""By number of break-points."""


def profile_in_words(profile: Profile) -> tuple[str, ...]:
    """Break-point, functions and notes, a line each."""
    regions = _REGIONS[len(profile.break_points)]
    functions = [
        f"{metric} {regions[region]}: {function_in_words(fit, intervals=True)}, "
        f"standard error {fit.standard_error:.3g} {UNITS[metric]}{_relative(fit)}, {fit.points} points"
        for metric, region, fit in functions_of(profile)
    ]
    return (break_point_in_words(profile), *functions, *profile.notes)


def break_point_in_words(profile: Profile) -> str:
    """Return the saturation of a service, and its other break-point where there is one."""
    first, second = profile.break_point, profile.second
    if first is None:
        return f"{profile.name} has no known break-point"
    return f"{profile.name} saturates at {rate_in_words(first)}, by {first.indicator}: {first.reason}" + (
        "" if second is None else f"; another break-point is at {rate_in_words(second)}: {second.reason}"
    )


def rate_in_words(point: BreakPoint) -> str:
    """Rate and interval: `2.501 Gbit/s (95 % interval 2.498 to 2.504)`."""
    if point.is_upper_bound:
        return f"{point.rate:.4g} Gbit/s or below"
    return _value_in_words(point.rate, point.low, point.high)


def _value_in_words(value: float, low: float | None, high: float | None) -> str:
    rate = f"{value:.4g} Gbit/s"
    if low is None:
        return rate
    return rate if high is None else f"{rate} ({interval_in_words(low, high)})"


def interval_in_words(low: float | None, high: float | None) -> str:
    """A 95 % interval; an end that is not known is open."""
    if low is None or high is None:
        return "95 % interval " + (
            f"up to {high:.4g}" if high is not None else "" if low is None else f"from {low:.4g}"
        )
    return f"95 % interval {low:.4g} to {high:.4g}"


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
        errors = [f"{metric} {error_in_words(metric, error)}" for metric, error in row.errors.items()]
        if row.summed_delay_error is not None:
            errors.append(f"sum of delays without subtracting {row.path} {100 * row.summed_delay_error:.1f} %")
        parts = " + ".join(row.parts)
        trusted = ", ".join(f"{each.metric} {trust_in_words(each)}" for each in trust(row))
        what = f"mean error: {', '.join(errors)}; valid: {trusted}" if errors else "cannot be compared"
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


def error_in_words(metric: ProfileMetric, error: float) -> str:
    """The mean error of a prediction: `4.1 %`."""
    return f"{error:.2f} percentage points" if metric is ProfileMetric.LOSS else f"{100 * error:.1f} %"


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


def highest_in_words(highest: HighestRate) -> str:
    """A rate with unit and interval: `2.31 Gbit/s (95 % interval 2.29 to 2.33)`, `at least 3.5 Gbit/s`, `none`."""
    if highest.rate is None:
        return "none" if highest.known else "unknown"
    at_least = "at least " if highest.limited_by is None or not highest.known else ""
    interval = f" ({interval_in_words(highest.low, highest.high)})" if highest.limited_by and highest.low else ""
    return f"{at_least}{highest.rate:.4g} Gbit/s{interval}"


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


def _relative(fit: Fit) -> str:
    return "" if fit.relative_error is None else f", relative error {grouped(100 * fit.relative_error, 2)} %"
