"""Rates and times as people write them."""

import pytest

from csit_utils.studies.density.commands.answer import parse_rate, parse_time_ns
from resources.libraries.python.errors import ConfigError


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


@pytest.mark.parametrize("text", ["500", "1.5m"])
def test_a_number_without_a_unit_is_no_rate(text: str) -> None:
    with pytest.raises(ConfigError, match=f"{text}: no unit"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["", "fast", "-3kpps", "0", "1kbyte"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ConfigError, match="no rate"):
        parse_rate(text)


def test_times_as_people_write_them() -> None:
    assert [parse_time_ns(text) for text in ("80us", "1.5 ms", "2s", "7ns", "80µs")] == [8e4, 1.5e6, 2e9, 7.0, 8e4]
    with pytest.raises(ConfigError, match="no time"):
        parse_time_ns("80")
