"""Profiles and predictions in sentences."""

from collections.abc import Sequence

from resources.libraries.python.studies.sweep.analysis.chain_prediction import WITHIN, Trust, trust
from resources.libraries.python.studies.sweep.analysis.flavors import FlavorStep, ProfiledFlavor
from resources.libraries.python.studies.sweep.analysis.profile import HighestRate
from resources.libraries.python.studies.sweep.analysis.tables import functions_of
from resources.libraries.python.studies.sweep.model.profile import Fit, Prediction, Profile, ProfileMetric

MODELS = {
    "hungriest": "throughput and loss of the VNF that saturates first",
    "shared_cpus": "VNFs that share CPUs as one whose time per packet is the sum of theirs",
}
UNITS = {ProfileMetric.THROUGHPUT: "Gbit/s", ProfileMetric.DELAY: "ms", ProfileMetric.LOSS: "%"}
_REGIONS = {"nonsat": "below the break-point", "sat": "from the break-point on"}


def profile_in_words(profile: Profile) -> tuple[str, ...]:
    """Break-point, functions and notes, a line each."""
    where = [] if profile.break_point is None else list(_REGIONS.values())
    functions = [
        f"{metric} {_REGIONS[region] if where else 'of all rates'}: {function_in_words(fit)}, "
        f"standard error {fit.standard_error:.3g} {UNITS[metric]}{_relative(fit)}, {fit.points} points"
        for metric, region, fit in functions_of(profile)
    ]
    return (break_point_in_words(profile), *functions, *profile.notes)


def break_point_in_words(profile: Profile) -> str:
    """Return the saturation of a service."""
    if profile.break_point is None:
        return f"{profile.name} has no break-point: no load is known to have saturated its CPUs"
    return f"{profile.name} saturates at {profile.break_point.rate:.4g} Gbit/s: {profile.break_point.reason}"


def function_in_words(fit: Fit) -> str:
    """Formula and coefficients: `linear a*r+b, a=0.988, b=0.014`."""
    return ", ".join(
        [f"{fit.function} {fit.formula}", *(f"{name}={value:.4g}" for name, value in fit.coefficients.items())]
    )


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


def highest_in_words(highest: HighestRate) -> str:
    """A rate with its unit: `2.31 Gbit/s`, `at least 3.5 Gbit/s`, `none`."""
    if highest.rate is None:
        return "none" if highest.known else "unknown"
    at_least = "at least " if highest.limited_by is None or not highest.known else ""
    return f"{at_least}{highest.rate:.4g} Gbit/s"


def scaling_in_words(found: Sequence[FlavorStep]) -> tuple[str, ...]:
    """Gain of each larger flavor, a line each."""
    return tuple(_step_in_words(step) for step in found)


def _step_in_words(step: FlavorStep) -> str:
    from_to = f"{_named(step.smaller)} to {_named(step.larger)}"
    if step.gain is None or step.used is None:
        return f"{from_to}: unknown, not both were saturated"
    later = f"break-point {100 * step.gain:+.1f} %" if step.gain else "the same break-point"
    what = f"{later}, {step.used:.2f} of {step.larger.vcpus} vCPUs are used"
    verdict = f": does not scale past {step.smaller.vcpus} vCPUs" if step.scales is False else ""
    return f"{from_to}: {what}{verdict}"


def _named(flavor: ProfiledFlavor) -> str:
    return f"{flavor.name} ({flavor.vcpus} vCPU{'s' if flavor.vcpus != 1 else ''})"


def _relative(fit: Fit) -> str:
    return "" if fit.relative_error is None else f", relative error {100 * fit.relative_error:.2g} %"
