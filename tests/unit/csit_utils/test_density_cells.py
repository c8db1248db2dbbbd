"""Cells of the matrix: losses, latency, energy; and what is said of a matrix: headlines, speedup, changes, ratios."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from csit_utils.analysis.grouping import series_of
from csit_utils.dataset import rows as columns
from csit_utils.dataset.measures import Measure
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell, layouts, matrices
from csit_utils.studies.density.analysis.efficiency import NF, VSWITCH, ratios, speedups
from csit_utils.studies.density.analysis.latency_cells import BOTH, Quantile, UnknownReason, figure, loads_of
from csit_utils.studies.density.analysis.losses import order, shares
from csit_utils.studies.density.analysis.summary import changes, headlines
from csit_utils.studies.density.pages.energy import energy_blocks
from csit_utils.studies.density.pages.fairness import fairness_of
from csit_utils.studies.density.sentences import rare_losses
from tests.unit.csit_utils.histories import row


def hop(owner: str, lost: int, cause: str = "queue", instance: int = 1) -> columns.HopRow:
    return columns.HopRow("a", "t", "locate", 1e6, instance, "forward", owner, cause, "x", "y", lost, 0.0)


def thread(owner: str, cpu: int, running: float) -> columns.ThreadRow:
    return columns.ThreadRow("a", "t", owner, "x", cpu, running, 0.0)


def test_losses_and_times_are_added_up_by_owner_along_the_path() -> None:
    found = shares([hop("nf-1-2", 30), hop("nf-7-2", 20), hop("vswitch", 40), hop("nf-1-1", 10, "inside")])
    told = [(each.owner, each.lost, each.share) for each in found]
    assert told == [("NF 2", 50, 0.5), ("vSwitch", 40, 0.4), ("NF 1", 10, 0.1)]
    links = shares([hop("nf-1-1", 5, "link"), hop("vswitch", 1)])
    assert [each.owner for each in links] == ["link", "vSwitch"], "what no counter saw is the link's loss"
    assert shares([]) == shares([hop("vswitch", 0)]) == [], "no loss is no share"
    path = ["generator", "vSwitch", "vSwitch-2", "NF 2", "NF 10", "link"]
    assert order(["link", "NF 10", "NF 2", "vSwitch-2", "vSwitch", "generator", "NF 2"]) == path
    threads = [thread("nf-1-1", 4, 0.5), thread("nf-2-1", 5, 0.9), thread("vswitch", 2, 0.3), thread("vswitch", 2, 0.4)]
    hops = [hop("nf-1-1", 1), hop("vswitch", 1), hop("generator", 1)]
    found = {each.owner: each.busy for each in shares(hops, threads)}
    assert found["NF 1"] == 0.9
    assert found["vSwitch"] == pytest.approx(0.7), "kernel threads on one CPU are one data thread"
    assert found["generator"] is None, "unknown is not 0"


P50, P99, P999 = Quantile


def flow(
    instance: int = 1,
    direction: str = "forward",
    p99_ns: int | None = 10_000,
    probes: tuple[int | None, int | None] = (5000, 5000),
    load: str = "PDR50",
) -> columns.LatencyRow:
    """One flow with probes sent and received; p50 is a tenth of p99 and p99.9 twice as much."""
    p50, p999 = (None, None) if p99_ns is None else (p99_ns // 10, 2 * p99_ns)
    return columns.LatencyRow(
        "a", "t", load, 1e5, instance, direction, *probes, 1, None, p50, None, p99_ns, p999, None, None
    )  # fmt: skip


def test_the_worst_instance_and_direction_count_and_other_tools_may_lack_samples() -> None:
    rows = [flow(1), flow(1, "reverse", 30_000), flow(2, "forward", 20_000), flow(2, "reverse", 5_000)]
    worst, forward = figure(rows, P99, "PDR50"), figure(rows, P99, "PDR50", "forward")
    assert (worst.value_ns, worst.instance, worst.direction, worst.best_ns) == (30_000, 1, "reverse", 5_000)
    assert (forward.value_ns, forward.instance) == (20_000, 2)
    assert figure(rows, P99, "PDR90", BOTH) is None, "not measured at that load"
    found = figure([flow(probes=(None, None)), flow(2)], P99, "PDR50")
    assert (found.value_ns, found.samples) == (10_000, None)
    assert figure([flow(1, "forward", None, (None, None))], P99, "PDR50").unknown is UnknownReason.NOT_MEASURED


@pytest.mark.parametrize(
    ("quantile", "lost", "known"),
    [(P50, 2499, True), (P50, 2501, False), (P99, 50, True), (P99, 51, False), (P999, 5, True), (P999, 6, False)],
)
def test_a_percentile_is_unknown_when_all_above_it_may_be_lost(quantile: Quantile, lost: int, known: bool) -> None:
    found = figure([flow(1), flow(2, probes=(5000, 5000 - lost))], quantile, "PDR50")
    assert (found.value_ns is not None) is known
    if not known:
        assert (found.unknown, found.instance, found.load_pps) == (UnknownReason.LOST, 2, 1e5)
        assert found.samples == 5000 - lost
        assert found.reason.startswith(f"{lost:,} of 5,000 probes were lost")


@pytest.mark.parametrize(("quantile", "needs"), [(P50, 2), (P99, 100), (P999, 1000)])
def test_no_percentile_from_too_few_samples(quantile: Quantile, needs: int) -> None:
    assert quantile.samples_needed == needs
    enough, few = (figure([flow(probes=(count, count))], quantile, "PDR50") for count in (needs, needs - 1))
    assert enough.value_ns is not None
    assert (few.value_ns, few.unknown) == (None, UnknownReason.FEW)
    assert f"{quantile} needs {needs:,} samples, {needs - 1:,} available" == few.reason


@pytest.mark.parametrize("loads", [("PDR0", "PDR10", "PDR50", "PDR90"), ("SOAK5", "SOAK90", "SOAK100")])
def test_loads_come_light_ones_first(loads: tuple[str, ...]) -> None:
    assert loads_of([flow(load=name) for name in (*loads[::-1], loads[0])]) == [*loads]


def spent(waiting: str | None, watts: float | None, **more: Any) -> columns.TestRow:
    values = dict.fromkeys(("pdr0_w", "pdr50_w"), watts) | dict.fromkeys(("pdr0_busy_cpus", "pdr50_busy_cpus"), 1.0)
    joules = None if watts is None else watts / 5e5
    values |= {"anchor": f"{waiting}-{watts}", "waiting": waiting, "pdr50_j_per_packet": joules}
    return row(1e6, testbed="local-ovs", **(values | {"pdr50_energy_p99_ns": 36_000} | more))


def test_ways_of_waiting_are_columns_of_the_newest_tests_and_other_cells_are_apart() -> None:
    (block,) = energy_blocks([spent("never sleep", 100.0), spent("sleeping up to 100 µs", 80.0)])
    assert block.columns == ("local-ovs: never sleep", "local-ovs: sleeping up to 100 µs")
    half = next(line for line in block.lines if line.load == "50 % of PDR")
    cells = [(cell.watts, cell.joules_per_packet, cell.received_pps) for cell in half.cells]
    assert cells == [(100.0, 2e-4, 5e5), (80.0, 1.6e-4, 5e5)]
    assert [trace["y"][0] for trace in block.figure.variants[""]["data"]] == [100.0, 80.0]
    newer = spent("never sleep", 90.0, started_at="2026-12-02T00:00:00+00:00")
    (block,) = energy_blocks([newer, spent("never sleep", 100.0)])
    assert [cell.watts for cell in block.lines[0].cells] == [90.0]
    rows = [spent("a", 1.0), spent("a", 1.0, nf_chains=2), spent("a", 1.0, simulated=True)]
    assert len(energy_blocks(rows)) == 3


def test_without_a_meter_busy_cpus_are_drawn() -> None:
    (block,) = energy_blocks([spent(None, None)])
    assert not block.metered and block.columns == ("local-ovs",)
    assert block.figure.variants[""]["data"][0]["y"] == [1.0, None, 1.0, None]
    assert energy_blocks([spent("a", None, pdr0_busy_cpus=None)]) == []


VALUE, AT_LEAST, BELOW, NOT_RUN = CellState.VALUE, CellState.AT_LEAST, CellState.BELOW, CellState.NOT_RUN


def cell(value_pps: float | None, state: CellState = VALUE, upper: float = 1.01, noise_pps: float = 0.0) -> MatrixCell:
    upper_pps = None if value_pps is None else upper * value_pps
    return MatrixCell(state, value_pps, upper_pps, noise_pps=noise_pps)


def matrix(cells: Mapping[tuple[int, int], MatrixCell], metric: Measure = columns.NDR, **sizes: object) -> Matrix:
    chains, nodes = (tuple(sorted({place[axis] for place in cells})) for axis in (0, 1))
    return Matrix(series_of(replace(row(1e6), **sizes)), metric, chains, nodes, dict(cells))


def test_a_headline_is_of_the_metric_that_says_most() -> None:
    by_metric = {
        metric: matrix({(1, 1): cell(float(rate))}, metric) for rate, metric in enumerate(columns.THROUGHPUTS, 1)
    }
    for best in (columns.PDR, columns.NDR, columns.SOAK, columns.MRR, columns.ORR):
        (found,) = headlines(by_metric.values())
        assert found.metric is best
        assert found.cell(best, found.most) == by_metric.pop(best).cells[1, 1]


def test_a_headline_counts_cells_and_what_limits_them() -> None:
    figures = {(2, 1): cell(100), (2, 2): cell(80, AT_LEAST)}
    (found,) = headlines([matrix({(1, 1): cell(50, BELOW), **figures, (4, 4): cell(None, NOT_RUN)})])
    assert found.most == (2, 2)
    assert found.states == ((VALUE, 1), (AT_LEAST, 1), (BELOW, 1), (NOT_RUN, 1))
    (nothing,) = headlines([matrix({(1, 1): cell(None, NOT_RUN)})])
    assert (nothing.most, nothing.cell(columns.NDR, None)) == (None, None)
    kinds = ("nf-bound", "vswitch-bound", "vswitch-bound", "measured")
    rows = [row(1e6, cell=("CSC", chains, 1), verdicts=kind) for chains, kind in enumerate(kinds, 1)]
    (found,) = headlines(matrices(rows, series_of(rows[0])))
    assert found.limits == (("vswitch-bound", 2), ("nf-bound", 1))


def test_speedup_has_at_least_two_figures_of_the_same_cell() -> None:
    one = matrix({(1, 1): cell(100), (2, 1): cell(90), (4, 1): cell(80)}, vs_dtc=1)
    two = matrix({(1, 1): cell(180, AT_LEAST), (2, 1): cell(80, BELOW), (4, 1): cell(None, NOT_RUN)}, vs_dtc=2)
    other = matrix({(1, 1): cell(70)}, vs_dtc=2, nf_size="0.5c")
    vswitch, nf = sorted(speedups([two, one, other]), key=lambda found: found.axis != VSWITCH)
    assert (vswitch.axis, vswitch.place, vswitch.other, vswitch.service_type) == (VSWITCH, (1, 1), "NF-1c", "CSC")
    assert [(point.cores, point.rate_pps) for point in vswitch.points] == [(1.0, 100), (2.0, 180)]
    assert (vswitch.factor(vswitch.points[1]), vswitch.perfect_pps(3)) == (1.8, 300)
    assert (nf.other, [(point.cores, point.rate_pps) for point in nf.points]) == ("vSwitch-2c", [(0.5, 70), (1.0, 180)])
    cells = {(1, 1): cell(100)}
    sized = [found.axis for found in speedups([matrix(cells, nf_size=size) for size in ("2c", "1c")])]
    assert sized == [nf.axis] == [NF]
    for none in (
        [matrix(cells, nf_size=size) for size in ("1c-2c", "1c")],
        [matrix(cells, vs_dtc=cores) for cores in (None, 2)],
        [matrix(cells), matrix(cells, columns.PDR, vs_dtc=2)],
    ):
        assert speedups(none) == [], "sizes that are no number, unknown vSwitches, another metric"


def test_changes_go_along_the_axes_and_limits_that_may_lie_either_way_are_none() -> None:
    found = changes([matrix({(1, 1): cell(100), (4, 1): cell(80), (1, 2): cell(60), (4, 2): cell(10)})])
    assert [(each.axis, each.start, each.end, each.start_pps, each.end_pps, each.resolved) for each in found] == [
        ("instances", (1, 1), (4, 1), 100, 80, True),
        ("NFs", (1, 1), (1, 2), 100, 60, True),
    ]
    assert [each.ratio for each in found] == pytest.approx([-0.2, -0.4])
    for pair in ((cell(100, AT_LEAST), cell(200)), (cell(100), cell(200, BELOW))):
        for one, other in (pair, pair[::-1]):
            assert changes([matrix({(1, 1): one, (2, 1): other})]) == []


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("low", "high", "resolved"),
    [
        (cell(100, upper=1.05), cell(105), False), (cell(100, upper=1.05), cell(105.1), True),
        (cell(100, upper=1, noise_pps=3), cell(110, noise_pps=4), False),
        (cell(100, upper=1, noise_pps=3), cell(110.1, noise_pps=4), True), (cell(100, BELOW), cell(105), True),
        (cell(100), cell(105, AT_LEAST), True),
    ],
)  # fmt: skip
def test_changes_beyond_bounds_and_twice_the_noise(
    low: MatrixCell, high: MatrixCell, resolved: bool, order: int
) -> None:
    one, other = (low, high)[::order]
    (found,) = changes([matrix({(1, 1): one, (2, 1): other})])
    assert found.resolved is resolved
    assert (found.ratio is not None) is (low.state is high.state is VALUE)


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


def served(instance: int, forwarded_pps: float, loss_ratio: float, number: str = "NDR") -> columns.InstanceRow:
    return columns.InstanceRow(
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
    def of(**cells: MatrixCell) -> list[Matrix]:
        return [matrix({(1, 1): one}, service_type=kind) for kind, one in cells.items()]

    (found,) = ratios(of(VSC=cell(50), CSC=cell(100), CSP=replace(cell(300), oversubscribed=True)))
    assert (found.base, found.oversubscribed, found.share("CSP"), found.share("VSC")) == ("CSC", True, 3, 0.5)
    limit = replace(cell(100, AT_LEAST), oversubscribed=True)
    (found,) = ratios(of(VSC=cell(50), CSC=limit, CSP=cell(75)))
    assert (found.base, found.oversubscribed, found.share("CSP"), found.share("CSC")) == ("VSC", False, 1.5, None)
    assert ratios(of(VSC=cell(50), CSC=limit)) == []


def test_an_ndr_far_below_mrr_is_a_finding_and_a_noisy_or_limited_one_is_none() -> None:
    def said(ndr: MatrixCell, mrr: MatrixCell) -> tuple[str, ...]:
        found = [matrix({(1, 1): cell(100), (4, 2): ndr}), matrix({(1, 1): cell(101), (4, 2): mrr}, columns.MRR)]
        return rare_losses(found, {found[0].series: "VSC"})

    (text,) = said(cell(7e4, BELOW, upper=1.0), cell(4e6))
    assert all(part in text for part in ("VSC", "1 of 2", "4x2 below 70.0 kpps of 4.00 Mpps"))
    assert said(cell(1.9e6), cell(4e6))
    assert not said(cell(1.9e6), cell(4e6, noise_pps=1e5))
    for ndr in (cell(2e6), cell(1e6, AT_LEAST), cell(None, NOT_RUN)):
        assert not said(ndr, cell(4e6))
