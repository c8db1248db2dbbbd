"""Workload offered to every size of a service. Field names are those of NFV-VITAL, see `sizing`."""

from typing import Annotated, Self

from pydantic import Field, ValidationInfo, model_validator

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.bounds import LONGEST_TRIAL_S, MOST_REPETITIONS
from resources.libraries.python.model.validation import at_most, is_asked
from resources.libraries.python.studies.sizing.model.options import Options, Program
from resources.libraries.python.studies.sizing.model.spec_checks import check_load_count, check_workload

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


class WorkloadSpec(Frozen):
    """Workload of a sizing."""

    range: LoadRange
    increase: Positive
    repeat: Annotated[int, Field(ge=1), at_most(MOST_REPETITIONS)] = 1
    stop: Stop | None = None
    generator: str
    """Script that offers a load and prints the performance indicator; relative to the file."""
    needs: tuple[Program, ...] = ()
    """Programs that the script starts: looked for on the machine that it runs on, before anything is deployed."""
    options: Options = Field(default_factory=dict, exclude_if=lambda options: not options)
    """Choices that the script understands."""
    duration_s: Annotated[float, Field(gt=0), at_most(LONGEST_TRIAL_S)] = 300.0
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Capacity is the highest offered load whose indicator is at least this share of it."""
    workload: Positive | None = None
    """Directed search ends when a size carries this."""
    unit: str = "calls/s"
    within_s: Annotated[float, Field(gt=0), at_most(LONGEST_TRIAL_S)] = 60.0
    """Additional time of the script beyond `duration_s`."""

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
            check_load_count(self)  # before loads are listed
        check_workload(self)
        return self
