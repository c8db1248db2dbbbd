"""What words of users mean: rates, times, durations, and which tests `key=value` selects."""

import pytest

from csit_utils.commands.results.selections import parse_chosen
from csit_utils.commands.testbeds.reserve import seconds
from csit_utils.studies.density.answer_command import parse_rate, parse_time_ns
from resources.libraries.python.errors import ConfigError
from tests.unit.csit_utils.histories import row


@pytest.mark.parametrize(
    ("text", "layer", "pps"),
    [
        ("500kpps", "L2", 5e5),
        ("1.2Mpps", "L2", 1.2e6),
        ("1Gbit/s", "L2", 1e9 / 512),
        ("1Gbps", "L1", 1e9 / 672),
        ("64 kb/s", "L2", 125),
    ],
)
def test_rates_as_people_write_them(text: str, layer: str, pps: float) -> None:
    assert parse_rate(text).pps(64, layer) == pytest.approx(pps)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("500", "500: no unit"),
        ("1.5m", "no unit"),
        *((text, "no rate") for text in ("", "fast", "-3kpps", "0", "1kbyte")),
    ],
)
def test_what_is_no_rate(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_rate(text)


def test_times_as_people_write_them() -> None:
    assert [parse_time_ns(text) for text in ("80us", "1.5 ms", "2s", "7ns", "80µs")] == [8e4, 1.5e6, 2e9, 7.0, 8e4]
    with pytest.raises(ConfigError, match="no time"):
        parse_time_ns("80")


def test_durations_as_people_write_them() -> None:
    durations_s = {
        "90": 90,
        "90s": 90,
        "30m": 1800,
        "8h": 28800,
        "1h30m": 5400,
        "0.5h": 1800,
        "1d": 86400,
        " 2H ": 7200,
    }
    assert {text: seconds(text, "--lease") for text in durations_s} == durations_s


@pytest.mark.parametrize(
    ("text", "said"),
    [*((text, "no duration") for text in ("8 hours", "h", "", "-1")), ("5s", "must be 10 s"), ("31d", "30 days")],
)
def test_what_is_no_duration_is_refused_by_the_option_s_name(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"^--lease: .*{said}"):
        seconds(text, "--lease", least_s=10.0)


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
