"""Headlines, speedup, changes along an axis, and the tests that stand for cells, of matrices made by hand."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from csit_utils.analysis.grouping import series_of
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MRR, NDR, ORR, PDR, SOAK, THROUGHPUTS, InstanceRow
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell, layouts, matrices
from csit_utils.studies.density.analysis.efficiency import NF, VSWITCH, ratios, speedups
from csit_utils.studies.density.analysis.summary import changes, headlines
from csit_utils.studies.density.pages.fairness import fairness_of
from csit_utils.studies.density.sentences import rare_losses
from tests.unit.csit_utils.histories import row

VALUE, AT_LEAST, BELOW, NOT_RUN = CellState.VALUE, CellState.AT_LEAST, CellState.BELOW, CellState.NOT_RUN


def cell(value_pps: float | None, state: CellState = VALUE, upper: float = 1.01, noise_pps: float = 0.0) -> MatrixCell:
    upper_pps = None if value_pps is None else upper * value_pps
    return MatrixCell(state, value_pps, upper_pps, noise_pps=noise_pps)


def matrix(cells: Mapping[tuple[int, int], MatrixCell], metric: Measure = NDR, **sizes: object) -> Matrix:
    chains, nodes = (tuple(sorted({place[axis] for place in cells})) for axis in (0, 1))
    return Matrix(series_of(replace(row(1e6), **sizes)), metric, chains, nodes, dict(cells))


def test_a_headline_is_of_the_metric_that_says_most() -> None:
    by_metric = {metric: matrix({(1, 1): cell(float(rate))}, metric) for rate, metric in enumerate(THROUGHPUTS, 1)}
    for best in (PDR, NDR, SOAK, MRR, ORR):
        (found,) = headlines(by_metric.values())
        assert found.metric is best
        assert found.cell(best, found.most) == by_metric.pop(best).cells[1, 1]


def test_a_headline_skips_cells_without_a_figure() -> None:
    figures = {(2, 1): cell(100), (2, 2): cell(80, AT_LEAST)}
    (found,) = headlines([matrix({(1, 1): cell(50, BELOW), **figures, (4, 4): cell(None, NOT_RUN)})])
    assert found.most == (2, 2)
    assert found.states == ((VALUE, 1), (AT_LEAST, 1), (BELOW, 1), (NOT_RUN, 1))
    (nothing,) = headlines([matrix({(1, 1): cell(None, NOT_RUN)})])
    assert (nothing.most, nothing.cell(NDR, None)) == (None, None)


def test_a_headline_counts_what_limits_its_cells() -> None:
    kinds = ("nf-bound", "vswitch-bound", "vswitch-bound", "measured")
    rows = [row(1e6, cell=("CSC", chains, 1), verdicts=kind) for chains, kind in enumerate(kinds, 1)]
    (found,) = headlines(matrices(rows, series_of(rows[0])))
    assert found.limits == (("vswitch-bound", 2), ("nf-bound", 1))


def test_speedup_has_at_least_two_figures_of_the_same_cell() -> None:
    one = matrix({(1, 1): cell(100), (2, 1): cell(90), (4, 1): cell(80)}, vs_dtc=1)
    two = matrix({(1, 1): cell(180, AT_LEAST), (2, 1): cell(80, BELOW), (4, 1): cell(None, NOT_RUN)}, vs_dtc=2)
    other = matrix({(1, 1): cell(70)}, vs_dtc=2, nf_size="0.5c")
    by_axis = {found.axis: found for found in speedups([two, one, other])}
    vswitch, nf = by_axis[VSWITCH], by_axis[NF]
    assert (vswitch.place, vswitch.other, vswitch.service_type) == ((1, 1), "NF-1c", "CSC")
    assert [(point.cores, point.rate_pps) for point in vswitch.points] == [(1.0, 100), (2.0, 180)]
    assert vswitch.factor(vswitch.points[1]) == 1.8
    assert vswitch.perfect_pps(3) == 300
    assert (nf.other, [(point.cores, point.rate_pps) for point in nf.points]) == ("vSwitch-2c", [(0.5, 70), (1.0, 180)])


def test_sizes_that_are_no_number_and_unknown_vswitches_have_no_speedup() -> None:
    cells = {(1, 1): cell(100)}
    assert speedups([matrix(cells, nf_size=size) for size in ("1c-2c", "1c")]) == []
    assert [found.axis for found in speedups([matrix(cells, nf_size=size) for size in ("2c", "1c")])] == [NF]
    assert speedups([matrix(cells, vs_dtc=cores) for cores in (None, 2)]) == []
    assert speedups([matrix(cells), matrix(cells, PDR, vs_dtc=2)]) == []


def test_changes_go_along_the_shortest_service_and_the_fewest_services() -> None:
    found = changes([matrix({(1, 1): cell(100), (4, 1): cell(80), (1, 2): cell(60), (4, 2): cell(10)})])
    assert [(each.axis, each.start, each.end, each.start_pps, each.end_pps, each.resolved) for each in found] == [
        ("instances", (1, 1), (4, 1), 100, 80, True),
        ("NFs", (1, 1), (1, 2), 100, 60, True),
    ]
    assert [each.ratio for each in found] == pytest.approx([-0.2, -0.4])


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("low", "high", "resolved"),
    [
        (cell(100, upper=1.05), cell(105), False),
        (cell(100, upper=1.05), cell(105.1), True),
        (cell(100, upper=1, noise_pps=3), cell(110, noise_pps=4), False),
        (cell(100, upper=1, noise_pps=3), cell(110.1, noise_pps=4), True),
        (cell(100, BELOW), cell(105), True),
        (cell(100), cell(105, AT_LEAST), True),
    ],
)
def test_a_change_is_resolved_beyond_bounds_and_twice_the_noise(
    low: MatrixCell, high: MatrixCell, resolved: bool, order: int
) -> None:
    one, other = (low, high)[::order]
    (found,) = changes([matrix({(1, 1): one, (2, 1): other})])
    assert found.resolved is resolved
    assert (found.ratio is not None) is (low.state is high.state is VALUE)


def test_limits_that_may_lie_either_way_are_no_change() -> None:
    for low, high in ((cell(100, AT_LEAST), cell(200)), (cell(100), cell(200, BELOW))):
        for one, other in ((low, high), (high, low)):
            assert changes([matrix({(1, 1): one, (2, 1): other})]) == []


def test_the_newest_test_that_has_it_stands_for_a_cell() -> None:
    rows = [row(1e6, 1), row(1e6, 3), row(1e6, 2), row(1e6, 4, verdicts="lost")]
    rows += [row(1e6, 5, cell=("CSC", 2, 2), verdicts="lost"), row(None, 6, cell=("CSC", 2, 1), verdicts="lost")]
    (layout,) = layouts(rows, lambda one: one.verdicts != "lost", missing="no sample")
    assert (layout.chains, layout.nodes) == ((1, 2), (1, 2))
    assert [(place, own.run) for place, own in layout.found()] == [((1, 1), "lab-a/3/output.xml")]
    assert layout.cells[1, 1].tests == 3
    reasons = [(layout.cells[place].state, layout.cells[place].reason) for place in ((2, 2), (2, 1))]
    assert reasons == [(NOT_RUN, "no sample"), (CellState.FAILED, "no traffic at hop 2")]
    assert layouts(rows, lambda one: one.verdicts == "other") == []


def served(instance: int, forwarded_pps: float, loss_ratio: float, number: str = "NDR") -> InstanceRow:
    """One direction of an instance."""
    return InstanceRow(
        anchor="a", test_name="t", number=number, load_pps=400.0, trials=1, instance=instance, direction="forward",
        sent=100, received=90, offered_pps=100.0, forwarded_pps=forwarded_pps, loss_ratio=loss_ratio, worst=False,
        fairness=0.9, verdict="measured",
    )  # fmt: skip


def test_rates_of_an_instance_are_of_both_directions_together() -> None:
    rows = [served(2, 70, 0.3), served(2, 60, 0.4), served(1, 90, 0.1), served(1, 100, 0.0), served(1, 5, 0.9, "PDR")]
    ndr, pdr = fairness_of(rows).values()
    assert (ndr.number, ndr.load_pps, ndr.index, ndr.worst_loss_ratio) == ("NDR", 400, 0.9, 0.4)
    assert (ndr.rates_pps, ndr.lowest, ndr.highest) == (((1, 190), (2, 130)), (2, 130), (1, 190))
    assert ndr.ratio == pytest.approx(130 / 190)
    assert (pdr.number, pdr.ratio, fairness_of([served(1, 0, 1)])["NDR"].ratio) == ("PDR", 1, None)


def test_service_types_are_held_against_csc_or_the_first_with_a_figure() -> None:
    def of(kind: str, one: MatrixCell) -> Matrix:
        return matrix({(1, 1): one}, service_type=kind)

    shared = replace(cell(300), oversubscribed=True)
    (found,) = ratios([of("VSC", cell(50)), of("CSC", cell(100)), of("CSP", shared)])
    assert (found.base, found.oversubscribed, found.share("CSP"), found.share("VSC")) == ("CSC", True, 3, 0.5)
    limit = replace(cell(100, AT_LEAST), oversubscribed=True)
    (found,) = ratios([of("VSC", cell(50)), of("CSC", limit), of("CSP", cell(75))])
    assert (found.base, found.oversubscribed, found.share("CSP"), found.share("CSC")) == ("VSC", False, 1.5, None)
    assert ratios([of("VSC", cell(50)), of("CSC", limit)]) == []


def test_an_ndr_far_below_mrr_is_a_finding_and_a_noisy_or_limited_one_is_none() -> None:
    def said(ndr: MatrixCell, mrr: MatrixCell) -> tuple[str, ...]:
        found = [matrix({(1, 1): cell(100), (4, 2): ndr}), matrix({(1, 1): cell(101), (4, 2): mrr}, MRR)]
        return rare_losses(found, {found[0].series: "VSC"})

    (text,) = said(cell(7e4, BELOW, upper=1.0), cell(4e6))
    assert "VSC" in text and "1 of 2" in text and "4x2 below 70.0 kpps of 4.00 Mpps" in text
    assert said(cell(1.9e6), cell(4e6))
    assert not said(cell(2e6), cell(4e6))
    assert not said(cell(1.9e6), cell(4e6, noise_pps=1e5))
    assert not said(cell(1e6, AT_LEAST), cell(4e6))
    assert not said(cell(None, NOT_RUN), cell(4e6))
