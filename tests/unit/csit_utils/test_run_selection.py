"""Which tests `key=value` means."""

import pytest

from csit_utils.commands.results.selections import parse_chosen
from resources.libraries.python.errors import ConfigError
from tests.unit.csit_utils.histories import row

ROWS = [row(1e6, night, testbed) for testbed in ("lab-a", "lab-b") for night in range(4)]


def chosen(text: str) -> list[str]:
    return [each.run.removesuffix("/output.xml") for each in parse_chosen(text).of(ROWS)]


def test_keys_are_anded_values_ored_and_patterns_match() -> None:
    assert chosen("testbed=lab-a") == ["lab-a/0", "lab-a/1", "lab-a/2", "lab-a/3"]
    assert chosen("testbed=lab-a,night=2026-11-02") == ["lab-a/1"]
    assert chosen("run=*/1/*|*/2/*, testbed=*b") == ["lab-b/1", "lab-b/2"]
    assert chosen("night=2026-11-02..2026-11-03,testbed=lab-b") == ["lab-b/1", "lab-b/2"]


def test_a_night_is_that_of_its_evening() -> None:
    times = "2026-11-20T23:10:00+00:00", "2026-11-21T04:10:00+00:00", "2026-11-21T14:10:00+00:00", None
    rows = [row(1e6, started_at=time) for time in times]
    assert parse_chosen("night=2026-11-20").of(rows) == rows[:2]
    assert parse_chosen("night=0001-01-01..9999-12-31").of(rows) == rows[:3], "one without a time is of no night"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("testbet=lab-a", "did you mean 'testbed'"),
        ("monday/output.xml", "no file 'monday/output.xml'"),
        ("testbed=", "say testbed=VALUE"),
        ("night=yesterday", "'yesterday' is no date"),
        ("night=2026-11-02..", "'' is no date"),
        ("label=*", "the label of all tests is unknown"),
        ("testbed=lab-c,night=2026-11-02", "testbed is one of lab-a, lab-b"),
    ],
)
def test_what_means_no_test_is_refused_and_existing_values_are_listed(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        chosen(text)
