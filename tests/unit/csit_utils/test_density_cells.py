"""Cells of the matrix: losses by kind of owner, and latency of the worst instance, or why it is unknown."""

import pytest

from csit_utils.dataset.rows import HopRow, LatencyRow, ThreadRow
from csit_utils.studies.density.analysis.latency_cells import BOTH, Quantile, UnknownReason, figure, loads_of
from csit_utils.studies.density.analysis.losses import order, shares


def hop(owner: str, lost: int, cause: str = "queue", instance: int = 1) -> HopRow:
    """A loss."""
    return HopRow("a", "t", "locate", 1e6, instance, "forward", owner, cause, "x", "y", lost, 0.0)


def thread(owner: str, cpu: int, running: float) -> ThreadRow:
    """A data thread."""
    return ThreadRow("a", "t", owner, "x", cpu, running, 0.0)


def test_instances_are_added_up_by_the_place_of_their_nf() -> None:
    found = shares([hop("nf-1-2", 30), hop("nf-7-2", 20), hop("vswitch", 40), hop("nf-1-1", 10, "inside")])
    assert [(each.owner, each.lost, each.share) for each in found] == [
        ("NF 2", 50, 0.5),
        ("vSwitch", 40, 0.4),
        ("NF 1", 10, 0.1),
    ]


def test_what_no_counter_saw_is_the_links_loss() -> None:
    assert [each.owner for each in shares([hop("nf-1-1", 5, "link"), hop("vswitch", 1)])] == ["link", "vSwitch"]


def test_the_time_of_an_owner_is_that_of_its_busiest_thread() -> None:
    threads = [thread("nf-1-1", 4, 0.5), thread("nf-2-1", 5, 0.9), thread("vswitch", 2, 0.3), thread("vswitch", 2, 0.4)]
    hops = [hop("nf-1-1", 1), hop("vswitch", 1), hop("generator", 1)]
    found = {each.owner: each.busy for each in shares(hops, threads)}
    assert found["NF 1"] == 0.9
    assert found["vSwitch"] == pytest.approx(0.7), "kernel threads on one CPU are one data thread"
    assert found["generator"] is None, "unknown is not 0"


def test_no_loss_is_no_share() -> None:
    assert shares([]) == []
    assert shares([hop("vswitch", 0)]) == []


def test_owners_stand_along_the_path() -> None:
    assert order(["link", "NF 10", "NF 2", "vSwitch-2", "vSwitch", "generator", "NF 2"]) == [
        "generator",
        "vSwitch",
        "vSwitch-2",
        "NF 2",
        "NF 10",
        "link",
    ]


P50, P99, P999 = Quantile


def row(
    instance: int = 1,
    direction: str = "forward",
    p99_ns: int | None = 10_000,
    *,
    sent: int | None = 5000,
    received: int | None = 5000,
    load: str = "PDR50",
) -> LatencyRow:
    """One flow; p50 is a tenth of p99 and p99.9 twice as much."""
    p50, p999 = (None, None) if p99_ns is None else (p99_ns // 10, 2 * p99_ns)
    figures = (1, None, p50, None, p99_ns, p999, None)
    return LatencyRow("a", "t", load, 1e5, instance, direction, sent, received, *figures, None)


def test_the_worst_instance_and_direction_count() -> None:
    rows = [row(1), row(1, "reverse", 30_000), row(2, "forward", 20_000), row(2, "reverse", 5_000)]
    worst = figure(rows, P99, "PDR50")
    assert (worst.value_ns, worst.instance, worst.direction, worst.best_ns) == (30_000, 1, "reverse", 5_000)
    forward = figure(rows, P99, "PDR50", "forward")
    assert (forward.value_ns, forward.instance) == (20_000, 2)
    assert figure(rows, P99, "PDR90", BOTH) is None, "not measured at that load"


@pytest.mark.parametrize(
    ("quantile", "lost", "known"),
    [(P50, 2499, True), (P50, 2501, False), (P99, 50, True), (P99, 51, False), (P999, 5, True), (P999, 6, False)],
)
def test_a_percentile_is_unknown_when_as_many_probes_are_lost_as_lie_above_it(
    quantile: Quantile, lost: int, known: bool
) -> None:
    found = figure([row(1), row(2, received=5000 - lost)], quantile, "PDR50")
    assert (found.value_ns is not None) is known
    if not known:
        assert found.unknown is UnknownReason.LOST
        assert (found.instance, found.load_pps, found.samples) == (2, 1e5, 5000 - lost)
        assert found.reason.startswith(f"{lost:,} of 5,000 probes were lost")


@pytest.mark.parametrize(("quantile", "needs"), [(P50, 2), (P99, 100), (P999, 1000)])
def test_no_percentile_from_too_few_samples(quantile: Quantile, needs: int) -> None:
    assert quantile.samples_needed == needs
    enough = figure([row(sent=needs, received=needs)], quantile, "PDR50")
    few = figure([row(sent=needs - 1, received=needs - 1)], quantile, "PDR50")
    assert enough is not None and enough.value_ns is not None
    assert few is not None and few.value_ns is None
    assert few.unknown is UnknownReason.FEW
    assert f"{quantile} needs {needs:,} samples, {needs - 1:,} available" == few.reason


def test_results_of_other_tools_may_lack_samples() -> None:
    found = figure([row(sent=None, received=None), row(2)], P99, "PDR50")
    assert (found.value_ns, found.samples) == (10_000, None)
    unknown = figure([row(sent=None, received=None, p99_ns=None)], P99, "PDR50")
    assert unknown is not None and unknown.unknown is UnknownReason.NOT_MEASURED


def test_loads_come_light_ones_first() -> None:
    assert loads_of([row(load=name) for name in ("PDR90", "PDR0", "PDR50", "PDR10", "PDR0")]) == [
        "PDR0",
        "PDR10",
        "PDR50",
        "PDR90",
    ]
    assert loads_of([row(load=name) for name in ("SOAK100", "SOAK90", "SOAK5")]) == ["SOAK5", "SOAK90", "SOAK100"]
