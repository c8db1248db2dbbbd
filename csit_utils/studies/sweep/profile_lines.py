"""Lines of the tables that `profile` prints."""

from collections.abc import Iterator, Sequence

from csit_utils.commands.tables import TableLine
from csit_utils.report.units import DASH, digits3, percent
from resources.libraries.python.studies.sweep.analysis.flavors import FlavorCapacity, FlavorStep
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS, function_in_words, highest_in_words
from resources.libraries.python.studies.sweep.analysis.tables import functions_of
from resources.libraries.python.studies.sweep.model.profile import Prediction, Profile, ProfileMetric

FUNCTIONS = ("service", "break-point", "metric", "region", "function", "standard error", "relative error", "points")
FUNCTIONS_LEFT = ("service", "metric", "region", "function")
ANSWERS = ("service", "vCPUs", "break-point", "used there", "within bounds up to", "gain", "limited by", "carries it")
ANSWERS_LEFT = ("service", "limited by", "carries it")
PREDICTED = (
    "rate", *(f"{metric} {what}" for metric in UNITS for what in ("predicted", "measured")), "sum of delays", "model"
)  # fmt: skip
PREDICTED_LEFT = ("model",)


def function_lines(profile: Profile) -> Iterator[TableLine]:
    """A line per function; a service without any has none."""
    at = profile.break_point
    for metric, region, fit in functions_of(profile):
        texts = (
            profile.name,
            _with_unit(at.rate if at else None, "Gbit/s"),
            metric.value,
            region if at else "all",
            function_in_words(fit),
            f"{fit.standard_error:.3g} {UNITS[metric]}",
            DASH if fit.relative_error is None else f"{100 * fit.relative_error:.3g} %",
            str(fit.points),
        )
        raw = {
            "service": profile.name,
            "break_point_gbps": at.rate if at else None,
            "saturates_first": at.vnf if at else None,
            "metric": metric.value,
            "region": region,
            "function": fit.function,
            "formula": fit.formula,
            **{name: fit.coefficients.get(name) for name in "abcdg"},
            "standard_error": fit.standard_error,
            "relative_error": fit.relative_error,
            "points": fit.points,
            "first_rate_gbps": fit.first_rate,
            "last_rate_gbps": fit.last_rate,
        }
        yield TableLine(texts, raw)


def answer_line(answer: FlavorCapacity, smaller: FlavorCapacity | None, steps: Sequence[FlavorStep]) -> TableLine:
    """Capacity of one flavor within the bounds, and its gain over the next smaller one."""
    flavor, highest = answer.flavor, answer.highest
    at = flavor.profile.break_point
    step = next((step for step in steps if step.larger is flavor), None)
    carries = {None: DASH, True: "yes", False: "no"}[answer.carries]
    limit = highest.limited_by.value if highest.limited_by else ""
    gain = _gain(smaller, answer)
    texts = (
        flavor.name,
        str(flavor.vcpus),
        _with_unit(at.rate if at else None, "Gbit/s"),
        DASH if at is None else f"{at.cpus_used:.2f} CPUs",
        highest_in_words(highest),
        percent(gain, signed=True),
        limit if highest.known else f"{limit} (unknown above)",
        carries,
    )
    raw = {
        "service": flavor.name,
        "vcpus": flavor.vcpus,
        "break_point_gbps": at.rate if at else None,
        "cpus_used": at.cpus_used if at else None,
        "from_gbps": highest.from_rate,
        "highest_gbps": highest.rate,
        "limited_by": limit or None,
        "limit_known": highest.known,
        "carries": answer.carries,
        "gain": gain,
        "break_point_gain": step.gain if step else None,
        "scales": step.scales if step else None,
    }
    return TableLine(texts, raw, "green" if answer.carries else "")


def _gain(smaller: FlavorCapacity | None, answer: FlavorCapacity) -> float | None:
    """Relative growth of the highest rate within the bounds; None where either is only known to be at least so much."""
    if smaller is None or smaller.flavor.vcpus == answer.flavor.vcpus:
        return None
    rates = [
        each.highest.rate for each in (smaller, answer) if each.highest.known and each.highest.limited_by is not None
    ]
    return rates[1] / rates[0] - 1 if len(rates) == 2 and rates[0] and rates[1] is not None else None


def prediction_lines(prediction: Prediction) -> Iterator[TableLine]:
    """A line per rate."""
    for point in prediction.points:
        pairs = [(metric, each.get(metric)) for metric in UNITS for each in (point.predicted, point.measured)]
        keys = [f"{metric}_{what}" for metric in UNITS for what in ("predicted", "measured")]
        texts = (
            _with_unit(point.rate, "Gbit/s"),
            *(_with_unit(value, UNITS[metric]) for metric, value in pairs),
            _with_unit(
                point.predicted.get(ProfileMetric.DELAY) if prediction.path is None else point.summed_delay, "ms"
            ),
            prediction.model,
        )
        raw = {
            "chain": prediction.chain,
            "model": prediction.model,
            "rate_gbps": point.rate,
            **{f"{key}_{_KEYS[metric]}": value for key, (metric, value) in zip(keys, pairs, strict=True)},
            "path": prediction.path,
            "delay_summed_ms": point.summed_delay,
        }
        yield TableLine(texts, raw)


_KEYS = {ProfileMetric.THROUGHPUT: "gbps", ProfileMetric.DELAY: "ms", ProfileMetric.LOSS: "percent"}


def _with_unit(value: float | None, unit: str) -> str:
    return DASH if value is None else f"{digits3(value)} {unit}"
