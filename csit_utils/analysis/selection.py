"""Selections of tests such as `testbed=lab-1,night=2026-11-20`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase

from csit_utils.analysis.cells import when
from csit_utils.analysis.runs import night_of
from csit_utils.dataset.rows import TestRow
from csit_utils.dataset.store.layout import Import, StoredPart
from resources.libraries.python.errors import ConfigError

RANGE = ".."
_KEYS: Mapping[str, Callable[[TestRow], object]] = {
    "run": lambda row: row.run,
    "label": lambda row: row.label,
    "testbed": lambda row: row.testbed,
    "night": lambda row: night_of(when(row)) if row.started_at else None,
    "version": lambda row: row.version,
    "revision": lambda row: row.revision,
    "profile": lambda row: row.profile,
    "service": lambda row: row.service_type,
    "frame": lambda row: row.frame,
    "origin": lambda row: row.origin,
}
KEYS = tuple(_KEYS)
"""Keys of selections."""


@dataclass(frozen=True)
class SelectedTests:
    """A selection of tests."""

    text: str
    """The selection as given."""
    conditions: tuple[tuple[str, tuple[str, ...]], ...]
    """Keys with their accepted values."""

    def meets(self, row: TestRow) -> bool:
        """Whether a test is selected; an unknown property never matches."""
        return all(
            any(_matches(found, value) for value in values)
            for key, values in self.conditions
            for found in (_KEYS[key](row),)
        )

    def may_be_in(self, _import: Import, part: StoredPart) -> bool:
        """Whether a part of a dataset may have a selected test, by what its import says of it."""
        return all(
            known is None or any(_matches(found, value) for found in known for value in values)
            for key, values in self.conditions
            for known in (_values_in(part, key),)
        )

    def of(self, rows: Sequence[TestRow]) -> list[TestRow]:
        """Return the selected tests.

        Raises:
            ConfigError: No test is selected; the message lists existing values.
        """
        found = [row for row in rows if self.meets(row)]
        if not found:
            alone = (each for each in self.conditions if not any(SelectedTests("", (each,)).meets(row) for row in rows))
            key, _ = next(alone, self.conditions[0])
            raise ConfigError(f"{self.text}: matches no test; {_known(rows, key)}")
        return found


def _values_in(part: StoredPart, key: str) -> Collection[object] | None:
    """Values of a property in a part; None if it may have others."""
    if key == "testbed":
        return (part.testbed,)
    if key != "night":
        known: Collection[str] | None = getattr(part.values, "service_type" if key == "service" else key)
        return known
    with suppress(ValueError, OverflowError):
        # Its tests began on this day in their own time zone, some before noon.
        return [date.fromisoformat(part.night) + timedelta(days) for days in range(-2, 2)] if part.night else ()
    return None


def parse_chosen(text: str) -> SelectedTests:
    """Return a selection from comma-separated `key=value` pairs.

    Values are shell patterns, alternatives separated by `|`; `night=2026-11-01..2026-11-30` is a range.

    Raises:
        ConfigError: A key is unknown or has no value.
    """
    conditions = []
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if key not in _KEYS:
            close = get_close_matches(key, KEYS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"choose from {', '.join(KEYS)}"
            raise ConfigError(f"{text}: no file '{text}', and no key '{key}'; {hint}")
        if not equals or not value:
            raise ConfigError(f"{text}: say {key}=VALUE")
        values = tuple(value.split("|"))
        if key == "night":
            for each in values:
                _check_nights(text, each)
        conditions.append((key, values))
    return SelectedTests(text, tuple(conditions))


def _check_nights(text: str, value: str) -> None:
    for end in value.split(RANGE):
        try:
            date.fromisoformat(end)
        except ValueError as error:
            raise ConfigError(
                f"{text}: '{end}' is no date; expected night=2026-11-20 or 2026-11-01..2026-11-30"
            ) from error


def _matches(found: object, value: str) -> bool:
    if found is None:
        return False
    if isinstance(found, date):
        first, _, last = value.partition(RANGE)
        return date.fromisoformat(first) <= found <= date.fromisoformat(last or first)
    return fnmatchcase(str(found), value)


_SHOWN = 8


def _known(rows: Sequence[TestRow], key: str) -> str:
    values = sorted({str(found) for row in rows if (found := _KEYS[key](row)) is not None})
    if not values:
        return f"the {key} of all tests is unknown"
    few = values if len(values) <= _SHOWN else [*values[: _SHOWN // 2], "...", *values[-_SHOWN // 2 :]]
    return f"{key} is one of {', '.join(few)}"
