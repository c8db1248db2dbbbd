"""Validation by pydantic: maxima that hold in specifications, and its errors as messages repeat them."""

from collections.abc import Sized
from typing import TypeVar

from pydantic import AfterValidator, ValidationError, ValidationInfo
from pydantic_core import PydanticKnownError

from resources.libraries.python.model.bounds import LONGEST_REASON, MOST_ERRORS, dotted, quoted

_Number = TypeVar("_Number", int, float)
_Items = TypeVar("_Items", bound=Sized)


def first_error(error: ValidationError) -> tuple[str, str]:
    """Path and message of the first error of a validation; of too many errors, their number.

    pydantic makes a dictionary of each error, which takes some kB.
    """
    count = error.error_count()
    if count > MOST_ERRORS:
        return "", f"{count:,} errors"
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    others = f" (and {count - 1} more)" if count > 1 else ""
    return dotted(first["loc"]), f"{quoted(first['msg'], LONGEST_REASON)}{others}"


def error_text(error: Exception) -> str:
    """An error as a message repeats it: one line of bounded length; of a validation the first error."""
    if isinstance(error, ValidationError):
        return ": ".join(filter(None, first_error(error)))
    return quoted(str(error), LONGEST_REASON)


def is_asked(info: ValidationInfo) -> bool:
    """Whether a model is validated as a specification."""
    return bool(info.context and info.context.get("asked"))


def at_most(most: float) -> AfterValidator:
    """Annotation of a number: its maximum in specifications."""

    def check(value: _Number, info: ValidationInfo) -> _Number:
        if is_asked(info) and not value <= most:
            raise PydanticKnownError("less_than_equal", {"le": most})
        return value

    return AfterValidator(check)


def at_most_items(most: int) -> AfterValidator:
    """Annotation of a tuple: its maximum length in specifications."""

    def check(value: _Items, info: ValidationInfo) -> _Items:
        if is_asked(info) and len(value) > most:
            raise PydanticKnownError(
                "too_long", {"field_type": "Tuple", "max_length": most, "actual_length": len(value)}
            )
        return value

    return AfterValidator(check)
