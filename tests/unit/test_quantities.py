"""Quantities as texts: three digits and a unit, in full only where rates are compared."""

import pytest

from resources.libraries.python.quantities import DASH, count, latency, rate, rates


@pytest.mark.parametrize(
    ("value_pps", "text"),
    [
        (544_088, "544 kpps"),
        (999_600, "1.00 Mpps"),
        (0, "0 pps"),
        (3.2, "3.20 pps"),
        (14_880_952, "14.9 Mpps"),
        (None, DASH),
    ],
)
def test_a_rate_has_three_digits_and_a_unit(value_pps: float | None, text: str) -> None:
    assert rate(value_pps) == text


def test_rates_that_are_compared_differ_as_texts() -> None:
    assert rates(544_088, 200_000) == ("544 kpps", "200 kpps")
    assert rates(544_088, 544_011) == ("544,088 pps", "544,011 pps")
    assert rates(5e5, 5e5) == ("500 kpps", "500 kpps")


def test_counts_have_separators() -> None:
    assert f"{count(10_899)} of {count(272_044)} packets" == "10,899 of 272,044 packets"
    assert (count(1234.6), count(999), count(0), count(None)) == ("1,235", "999", "0", DASH)
    assert latency(2_130_000) == "2.13 ms"
