"""Workload offered to every size of a service, and scripts' options. Field names are NFV-VITAL's, see `sizing`."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, ValidationInfo, model_validator

from resources.libraries.python.model.base import Frozen, Inconsistency, at_most, is_asked, is_empty, of_form
from resources.libraries.python.model.bounds import LONGEST_TRIAL_S, MAX_REPETITIONS, MAX_SIZING_LOADS

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class LoadRange(Frozen):
    """Offered loads, lowest and highest, in the workload's own unit."""

    min: Positive
    max: Positive

    @model_validator(mode="after")
    def _upward(self) -> Self:
        if self.max < self.min:
            raise ValueError(f"the range goes up to {self.max:g}, but starts at {self.min:g}")
        return self


class Stop(Frozen):
    """Condition after which a size needs no higher load."""

    below: Annotated[float, Field(gt=0, le=1)]
    """Share of the offered load: stop when the mean indicator is less."""
    loads: Annotated[int, Field(ge=1)] = 1
    """So many loads one after the other."""


Program = Annotated[str, of_form(r"\S+", "a program without blanks")]
"""By name, or by absolute path."""
OptionName = Annotated[str, of_form(r"[a-z][a-z0-9_-]{0,23}", "the name of an option, without its dashes")]
Value = Annotated[str, of_form(r"[A-Za-z0-9._:-]{1,40}", "a value of letters, digits and ._:- (at most 40)")]


class Option(Frozen):
    """A choice; scripts get the value as `CSIT_OPTION_<NAME>`."""

    values: Annotated[tuple[Value, ...], Field(min_length=1, max_length=100)]
    """All that the scripts understand; the first one is the default."""
    value: Value | None = None
    """The chosen one; None for the default."""
    needs: dict[Value, tuple[Program, ...]] = Field(default_factory=dict)
    """Programs that scripts start with a value, beside those that they start in any case."""

    @property
    def chosen(self) -> str:
        """The value that holds."""
        return self.values[0] if self.value is None else self.value

    @model_validator(mode="after")
    def _known(self) -> Self:
        for place, value in (("value", self.chosen), *(("needs", each) for each in self.needs)):
            if value not in self.values:
                raise Inconsistency((place,), f"'{value}' is not one of {', '.join(self.values)}")
        return self


Options = dict[OptionName, Option]


def needed(options: Mapping[str, Option]) -> tuple[str, ...]:
    """Programs that the chosen values need."""
    return tuple(program for option in options.values() for program in option.needs.get(option.chosen, ()))


def variables(options: Mapping[str, Option]) -> dict[str, str]:
    """Environment variables with the chosen values, for scripts."""
    return {variable_of(name): option.chosen for name, option in options.items()}


def variable_of(name: str) -> str:
    """The environment variable that scripts find an option in."""
    return f"CSIT_OPTION_{name.upper().replace('-', '_')}"


class WorkloadSpec(Frozen):
    """Workload of a sizing."""

    range: LoadRange
    increase: Positive
    repeat: Annotated[int, Field(ge=1), at_most(MAX_REPETITIONS)] = 1
    stop: Stop | None = None
    generator: str
    """Script that offers a load and prints the performance indicator; relative to the file."""
    needs: tuple[Program, ...] = ()
    """Programs that the script starts: looked for on the machine that it runs on, before anything is deployed."""
    options: Options = Field(default_factory=dict, exclude_if=is_empty)
    """Choices that the script understands."""
    duration_s: Annotated[float, Field(gt=0), at_most(LONGEST_TRIAL_S)] = 300.0
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Capacity is the highest offered load whose indicator is at least this share of it."""
    thresholds: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field(default=(), max_length=10, exclude_if=is_empty)
    """More of them, for capacities from the same loads; the search goes by `threshold`."""
    workload: Positive | None = None
    """Directed search ends when a size carries this."""
    unit: str = "calls/s"
    within_s: Annotated[float, Field(gt=0), at_most(LONGEST_TRIAL_S)] = 60.0
    """Additional time of the script beyond `duration_s`."""

    @property
    def all_thresholds(self) -> tuple[float, ...]:
        """The one that the search goes by, then the others, highest first."""
        return self.threshold, *sorted(set(self.thresholds) - {self.threshold}, reverse=True)

    def loads(self) -> tuple[float, ...]:
        """All offered loads, lowest first."""
        return tuple(self.range.min + index * self.increase for index in range(self._steps + 1))

    @property
    def highest_load(self) -> float:
        """The last of all loads, without listing them."""
        return self.range.min + self._steps * self.increase

    @property
    def _steps(self) -> int:
        return int((self.range.max - self.range.min) / self.increase + 1e-9)

    @model_validator(mode="after")
    def _answers_something(self, info: ValidationInfo) -> Self:
        if is_asked(info):
            _check_load_count(self)  # before loads are listed
        _check_workload(self)
        return self


def _check_load_count(spec: WorkloadSpec) -> None:
    """Refuse more loads than a sizing may offer.

    Raises:
        Inconsistency: With the place below the specification.
    """
    count = (spec.range.max - spec.range.min) / spec.increase
    if count >= MAX_SIZING_LOADS:
        raise Inconsistency(("increase",), f"{spec.increase:g} makes {count:.0f} loads; at most {MAX_SIZING_LOADS}")


def _check_workload(spec: WorkloadSpec) -> None:
    """Refuse loads and limits that cannot answer anything.

    Raises:
        Inconsistency: With the place below the specification.
    """
    span = spec.range.max - spec.range.min
    if spec.increase > span > 0:
        raise Inconsistency(
            ("increase",), f"{spec.increase:g} is more than the range's {span:g}: one load would be offered"
        )
    top = spec.highest_load
    if spec.workload is not None and spec.workload > top:
        raise Inconsistency(
            ("workload",), f"{spec.workload:g} {spec.unit} is above the highest load, {top:g}: no size could show it"
        )
    lowest = min(spec.all_thresholds)
    if spec.stop is not None and spec.stop.below > lowest:
        raise Inconsistency(
            ("stop", "below"),
            f"{spec.stop.below:g} is above the threshold {lowest:g}: sizes would stop while carrying the load",
        )
