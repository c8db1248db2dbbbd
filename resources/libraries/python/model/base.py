"""The base of every type that is read from or written to a file, maxima in specifications, and errors of validation.

What pydantic finds wrong is said in our words: a sentence for each type of error, by type alone.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, ValidationInfo
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticKnownError

from resources.libraries.python.model.bounds import LONGEST_QUOTE, MAX_ERRORS, dotted, quoted, quoted_reason

_Model = TypeVar("_Model", bound=BaseModel)
ON_FIRST_USE = ConfigDict(defer_build=True)
"""Configuration of type adapters in modules: without it, each start builds the validators of all of them."""

_SEQUENCES = ("tuple", "list", "set", "frozenset")
_OTHER_PARTS = {"cls", "config", "metadata", "serialization", "type"}


def _fail_fast(schema: Any) -> None:  # noqa: ANN401 - mappings and lists of pydantic
    """Let validation of the sequences in a model end at their first wrong item."""
    if isinstance(schema, dict):
        if schema.get("type") in _SEQUENCES:
            schema["fail_fast"] = True
        parts = [each for key, each in schema.items() if key not in _OTHER_PARTS]
    else:
        parts = list(schema)
    for part in parts:
        if isinstance(part, dict | list | tuple) and not (isinstance(part, dict) and "cls" in part):
            _fail_fast(part)


class Frozen(BaseModel):
    """An immutable record in which an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", **ON_FIRST_USE)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        """Bound the errors of a wrong file: each takes some kB of memory, and a wrong item in it 3 bytes."""
        schema = handler(source)
        _fail_fast(schema.get("schema", ()))
        return schema


def digested_text(model: BaseModel) -> str:
    """JSON of what differs from the defaults: a key that is added changes no digest of what does without it."""
    return model.model_dump_json(exclude_defaults=True)


def digest_of_model(model: BaseModel) -> str:
    """SHA-256 of its `digested_text`."""
    return hashlib.sha256(digested_text(model).encode()).hexdigest()


Location = tuple[int | str, ...]
"""Keys and indexes from the top of a file to a place in it."""


def is_none(value: object) -> bool:
    """Leave a field out of the JSON where it is None: records and digests stay what they were without it."""
    return value is None


def is_empty(value: object) -> bool:
    """The same where it is empty, 0 or false."""
    return not value


class Inconsistency(ValueError):
    """Something in a file contradicts something else in it."""

    def __init__(self, location: Location, message: str) -> None:
        super().__init__(message)
        self.location = location
        """From the model that noticed to the place that is wrong."""


def validate_yaml(model: type[_Model], data: object, context: Mapping[str, Any] | None = None) -> _Model:
    """Validate the content of a YAML file, in which a boolean is no number: pydantic takes `cores: on` for one core.

    Raises:
        ValidationError: It does not fit.
    """
    made = model.model_validate(data, context=context)
    wrong: list[InitErrorDetails] = [
        {"type": f"{kind.__name__}_type", "loc": place, "input": value}
        for place, value in _booleans(data, ())
        if (kind := type(_at(made, place))) in (int, float)
    ]
    if wrong:
        raise ValidationError.from_exception_data(model.__name__, wrong)
    return made


def _booleans(data: object, place: Location) -> Iterator[tuple[Location, bool]]:
    if isinstance(data, bool):
        yield place, data
    rows = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, each in rows:
        yield from _booleans(each, (*place, key))


def _at(made: Any, place: Location) -> object:  # noqa: ANN401 - models, and what is inside them
    """What a model has at a place of its file; None where it is kept in another form."""
    with suppress(AttributeError, LookupError, TypeError):
        for step in place:
            made = getattr(made, str(step)) if isinstance(made, BaseModel) else made[step]
        return cast("object", made)
    return None


def of_form(pattern: str, what: str) -> AfterValidator:
    """Annotation of a string: its form.

    `what`: What it then is, in words: `a MAC address such as "02:00:5e:00:53:01"`.
    """
    form = re.compile(pattern)

    def check(value: str) -> str:
        if form.fullmatch(value) is None:
            raise ValueError(f"'{quoted(value)}' is not {what}")
        return value

    return AfterValidator(check)


_Number = TypeVar("_Number", int, float)
_Items = TypeVar("_Items", bound=Sized)


def first_error(error: ValidationError) -> tuple[str, str]:
    """Path and message of the first error of a validation; of too many errors, their number.

    pydantic makes a dictionary of each error, which takes some kB.
    """
    count = error.error_count()
    if count > MAX_ERRORS:
        return "", f"{count:,} errors"
    first = error.errors(include_url=False)[0]
    others = f" (and {count - 1} more)" if count > 1 else ""
    return dotted(first["loc"]), f"{reason_of_value(first)}{others}"


def error_text(error: Exception) -> str:
    """An error as a message repeats it: one line of bounded length; of a validation the first error."""
    if isinstance(error, ValidationError):
        return ": ".join(filter(None, first_error(error)))
    return quoted_reason(str(error))


def refused_version(found: object, read: object) -> str:
    """Say that a file is of a schema version that this release does not read."""
    return (
        f"schema version {quoted(str(found))}, and this release reads version {read}: measure again, or read it with "
        "the release that wrote it"
    )


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


_KINDS: dict[type, str] = {
    dict: "a mapping", list: "a list", tuple: "a list", str: "a string", bool: "a boolean", int: "a number",
    float: "a number", type(None): "nothing",
}  # fmt: skip
"""Names of the types of YAML values."""
_EXPECTED = {
    **dict.fromkeys(("model", "dict", "mapping", "dataclass"), "a mapping (`key: value`)"),
    **dict.fromkeys(("tuple", "list", "set", "frozen_set", "iterable"), "a list"),
    **dict.fromkeys(("string", "bytes"), "a string"),
    **dict.fromkeys(("float", "decimal", "complex"), "a number"),
    "int": "a whole number",
    "finite_number": "a finite number",
    "bool": "true or false",
    "none_required": "nothing",
    "date": "a date such as 2026-01-31",
    "datetime": "a time such as 2026-01-31T12:30:00Z",
    "timezone": "a time with its zone, such as 2026-01-31T12:30:00Z",
    "time": "a time such as 12:30:00",
    "url": "a URL",
    "uuid": "a UUID",
}
"""What is expected, by the beginning of the type of error; the longest one decides."""


def _bound(key: str, what: str) -> Callable[[Any, Mapping[str, Any]], str]:
    def reason(value: object, context: Mapping[str, Any]) -> str:
        if isinstance(value, bool):
            return f"a number is expected here, not {_shown(value)}"
        bound = context[key]
        return f"{quoted(str(value))} {what} {bound if isinstance(bound, str) else f'{bound:,.15g}'}"

    return reason


def _at_least(value: object, context: Mapping[str, Any]) -> str:
    least = context["min_length"]
    return "must not be empty" if least == 1 else f"{_count(value)}; at least {least:,} are needed"


def _at_most(value: object, context: Mapping[str, Any]) -> str:
    return f"{_count(value)}; at most {context['max_length']:,} are possible"


def _own(value: object, context: Mapping[str, Any]) -> str:
    return quoted_reason(str(context.get("error", f"{_shown(value)} is not possible here")))


def _unknown_kind(_: object, context: Mapping[str, Any]) -> str:
    key = context["discriminator"].strip("'")
    return f"{key}: {_unknown_word(context['tag'], str(context['expected_tags']))}"


_REASONS: dict[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "value_error": _own,
    "assertion_error": _own,
    "missing": lambda *_: "is missing",
    "extra_forbidden": lambda *_: "unknown key",
    "greater_than": _bound("gt", "is not above"),
    "greater_than_equal": _bound("ge", "is below the minimum of"),
    "less_than": _bound("lt", "is not below"),
    "less_than_equal": _bound("le", "is above the maximum of"),
    "multiple_of": _bound("multiple_of", "is no multiple of"),
    **dict.fromkeys(("too_short", "string_too_short", "bytes_too_short"), _at_least),
    **dict.fromkeys(("too_long", "string_too_long", "bytes_too_long"), _at_most),
    "string_pattern_mismatch": lambda value, _: f"{_shown(value)} has a form that is not possible here",
    "json_invalid": lambda _, context: f"not valid JSON: {quoted(str(context['error']))}",
    "union_tag_invalid": _unknown_kind,
    "union_tag_not_found": lambda _, context: f"{context['discriminator']} is missing, which says what this is",
}


def reason_of_value(error: ErrorDetails, written: str | None = None) -> str:
    """Return what is wrong with a value, without its place."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if reason := _REASONS.get(kind):
        return reason(value, context)
    if kind in ("enum", "literal_error"):
        return _unknown_word(value, str(context["expected"]), written)
    expected = _EXPECTED.get(max((word for word in _EXPECTED if kind.startswith(word)), key=len, default=""))
    if expected is None:
        return f"{_shown(value)} is not possible here"
    if error["msg"].endswith("an object"):
        expected = "an object"  # JSON's word for a mapping
    if expected == "a string" and written is not None and isinstance(value, bool | int | float):
        return _unquoted(value, written)
    is_one = expected not in ("an object", "a list", _EXPECTED["dict"])
    return f"{expected} is expected here, not {_shown(value) if is_one else _KINDS.get(type(value), 'this')}"


