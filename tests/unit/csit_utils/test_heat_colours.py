"""The colours of heat maps."""

import pytest
from plotly.colors import get_colorscale, sample_colorscale

from csit_utils.report.colour_scales import colour


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.5, 0.77, 1.0])
def test_the_scale_is_cividis_without_its_ends(share: float) -> None:
    assert colour(share)[0] == sample_colorscale(get_colorscale("Cividis"), [0.06 + 0.9 * share])[0]


def test_ink_is_readable_at_both_ends() -> None:
    assert [colour(share)[1] for share in (0, 1)] == ["#ffffff", "#000000"]
