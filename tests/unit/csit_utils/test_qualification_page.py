"""The qualification of the generator on the page of a test."""

from csit_utils.report.details.qualification import qualification_figure, qualification_view
from resources.libraries.python.model.request.frames import frame
from tests.builders import qualification, qualified_point

FOUND = qualification(qualified_point(), qualified_point(size="1518B", loss_free_pps=None))


def test_the_table_says_which_line_bounds_the_test() -> None:
    view = qualification_view(FOUND, frame("IMIX"), 20)
    assert view is not None and view.bound == FOUND.points[0] and view.points == FOUND.points
    assert view.caption == ("auto 1 on veth, 1 CPU of m; XDP live frames; trials of 0.2 s, 2026-11-25T12:00:00+00:00")
    assert qualification_view(None, frame("64B"), 2) is None


def test_the_figure_has_the_rates_of_the_generator_and_those_of_the_test() -> None:
    view = qualification_view(FOUND, frame("64B"), 2)
    figure = qualification_figure("q", "t", view, [("NDR", 712e3), ("PDR", None)], simulated=False)
    no_loss, _, arrived, ndr = figure.variants[""]["data"]
    assert no_loss["x"] == ["64B, 2 flows", "1518B, 2 flows"]
    assert no_loss["y"] == [1.0, None] and arrived["y"] == [1.2, 1.2]
    assert (ndr["name"], ndr["x"], ndr["y"]) == ("NDR of this test", ["64B, 2 flows"], [0.712])
    assert figure.variants[""]["layout"]["yaxis"]["title"]["text"] == "rate of all flows, Mpps"
    assert qualification_figure("q", "t", None, [], simulated=False) is None
