"""Back-to-back frames on the page of a test."""

from csit_utils.report.details.testview import burst_figure, bursts_text
from tests.unit.csit_utils.measured_extras import BURSTS


def test_the_sentence_has_the_mean_the_range_and_both_times() -> None:
    assert bursts_text(BURSTS) == (
        "Back-to-back: 310 ± 10 frames of each flow at 1.00 Mpps, a buffer of 465 µs (620 µs implied); "
        "3 repetitions from 300 to 320 frames, 45 bursts."
    )
    assert bursts_text(BURSTS.model_copy(update={"endless": True})).startswith("Back-to-back: at least 310 ")
    assert bursts_text(None) == ""


def test_the_figure_has_a_point_for_each_repetition() -> None:
    figure = burst_figure("b", "t", BURSTS, simulated=False)
    assert figure is not None and figure.variants[""]["data"][0]["y"] == [300, 310, 320]
    single = BURSTS.model_copy(update={"frames": (300,)})
    assert burst_figure("b", "t", single, simulated=False) is None
    assert burst_figure("b", "t", None, simulated=False) is None
