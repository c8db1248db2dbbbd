"""Quantities as texts: three digits and a unit, in full only where rates are compared."""

from resources.libraries.python.quantities import DASH, rate, rates


def test_a_rate_has_three_digits_and_a_unit_and_rates_that_are_compared_differ() -> None:
    assert [rate(value_pps) for value_pps in (544_088, 999_600, 0, 3.2, 14_880_952, None)] == [
        "544 kpps", "1.00 Mpps", "0 pps", "3.20 pps", "14.9 Mpps", DASH,
    ]  # fmt: skip
    assert rates(544_088, 200_000) == ("544 kpps", "200 kpps")
    assert rates(544_088, 544_011) == ("544,088 pps", "544,011 pps")
    assert rates(5e5, 5e5) == ("500 kpps", "500 kpps")
