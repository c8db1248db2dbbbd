"""Options of a specification: choices that its scripts understand, such as the mode of an IDS or the kind of calls."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen, Misfit

Program = Annotated[str, Field(pattern=r"^\S+$")]
"""By name, or by absolute path."""
OptionName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,23}$")]
Value = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,40}$")]


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
                raise Misfit((place,), f"'{value}' is not one of {', '.join(self.values)}")
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
