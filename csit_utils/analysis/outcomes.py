"""Tests whose outcome differs between two runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from csit_utils.dataset.rows import TestRow
from csit_utils.studies.density.analysis.density import QUARANTINED


@dataclass(frozen=True)
class Outcomes:
    """Tests by change of outcome; tests of both runs unless noted otherwise."""

    failing: tuple[TestRow, ...] = ()
    """Passed before; without quarantined ones."""
    passing: tuple[TestRow, ...] = ()
    """Did not pass before."""
    quarantined: tuple[TestRow, ...] = ()
    """Not quarantined before; includes tests of the newer run only."""
    added: tuple[TestRow, ...] = ()
    """In the newer run only."""
    missing: tuple[TestRow, ...] = ()
    """In the older run only."""


def outcomes(before: Iterable[TestRow], after: Iterable[TestRow]) -> Outcomes:
    """Compare the outcomes of two runs. The last attempt of a test in a run counts."""
    old, new = _by_id(before), _by_id(after)
    both = [(old[key], new[key]) for key in new if key in old]
    return Outcomes(
        failing=tuple(now for was, now in both if _passed(was) and now.status == "FAIL" and not quarantined(now)),
        passing=tuple(now for was, now in both if not _passed(was) and _passed(now)),
        quarantined=tuple(
            now for key, now in new.items() if quarantined(now) and not (key in old and quarantined(old[key]))
        ),
        added=tuple(now for key, now in new.items() if key not in old),
        missing=tuple(was for key, was in old.items() if key not in new),
    )


def quarantined(row: TestRow) -> bool:
    """Whether a test was given up because its cell broke the system under test, in this or another test."""
    return bool(row.quarantined) or row.message.startswith(QUARANTINED)


def _passed(row: TestRow) -> bool:
    return row.status == "PASS"


def _by_id(rows: Iterable[TestRow]) -> Mapping[str, TestRow]:
    return {row.test_id: row for row in rows}
