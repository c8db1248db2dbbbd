"""Cells of the matrix: losses by owner, latency of the worst instance or why it is unknown, and energy."""

from typing import Any

import pytest

from csit_utils.dataset.rows import HopRow, LatencyRow, TestRow, ThreadRow
from csit_utils.studies.density.analysis.latency_cells import BOTH, Quantile, UnknownReason, figure, loads_of
from csit_utils.studies.density.analysis.losses import order, shares
from csit_utils.studies.density.pages.energy import energy_blocks
from tests.unit.csit_utils import histories


def hop(owner: str, lost: int, cause: str = "queue", instance: int = 1) -> HopRow:
    """A loss."""
    return HopRow("a", "t", "locate", 1e6, instance, "forward", owner, cause, "x", "y", lost, 0.0)


def thread(owner: str, cpu: int, running: float) -> ThreadRow:
    """A data thread."""
    return ThreadRow("a", "t", owner, "x", cpu, running, 0.0)


def test_instances_are_added_up_by_the_place_of_their_nf() -> None:
    found = shares([hop("nf-1-2", 30), hop("nf-7-2", 20), hop("vswitch", 40), hop("nf-1-1", 10, "inside")])
    told = [(each.owner, each.lost, each.share) for each in found]
    assert told == [("NF 2", 50, 0.5), ("vSwitch", 40, 0.4), ("NF 1", 10, 0.1)]
    links = shares([hop("nf-1-1", 5, "link"), hop("vswitch", 1)])
    assert [each.owner for each in links] == ["link", "vSwitch"], "what no counter saw is the link's loss"
    assert shares([]) == shares([hop("vswitch", 0)]) == [], "no loss is no share"


def test_the_time_of_an_owner_is_that_of_its_busiest_thread() -> None:
    threads = [thread("nf-1-1", 4, 0.5), thread("nf-2-1", 5, 0.9), thread("vswitch", 2, 0.3), thread("vswitch", 2, 0.4)]
    hops = [hop("nf-1-1", 1), hop("vswitch", 1), hop("generator", 1)]
    found = {each.owner: each.busy for each in shares(hops, threads)}
    assert found["NF 1"] == 0.9
    assert found["vSwitch"] == pytest.approx(0.7), "kernel threads on one CPU are one data thread"
    assert found["generator"] is None, "unknown is not 0"


def test_owners_stand_along_the_path() -> None:
    path = ["generator", "vSwitch", "vSwitch-2", "NF 2", "NF 10", "link"]
    assert order(["link", "NF 10", "NF 2", "vSwitch-2", "vSwitch", "generator", "NF 2"]) == path


P50, P99, P999 = Quantile


def row(
    instance: int = 1,
    direction: str = "forward",
    p99_ns: int | None = 10_000,
    probes: tuple[int | None, int | None] = (5000, 5000),
    load: str = "PDR50",
) -> LatencyRow:
    """One flow with probes sent and received; p50 is a tenth of p99 and p99.9 twice as much."""
    p50, p999 = (None, None) if p99_ns is None else (p99_ns // 10, 2 * p99_ns)
    return LatencyRow(
        "a", "t", load, 1e5, instance, direction, *probes, 1, None, p50, None, p99_ns, p999, None, None
    )  # fmt: skip


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
    found = figure([row(1), row(2, probes=(5000, 5000 - lost))], quantile, "PDR50")
    assert (found.value_ns is not None) is known
    if not known:
        assert (found.unknown, found.instance, found.load_pps) == (UnknownReason.LOST, 2, 1e5)
        assert found.samples == 5000 - lost
        assert found.reason.startswith(f"{lost:,} of 5,000 probes were lost")


@pytest.mark.parametrize(("quantile", "needs"), [(P50, 2), (P99, 100), (P999, 1000)])
def test_no_percentile_from_too_few_samples(quantile: Quantile, needs: int) -> None:
    assert quantile.samples_needed == needs
    enough, few = (figure([row(probes=(count, count))], quantile, "PDR50") for count in (needs, needs - 1))
    assert enough.value_ns is not None
    assert (few.value_ns, few.unknown) == (None, UnknownReason.FEW)
    assert f"{quantile} needs {needs:,} samples, {needs - 1:,} available" == few.reason


def test_results_of_other_tools_may_lack_samples() -> None:
    found = figure([row(probes=(None, None)), row(2)], P99, "PDR50")
    assert (found.value_ns, found.samples) == (10_000, None)
    assert figure([row(1, "forward", None, (None, None))], P99, "PDR50").unknown is UnknownReason.NOT_MEASURED


@pytest.mark.parametrize("loads", [("PDR0", "PDR10", "PDR50", "PDR90"), ("SOAK5", "SOAK90", "SOAK100")])
def test_loads_come_light_ones_first(loads: tuple[str, ...]) -> None:
    assert loads_of([row(load=name) for name in (*loads[::-1], loads[0])]) == [*loads]


def spent(waiting: str | None, watts: float | None, **more: Any) -> TestRow:
    values = dict.fromkeys(("pdr0_w", "pdr50_w"), watts) | dict.fromkeys(("pdr0_busy_cpus", "pdr50_busy_cpus"), 1.0)
    joules = None if watts is None else watts / 5e5
    values |= {"anchor": f"{waiting}-{watts}", "waiting": waiting, "pdr50_j_per_packet": joules}
    return histories.row(1e6, testbed="local-ovs", **(values | {"pdr50_energy_p99_ns": 36_000} | more))


def test_two_ways_of_waiting_are_two_columns_of_one_table() -> None:
    (block,) = energy_blocks([spent("never sleep", 100.0), spent("sleeping up to 100 µs", 80.0)])
    assert block.columns == ("local-ovs: never sleep", "local-ovs: sleeping up to 100 µs")
    half = next(line for line in block.lines if line.load == "50 % of PDR")
    cells = [(cell.watts, cell.joules_per_packet, cell.received_pps) for cell in half.cells]
    assert cells == [(100.0, 2e-4, 5e5), (80.0, 1.6e-4, 5e5)]
    assert [trace["y"][0] for trace in block.figure.variants[""]["data"]] == [100.0, 80.0]


def test_the_newest_test_of_a_column_is_shown() -> None:
    newer = spent("never sleep", 90.0, started_at="2026-12-02T00:00:00+00:00")
    (block,) = energy_blocks([newer, spent("never sleep", 100.0)])
    assert [cell.watts for cell in block.lines[0].cells] == [90.0]


def test_other_cells_and_simulated_ones_are_apart() -> None:
    rows = [spent("a", 1.0), spent("a", 1.0, nf_chains=2), spent("a", 1.0, simulated=True)]
    assert len(energy_blocks(rows)) == 3
    assert energy_blocks([spent("a", None, pdr0_busy_cpus=None)]) == []


def test_without_a_meter_busy_cpus_are_drawn() -> None:
    (block,) = energy_blocks([spent(None, None)])
    assert not block.metered and block.columns == ("local-ovs",)
    assert block.figure.variants[""]["data"][0]["y"] == [1.0, None, 1.0, None]