def _unquoted(value: object, written: str) -> str:
    """YAML 1.1 reads some words as booleans, and digits with colons as a number to base 60."""
    text = quoted(written)
    return f'{text} without quotes is {_KINDS[type(value)]}, and a string is expected here; quote it: "{text}"'


def _unknown_word(value: object, expected: str, written: str | None = None) -> str:
    known = _QUOTED.findall(expected)
    shown = ", ".join(known) or expected.replace(" or ", ", ")
    if isinstance(value, str):
        return f"unknown word '{quoted(value)}'{hint(value, known)} (known: {shown})"
    if written is not None and written in known:
        return _unquoted(value, written)
    return f"{_shown(value)} is not possible here (known: {shown})"


_QUOTED = re.compile(r"'([^']*)'")
"""A word in a list of those that are known."""


def _count(value: Any) -> str:  # noqa: ANN401 - whatever the file says
    unit, there = "character" if isinstance(value, str | bytes) else "item", getattr(value, "__len__", lambda: 0)()
    return f"{there:,} {unit}{'s'[there == 1 :]}"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return f"the {_KINDS[type(value)].removeprefix('a ')} {quoted(repr(value))}"
    return _KINDS.get(type(value), "this")


def hint(word: object, known: Sequence[str]) -> str:
    """Return the word that may be meant as a question, or nothing."""
    short = str(word)[:LONGEST_QUOTE]  # comparing a long one takes minutes
    close = get_close_matches(short, [each for each in known if each != word], n=1)
    return f"; did you mean '{close[0]}'?" if close else ""
