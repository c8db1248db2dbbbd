"""Modes of `profile`: describe services, compare flavors, predict a chain."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from csit_utils.commands.tables import TableForm, TableLine, print_table
from csit_utils.report.units import DASH, digits3, percent
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import text_of
from resources.libraries.python.studies.sweep.analysis.chain_prediction import (
    MeasuredPath,
    MeasuredVnf,
    Model,
    predict,
    predict_rates,
)
from resources.libraries.python.studies.sweep.analysis.fitting import coefficient_intervals
from resources.libraries.python.studies.sweep.analysis.flavors import (
    FlavorCapacity,
    FlavorStep,
    ProfiledFlavor,
    answers,
    best_flavor,
    steps,
)
from resources.libraries.python.studies.sweep.analysis.profile import QualityBounds, profile_of
from resources.libraries.python.studies.sweep.analysis.sentences import (
    UNITS,
    break_point_in_words,
    errors_in_words,
    function_in_words,
    highest_in_words,
    rate_in_words,
    scaling_in_words,
)
from resources.libraries.python.studies.sweep.analysis.tables import functions_of, read_statistics
from resources.libraries.python.studies.sweep.model import BreakPoint, Prediction, Profile, ProfileMetric, SweepPoint

_TABLE = "S_statistics"
FUNCTIONS = ("service", "break-point", "metric", "region", "function", "standard error", "relative error", "points")
FUNCTIONS_LEFT = ("service", "metric", "region", "function")
ANSWERS = ("service", "vCPUs", "break-point", "used there", "within bounds up to", "gain", "limited by", "carries it")
ANSWERS_LEFT = ("service", "limited by", "carries it")
PREDICTED = (
    "rate", *(f"{metric} {what}" for metric in UNITS for what in ("predicted", "measured")), "sum of delays", "model"
)  # fmt: skip
PREDICTED_LEFT = ("model",)


@dataclass(frozen=True)
class ProfiledService:
    """A file of points, and the profile of it."""

    name: str
    points: tuple[SweepPoint, ...]
    vcpus: Mapping[str, int]
    """vCPUs of each VNF."""
    profile: Profile


def read_services(inputs: Sequence[str], vcpus: Sequence[str]) -> tuple[ProfiledService, ...]:
    """Read and profile `FILE` or `NAME=FILE`, with the numbers of vCPUs given.

    These are `N`, `VNF=N`, `NAME/VNF=N`, or `NAME=N` for a service of one VNF.

    Raises:
        ConfigError: A file cannot be read, two have the same name, or a number of vCPUs is for no VNF.
    """
    chosen = _chosen_vcpus(vcpus)
    files = [(name, _points(path)) for name, path in map(_named, inputs)]
    names = [name for name, _ in files]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two files are named '{twice}'; name them: one=FILE other=FILE")
    used: set[str] = set()
    services = [_service(name, points, chosen, used) for name, points in files]
    idle = sorted(set(chosen) - used - {""})
    if idle:
        raise ConfigError(f"--vcpus {idle[0]}={chosen[idle[0]]}: {_no_vnf(idle[0], services)}")
    return tuple(services)


def _no_vnf(key: str, services: Sequence[ProfiledService]) -> str:
    """Why a key names no VNF, and what does."""
    named = next((sorted(service.vcpus) for service in services if service.name == key), None)
    if named is None:
        there = sorted({vnf for service in services for vnf in service.vcpus})
        return f"no such VNF; choose from {', '.join(there) or 'none'}"
    if not named:
        return "the CPU time of its VNFs was not measured"
    return f"it is a service of {len(named)} VNFs; give {' or '.join(f'{key}/{vnf}=N' for vnf in named)}"


def split_list(text: str) -> list[str]:
    """Comma-separated words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def _points(path: Path) -> tuple[SweepPoint, ...]:
    try:
        text = text_of(path)
    except ConfigError as error:
        raise ConfigError(f"{error}; expected the S_statistics CSV of a sweep") from error
    return read_statistics(text, str(path))


def _named(text: str) -> tuple[str, Path]:
    name, separator, path = text.partition("=")
    if separator and not Path(text).exists():
        if not name or not path:
            raise ConfigError(f"'{text}': a named file is NAME=FILE")
        return name, Path(path)
    file = Path(text)
    return (file.absolute().parent.name if file.stem == _TABLE else file.stem), file


