"""Which tests are meant: `testbed=lab-1,night=2026-11-20` and the like."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase

from csit_utils.analysis.cells import when
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.errors import ConfigError

_NOON = timedelta(hours=12)
RANGE = ".."


def night_of(row: TestRow) -> date | None:
    """The evening's date of the night in which a test began, UTC: what begins before noon is of the night before."""
    return (when(row) - _NOON).date() if row.started_at else None


_KEYS: Mapping[str, Callable[[TestRow], object]] = {
    "run": lambda row: row.run,
    "label": lambda row: row.label,
    "testbed": lambda row: row.testbed,
    "night": night_of,
    "version": lambda row: row.version,
    "revision": lambda row: row.revision,
    "profile": lambda row: row.profile,
    "service": lambda row: row.service_type,
    "frame": lambda row: row.frame,
    "origin": lambda row: row.origin,
}
KEYS = tuple(_KEYS)
"""What can be chosen by."""


@dataclass(frozen=True)
class Chosen:
    """A selection of tests."""

    text: str
    """As it was written."""
    conditions: tuple[tuple[str, tuple[str, ...]], ...]
    """Keys, each with the values of which one has to match."""

    def meets(self, row: TestRow) -> bool:
        """Whether a test is one of them; what is not known of a test never matches."""
        return all(
            any(_matches(found, value) for value in values)
            for key, values in self.conditions
            for found in (_KEYS[key](row),)
        )

    def of(self, rows: Sequence[TestRow]) -> list[TestRow]:
        """The tests that are meant.

        Raises:
            ConfigError: There are none; the text tells which values there are.
        """
        found = [row for row in rows if self.meets(row)]
        if not found:
            alone = (each for each in self.conditions if not any(Chosen("", (each,)).meets(row) for row in rows))
            key, _ = next(alone, self.conditions[0])
            raise ConfigError(f"{self.text}: no test has that; {_known(rows, key)}")
        return found


def parse_chosen(text: str) -> Chosen:
    """Read a selection: `key=value` with commas between.

    Values are shell patterns, with `|` between those of which one has to match; `night=2026-11-01..2026-11-30` is a
    range.

    Raises:
        ConfigError: A key is unknown or has no value.
    """
    conditions = []
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if key not in _KEYS:
            close = get_close_matches(key, KEYS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(KEYS)}"
            raise ConfigError(f"{text}: there is no file '{text}', and tests are not chosen by '{key}'; {hint}")
        if not equals or not value:
            raise ConfigError(f"{text}: say {key}=VALUE")
        values = tuple(value.split("|"))
        if key == "night":
            for each in values:
                _check_nights(text, each)
        conditions.append((key, values))
    return Chosen(text, tuple(conditions))


def _check_nights(text: str, value: str) -> None:
    for end in value.split(RANGE):
        try:
            date.fromisoformat(end)
        except ValueError as error:
            raise ConfigError(
                f"{text}: '{end}' is no date; write night=2026-11-20 or 2026-11-01..2026-11-30"
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
        return f"no test at hand tells its {key}"
    few = values if len(values) <= _SHOWN else [*values[: _SHOWN // 2], "...", *values[-_SHOWN // 2 :]]
    return f"{key} is one of {', '.join(few)}"
