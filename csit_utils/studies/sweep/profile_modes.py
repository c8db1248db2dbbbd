"""Modes of `profile`: describe services, compare flavors, predict a chain."""

from collections.abc import Sequence

import typer

from csit_utils.commands.tables import TableForm, print_table
from csit_utils.studies.sweep.profile_inputs import ProfiledService, read_path, read_services, split_list
from csit_utils.studies.sweep.profile_lines import (
    ANSWERS,
    ANSWERS_LEFT,
    FUNCTIONS,
    FUNCTIONS_LEFT,
    PREDICTED,
    PREDICTED_LEFT,
    answer_line,
    function_lines,
    prediction_lines,
)
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.sweep.analysis.chain_prediction import (
    MeasuredVnf,
    Model,
    predict,
    predict_rates,
)
from resources.libraries.python.studies.sweep.analysis.flavors import ProfiledFlavor, answers, best_flavor, steps
from resources.libraries.python.studies.sweep.analysis.profile_queries import QualityBounds
from resources.libraries.python.studies.sweep.analysis.sentences import (
    break_point_in_words,
    errors_in_words,
    scaling_in_words,
)


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