def read_path(text: str) -> MeasuredPath:
    """Read the path of a chain without any VNF: `FILE` or `NAME=FILE`.

    Raises:
        ConfigError: The file cannot be read, or has no delay.
    """
    name, file = _named(text)
    found = MeasuredPath.of(name, _points(file))
    if found is None:
        raise ConfigError(f"{file}: --path needs delays; column delay_ms is empty")
    return found


def _chosen_vcpus(texts: Sequence[str]) -> Mapping[str, int]:
    chosen = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not number.isdecimal() or not int(number):
            raise ConfigError(f"--vcpus {text}: give N, VNF=N, SERVICE=N or SERVICE/VNF=N, with a number of 1 or more")
        chosen[name] = int(number)
    return chosen


def _service(name: str, points: tuple[SweepPoint, ...], chosen: Mapping[str, int], used: set[str]) -> ProfiledService:
    seen: dict[str, int] = {}
    for point in points:
        for vnf, threads in point.cpu.items():
            seen[vnf] = max(seen.get(vnf, 0), len(threads))
    vcpus = {}
    for vnf, columns in seen.items():
        keys = (f"{name}/{vnf}", vnf, *([name] if len(seen) == 1 else []))
        key = next((key for key in (*keys, "") if key in chosen), None)
        vcpus[vnf] = columns if key is None else chosen[key]
        used |= {key for key in keys if key in chosen}
        most = max((point.used(vnf) or 0.0) for point in points)
        if most > vcpus[vnf] * _MAX:
            raise ConfigError(
                f"{name}: {vnf} used {100 * most:.0f} % of a CPU, but has {vcpus[vnf]} vCPUs; give --vcpus {vnf}=N"
            )
    return ProfiledService(name, points, vcpus, profile_of(name, points, vcpus))


_MAX = 1.1
"""CPU times are read at slightly different moments than the clock, so a full CPU may show a little more."""


def describe(files: Sequence[str], vcpus: Sequence[str], least_gain: float, form: TableForm) -> None:
    """Break-point and functions of each service."""
    services = read_services(files, vcpus)
    lines = [line for service in services for line in function_lines(service.profile)]
    print_table(FUNCTIONS, lines, form, FUNCTIONS_LEFT)
    for service in services:
        _say(break_point_in_words(service.profile))
    _say_notes(services)
    _say_scaling(_flavors(services), least_gain)


def answer(
    files: Sequence[str],
    vcpus: Sequence[str],
    bounds: tuple[float | None, float | None],
    rate: float | None,
    *,
    least_gain: float,
    form: TableForm,
) -> None:
    """The highest rate of each flavor within bounds (loss in percent, delay in ms), and the best for a rate."""
    services = read_services(files, vcpus)
    flavors = _flavors(services)
    found, gains = answers(flavors, QualityBounds(*bounds), rate), steps(flavors, least_gain)
    lines = [answer_line(each, smaller, gains) for smaller, each in zip((None, *found), found, strict=False)]
    print_table(ANSWERS, lines, form, ANSWERS_LEFT)
    if rate is not None:
        best = best_flavor(found)
        unknown = "; for some it is unknown" if any(each.carries is None for each in found) else ""
        _say(
            f"none is known to carry {rate:g} Gbit/s within the bounds{unknown}"
            if best is None
            else f"best for {rate:g} Gbit/s: {best.flavor.name}, with {best.flavor.vcpus} vCPUs"
        )
    _say_notes(services)
    _say_scaling(flavors, least_gain)


