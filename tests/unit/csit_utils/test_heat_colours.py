"""The colours of heat maps."""

import pytest
from plotly.colors import get_colorscale, sample_colorscale

from csit_utils.report.cell_maps import colour, scale_of


def test_a_scale_ends_at_the_values_and_keeps_nearly_equal_ones_alike() -> None:
    assert (scale_of([2.0, 5.0, 3.0]).low, scale_of([2.0, 5.0, 3.0]).high) == (2.0, 5.0)
    for lower_is_better, ends in ((False, (80.0, 100.0)), (True, (pytest.approx(123.75), 99.0))):
        scale = scale_of([99.0, 100.0], lower_is_better=lower_is_better)
        assert (scale.low, scale.high) == ends, "low is the dark end"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.5, 0.77, 1.0])
def test_the_scale_is_cividis_without_its_ends(share: float) -> None:
    assert colour(share)[0] == sample_colorscale(get_colorscale("Cividis"), [0.06 + 0.9 * share])[0]


def test_ink_is_readable_at_both_ends() -> None:
    assert [colour(share)[1] for share in (0, 1)] == ["#ffffff", "#000000"]
