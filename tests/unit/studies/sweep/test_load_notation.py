"""Loads of a sweep as people write them; what makes no sense is one clear sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.sweep.model.record import Bursts, Rates
from resources.libraries.python.studies.sweep.request import RelativeBursts, parse_bursts, parse_rates


def test_rates_are_a_row_one_load_or_left_to_a_short_test() -> None:
    assert parse_rates("10000-200000/10000") == Rates(start_pps=1e4, stop_pps=2e5, step_pps=1e4)
    assert parse_rates("5000") == Rates(start_pps=5000, stop_pps=5000, step_pps=5000)
    assert parse_rates(" auto ") is None


@given(st.integers(1, 10**7), st.integers(0, 900), st.integers(1, 10**6))
def test_a_row_has_as_many_loads_as_it_says(first: int, more: int, step: int) -> None:
    row = parse_rates(f"{first}-{first + more * step}/{step}")
    assert len(row.each()) == more + 1
    assert row.each()[-1] == first + more * step


def test_bursts_have_a_rate_or_a_multiple_of_what_the_service_can_do() -> None:
    assert parse_bursts("on 2 off 1 at 50000") == Bursts(rate_pps=50_000, on_s=2, off_s=1)
    found = parse_bursts("on  3  off 2 at 1.2x")
    assert isinstance(found, RelativeBursts)
    assert found.at(1000.0) == Bursts(rate_pps=1200.0, on_s=3, off_s=2)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fast", "rates 'fast' are neither 'auto' nor like 10000-200000/10000 (first-last/step, pps)"),
        ("200-100/10", "rates '200-100/10': rates go up to 100 pps, but start at 200 pps"),
        ("100-200/0", "rates '100-200/0': step_pps: 0.0 is not above 0"),
        ("1-1000000/1", "rates '1-1000000/1': 1000000 loads; at most 1000"),
        ("0-10/1", "rates '0-10/1': start_pps: 0.0 is not above 0"),
    ],
)
def test_invalid_rates_are_reported(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_rates(text)
    assert str(told.value) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("2/1@50000", "bursts '2/1@50000' are not like 'on 2 off 1 at 50000' or 'on 2 off 1 at 1.2x'"),
        ("on 0 off 1 at 500", "bursts 'on 0 off 1 at 500': on_s: 0 is below the minimum of 1"),
        ("on 3601 off 1 at 9", "bursts 'on 3601 off 1 at 9': on_s: 3601 is above the maximum of 3,600"),
        ("on 1 off 1 at 0x", "bursts 'on 1 off 1 at 0x': rate_pps: 0.0 is not above 0"),
    ],
)
def test_invalid_bursts_are_reported(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_bursts(text)
    assert str(told.value) == sentence