def predict_chain(
    chain: str,
    vcpus: Sequence[str],
    shares: str,
    against: str | float | None,
    form: TableForm,
    *,
    path: str,
    shared_cpus: bool,
) -> None:
    """A chain from its parts, beside the measured one (a file) or at a rate; with a file of the path without VNFs.

    Raises:
        ConfigError: `shares` does not fit the chain, a file is wrong, or that of the path has no delay.
    """
    services = read_services(split_list(chain), vcpus)
    parts = _parts(services, shares, shared_cpus=shared_cpus)
    way = read_path(path) if path else None
    models: tuple[Model, ...] = ("hungriest", "shared_cpus") if shared_cpus else ("hungriest",)
    if isinstance(against, str):
        (real,) = read_services([against], [])
        found = [predict(real.name, parts, real.points, model, way) for model in models]
    else:
        name = "-".join(service.name for service in services)
        found = [predict_rates(name, parts, [against or 0.0], model, way) for model in models]
    print_table(PREDICTED, [line for each in found for line in prediction_lines(each)], form, PREDICTED_LEFT)
    notes = dict.fromkeys(note for each in found for note in each.notes)
    for line in errors_in_words(found) if isinstance(against, str) else notes:
        _say(line)


def _parts(services: Sequence[ProfiledService], shares: str, *, shared_cpus: bool) -> list[MeasuredVnf]:
    words = split_list(shares) or ["1"] * len(services)
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != len(services) or not all(0 < number <= 1 for number in numbers):
        raise ConfigError(
            f"--shares {shares}: give {len(services)} numbers above 0 and up to 1, one for each VNF of --chain"
        )
    word = "all" if shared_cpus else None
    return [MeasuredVnf(each.profile, number, word) for each, number in zip(services, numbers, strict=True)]


def _flavors(services: Sequence[ProfiledService]) -> list[ProfiledFlavor]:
    return [ProfiledFlavor(each.name, sum(each.vcpus.values()), each.profile) for each in services]


def _say_scaling(flavors: Sequence[ProfiledFlavor], least_gain: float) -> None:
    for line in scaling_in_words(steps(flavors, least_gain)):
        _say(line)


def _say_notes(services: Sequence[ProfiledService]) -> None:
    for service in services:
        for note in service.profile.notes:
            _say(f"{service.name}: {note}" if len(services) > 1 else note)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def function_lines(profile: Profile) -> Iterator[TableLine]:
    """A line per function; a service without any has none."""
    at = profile.break_point
    for metric, region, fit in functions_of(profile):
        known = {
            name: dict(zip(("low", "high"), ends, strict=True)) for name, ends in coefficient_intervals(fit).items()
        }
        texts = (
            profile.name,
            rate_in_words(at) if at else DASH,
            metric.value,
            region if at else "all",
            function_in_words(fit),
            f"{fit.standard_error:.3g} {UNITS[metric]}",
            DASH if fit.relative_error is None else f"{100 * fit.relative_error:.3g} %",
            str(fit.points),
        )
        raw = {
            "service": profile.name,
            **_raw_break_point("break_point", at),
            "saturates_first": at.vnf if at else None,
            **_raw_break_point("second_break_point", profile.second),
            "metric": metric.value,
            "region": region,
            "function": fit.function,
            "formula": fit.formula,
            **{name: fit.coefficients.get(name) for name in "abcdg"},
            **{f"{name}_{end}": known.get(name, {}).get(end) for name in "abcdg" for end in ("low", "high")},
            "standard_error": fit.standard_error,
            "relative_error": fit.relative_error,
            "points": fit.points,
            "first_rate_gbps": fit.first_rate,
            "last_rate_gbps": fit.last_rate,
        }
        yield TableLine(texts, raw)


def _raw_break_point(name: str, point: BreakPoint | None) -> dict[str, object]:
    return {
        f"{name}_gbps": point.rate if point else None,
        f"{name}_low_gbps": point.low if point else None,
        f"{name}_high_gbps": point.high if point else None,
        f"{name}_indicator": point.indicator.value if point else None,
    }


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
        rate_in_words(at) if at else DASH,
        DASH if at is None or at.cpus_used is None else f"{at.cpus_used:.2f} CPUs",
        highest_in_words(highest),
        percent(gain, signed=True),
        limit if highest.known else f"{limit} (unknown above)",
        carries,
    )
    raw = {
        "service": flavor.name,
        "vcpus": flavor.vcpus,
        **_raw_break_point("break_point", at),
        "cpus_used": at.cpus_used if at else None,
        "from_gbps": highest.from_rate,
        "highest_gbps": highest.rate,
        "highest_low_gbps": highest.low,
        "highest_high_gbps": highest.high,
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
