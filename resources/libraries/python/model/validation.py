"""Our words for what pydantic finds wrong with a value of a file: a sentence for each type of error, by type alone."""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic_core import ErrorDetails

from resources.libraries.python.model.bounds import LONGEST_QUOTE, quoted, quoted_reason

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
